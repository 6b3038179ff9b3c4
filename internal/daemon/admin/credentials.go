package admin

import (
	"crypto/tls"
	"crypto/x509"
	"errors"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/certs"
)

// Credentials are what a client shows to nodes, and what it verifies nodes with. The zero value
// has none: enough for loopback and Unix sockets.
type Credentials struct {
	token   string
	own     *tls.Certificate // nil: none
	roots   *x509.CertPool   // of nodes; nil: no TLS
	cluster string
}

// ReadCredentials reads the first token of a file, and a directory of ca.crt and, if the client
// has a certificate, tls.crt and tls.key. Either path may be "". The errors contain no secrets.
func ReadCredentials(tlsDir, tokenFile string) (c Credentials, err error) {
	if tlsDir != "" {
		if c.own, c.roots, c.cluster, err = certs.LoadClient(tlsDir); err != nil {
			return c, err
		}
	}
	if tokenFile != "" {
		_, c.token, err = readTokens(tokenFile)
	}
	return c, err
}

// Client returns a client for the admin side at addr, host:port or unix:PATH. The node "" stands
// for any node of the cluster. With a directory of certificates the client speaks TLS with other
// machines, and only with that node.
//
// Secrets (the token and keys) go only over loopback, Unix sockets and TLS. The user must have
// named the address, or TLS must prove that the node answers there: a stranger who can talk to
// the cluster could name an address of its own.
func (c Credentials) Client(addr string, node cluster.NodeID, named bool) *Client {
	here := IsHere(addr)
	secure := !here && c.roots != nil
	client := newClient(addr)
	if secure {
		client.base = "https://" + addr
		client.transport.TLSClientConfig = c.config(string(node))
	}
	switch {
	case !here && !secure:
		client.unsafe = "not sent without TLS: give --tls-dir with the ca.crt of the cluster"
	case !named && !(secure && node != ""):
		client.unsafe = "not sent there, since only a node named this address: name it with --admin"
	}
	switch {
	case c.token == "":
	case client.unsafe == "":
		client.token = c.token
	default:
		client.withheld = "the token is " + client.unsafe
	}
	return client
}

func (c Credentials) config(node string) *tls.Config {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // certificates name nodes, not addresses: what follows verifies them
		VerifyConnection: func(s tls.ConnectionState) error {
			_, err := certs.Verify(s.PeerCertificates, c.roots, x509.ExtKeyUsageServerAuth)
			if err != nil {
				return err
			}
			if problem := certs.Problem(s.PeerCertificates[0], c.cluster, node); problem != "" {
				return errors.New(problem)
			}
			return nil
		},
	}
	if c.own != nil {
		// It is sent whoever has signed it, so that the node can say what is wrong.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return c.own, nil
		}
	}
	return config
}
