package cluster

import (
	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster/internal/credentials"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/netmesh"
)

// ErrCredentials means that other members would not accept the credentials of Config.TLS.
var ErrCredentials = credentials.ErrUnusable

// Credentials are what a node needs to take part in a cluster with TLS.
type Credentials struct {
	netmesh.Credentials

	// GossipKeys, of 32 bytes each, encrypt gossip with AES-256-GCM. The first encrypts what this
	// node sends; each of them decrypts what it receives. An empty key stands for no encryption.
	// To change keys without a gap, put the new one behind the first on all nodes, then in the
	// first place, and drop the old one last. Default: gossip is not encrypted. But a running
	// node that has a key keeps it until there is another one, or an empty one.
	GossipKeys [][]byte
}

// TLSDir returns a Config.TLS that reads a directory: tls.crt and tls.key are the certificate and
// the key of this node, ca.crt has the CAs that sign the certificates of members, all in PEM. The
// file gossip.key is optional and has the keys of gossip, one a line, in base64, or the word plain
// for no encryption. A file accept-plain sets AcceptPlain. The file names is optional and has
// Names, one a line; if it is removed a running node keeps the names. Only the owner of the files
// of keys, and readers of their group, may have access to them.
func TLSDir(dir string) func() (Credentials, error) {
	return func() (c Credentials, err error) {
		c.Certificate, c.Roots, err = certs.Load(dir)
		if err == nil {
			c.AcceptPlain, err = certs.AcceptsPlain(dir)
		}
		if err == nil {
			c.Names, err = certs.Names(dir)
		}
		var keys []certs.GossipKey
		if err == nil {
			keys, err = certs.GossipKeys(dir)
		}
		for _, key := range keys {
			c.GossipKeys = append(c.GossipKeys, key)
		}
		return c, err
	}
}

// CheckTLS reports what is wrong with the credentials that c.TLS gives now; nil without TLS.
func CheckTLS(c Config) error {
	_, err := c.withDefaults().credentials(nil, nil)
	return err
}

// credentials returns the first credentials; nil without TLS.
func (c Config) credentials(log hclog.Logger, found func(why string)) (*credentials.Newest, error) {
	if c.TLS == nil {
		return nil, nil
	}
	read := func() (credentials.Set, error) {
		set, err := c.TLS()
		return credentials.Set(set), err
	}
	return credentials.Open(credentials.Config{
		Cluster: c.Cluster, Node: c.Node, Read: read, Log: log, Found: found,
	})
}

// ReloadTLS calls Config.TLS for new credentials at once; a node does so itself every ten seconds.
// New links use them. Present links stay, except for links without TLS that are no longer accepted.
// If the credentials are wrong the error says why, and the node keeps the old ones. If only gossip
// keys or names are gone, it keeps these and takes the rest. Without TLS it does nothing.
func (n *Node) ReloadTLS() error { return n.credentials.Reload(n.gossip) }
