package netmesh

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/certs"
)

// Credentials are the certificate that a member shows to the others, and the roots by which it
// verifies theirs. The URI bmqelect://CLUSTER/NODE binds a certificate to a cluster and a node.
// Without such a URI, a DNS name that equals the node's name binds it to the node, and the CA
// alone binds it to the cluster. A certificate must be valid for both ends of a connection.
type Credentials struct {
	// Certificate comes with its intermediate certificates, at most three. Keys may be Ed25519,
	// P-256, P-384, or RSA of up to 4096 bits.
	Certificate tls.Certificate
	Roots       *x509.CertPool // of the certificates of members; not nil

	// AcceptPlain is for a cluster that moves to TLS, or away from it. Members without TLS
	// are accepted, and links to them are not encrypted: who reaches a member's address can
	// join under any name, as in a cluster without TLS. Without it none is accepted, and links
	// that are not encrypted end.
	AcceptPlain bool

	// Names, if not empty, lists the nodes that are let in, and the operators as
	// operator/OPERATOR. Certificates for other names are refused, and links to those nodes end.
	// If the list disappears, package cluster goes on with the old one until the node restarts.
	Names []string
}

// Lists reports whether a name is let in.
func (c *Credentials) Lists(name string) bool {
	return len(c.Names) == 0 || slices.Contains(c.Names, name)
}

// Check returns the time span in which members with the same roots accept the credentials as
// those of node. The error says why they would not accept them now.
func (c *Credentials) Check(
	cluster string, node elector.NodeID,
) (from, until time.Time, err error) {
	if len(c.Certificate.Certificate) == 0 || c.Roots == nil {
		return from, until, errors.New("a certificate or the roots are missing")
	}
	chain, err := certs.ChainOf(c.Certificate)
	if err != nil {
		return from, until, err
	}
	if problem := certs.Problem(chain[0], cluster, string(node)); problem != "" {
		return from, until, errors.New(problem)
	}
	if !c.Lists(string(node)) {
		return from, until, fmt.Errorf("the list of names lacks that of this node, %q", node)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		paths, err := certs.Verify(chain, c.Roots, usage)
		if err != nil {
			return from, until, err
		}
		until = time.Time{}
		for _, path := range paths {
			end := path[0].NotAfter
			for _, cert := range path {
				if cert.NotAfter.Before(end) {
					end = cert.NotAfter
				}
			}
			if end.After(until) {
				until = end
			}
		}
	}
	return chain[0].NotBefore, until, nil
}

// secured is a connection with TLS. Its ends are those of the connection below: a member
// says goodbye by a frame, and what ends the stream must be the kernel, not an alert (§6.8).
type secured struct {
	*tls.Conn

	raw net.Conn
}

func (s *secured) Close() error      { return s.raw.Close() }
func (s *secured) CloseWrite() error { return closeWrite(s.raw) }

// SetLinger with 0 makes Close reset the connection.
func (s *secured) SetLinger(sec int) error {
	if l, ok := s.raw.(lingering); ok {
		return l.SetLinger(sec)
	}
	return nil
}

// errPlain says that the other end of a dialed connection speaks no TLS, which is accepted.
var errPlain = errors.New("the other end speaks no TLS")

// secure puts TLS under the frames, if this node has credentials. The other end must show a
// certificate of node. If node is "" the other end dialed and has not said yet who it is; then a
// certificate of any member will do. No byte of a frame is read before that, except from a member
// without TLS if AcceptPlain is set. The deadline of the handshake applies.
func (h *handshake) secure(m *Mesh, node elector.NodeID) error {
	if m.cfg.TLS == nil {
		return nil
	}
	own, under := m.cfg.TLS(), h.raw
	if own.AcceptPlain && h.plain {
		return nil
	}
	if own.AcceptPlain && node == "" {
		again := &rereading{Conn: h.raw}
		if _, err := io.ReadFull(h.raw, again.first[:]); err != nil {
			return err
		}
		under, h.frames = again, newFrameReader(again, maxHello)
		if again.first[0] != firstOfTLS {
			return nil
		}
	}
	config := own.config(m.cfg.Cluster, string(node))
	conn := tls.Server(under, config)
	if node != "" {
		conn = tls.Client(under, config)
	}
	if err := conn.Handshake(); err != nil {
		var plain tls.RecordHeaderError
		errors.As(err, &plain)
		// An alert has told the other end what is wrong. If it speaks no TLS a frame tells it.
		h.silent = node != "" || plain.Conn == nil
		if own.AcceptPlain && node != "" && plain.Conn != nil && plain.RecordHeader[0] == firstOfFrame {
			return errPlain
		}
		return tlsRefusal(err)
	}
	h.conn = &secured{conn, h.raw}
	h.frames = newFrameReader(h.conn, maxHello)
	h.shown = conn.ConnectionState().PeerCertificates[0]
	return nil
}

// rereading is a connection whose first byte was read, and is read again.
type rereading struct {
	net.Conn
	first [1]byte
	done  bool
}

func (c *rereading) Read(b []byte) (int, error) {
	if !c.done && len(b) > 0 {
		c.done = true
		return copy(b, c.first[:]), nil
	}
	return c.Conn.Read(b)
}

// config returns the configuration for a connection with node, or with any member if node is "".
func (c *Credentials) config(cluster, node string) *tls.Config {
	usage := x509.ExtKeyUsageServerAuth
	if node == "" {
		usage = x509.ExtKeyUsageClientAuth
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{c.Certificate},
		// It is shown whatever CAs the other end asks for, so that the other end says what is wrong.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &c.Certificate, nil
		},
		ClientAuth: tls.RequireAnyClientCert,
		ClientCAs:  c.Roots,
		// A dialer sends no server name, which anybody could read. And package tls would verify a
		// chain of any length, whatever that costs: VerifyConnection does it with limits.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if _, err := certs.Verify(s.PeerCertificates, c.Roots, usage); err != nil {
				return err
			}
			if problem := certs.Problem(s.PeerCertificates[0], cluster, node); problem != "" {
				return errors.New(problem)
			}
			return nil
		},
		SessionTicketsDisabled:      true, // nobody writes on an evidence connection, TLS included
		DynamicRecordSizingDisabled: true, // a frame is one record, and one write
	}
}

// vouch compares what the other end says of itself with the certificate that it showed.
func (h *handshake) vouch(m *Mesh, theirs *hello) *refusal {
	if m.cfg.TLS == nil {
		return nil
	}
	problem := ""
	if h.shown != nil {
		problem = certs.Problem(h.shown, theirs.Cluster, theirs.Node)
	}
	if problem == "" && !m.cfg.TLS().Lists(theirs.Node) {
		problem = fmt.Sprintf("it is not in the list of names of node %q", m.cfg.Node)
	}
	if problem != "" {
		return refuse(ReasonTLS, "node %.260q: %s", theirs.Node, problem)
	}
	return nil
}

// The first byte that an end sends with TLS, and without: there it begins the length of a
// frame.
const (
	firstOfTLS   = 0x16
	firstOfFrame = 0
)

// tlsRefusal turns what TLS finds wrong into a refusal. An error of the connection stays as it is.
func tlsRefusal(err error) error {
	var op *net.OpError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &op) && op.Op != "local error", errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF):
		return tlsAlert(err)
	case errors.As(err, &plain):
		return refuse(ReasonTLS, "this node demands TLS, and the other end speaks none")
	}
	return refuse(ReasonTLS, "%v", err)
}

// tlsAlert turns an alert from the other end into a refusal.
func tlsAlert(err error) error {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return err
	}
	refused := refuse(ReasonTLS, "the other end does not accept this node's certificate, and its "+
		"log says why: %v", op.Err)
	refused.byPeer = true
	return refused
}

// overdue says why the link must end by the newest credentials; nil if it need not.
func (l *link) overdue() *refusal {
	if l.m.cfg.TLS == nil {
		return nil
	}
	own := l.m.cfg.TLS()
	switch {
	case !l.encrypted && !own.AcceptPlain:
		return refuse(ReasonTLS, "node %s demands TLS by now", l.m.cfg.Node)
	case !own.Lists(string(l.node)):
		return refuse(ReasonTLS, "the list of names of node %s lacks %s by now", l.m.cfg.Node, l.node)
	}
	return nil
}
