package cluster

import (
	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster/internal/credentials"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/netmesh"
)

// ErrCredentials is in the error of a start whose Config.TLS gives nothing that other
// members would accept.
var ErrCredentials = credentials.ErrUnusable

// Credentials are by what a node takes part in a cluster with TLS.
type Credentials struct {
	netmesh.Credentials

	// GossipKeys, of 32 bytes each, encrypt gossip with AES-256-GCM: the first what this node
	// sends, and each decrypts what it gets. An empty one stands for no encryption. To
	// change keys without a gap, first put the new one behind the first on all nodes, then in
	// the first place, and drop the old one last. Default: gossip is not encrypted; but a node
	// that has a key goes on with it until there is at least an empty one.
	GossipKeys [][]byte
}

// TLSDir returns a Config.TLS that reads a directory: tls.crt and tls.key are the
// certificate and the key of this node, ca.crt has the CAs that sign those of members, all
// in PEM. gossip.key, if it is there, has the keys of gossip, one a line, in base64, or the
// word plain for no encryption. If there is a file accept-plain, AcceptPlain is set. names, if
// it is there, has Names, one a line; a node that had them goes on with them if it is gone.
// Others than the owner of the files of keys and readers of their group must not have access to
// them.
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

// ReloadTLS asks Config.TLS for new credentials at once; a node does so by itself every ten
// seconds. New links use them, and those that stand stay, but such without TLS that are accepted
// no more. If the credentials are wrong the error says why, and the node goes on with those
// before; if only gossip keys or names are gone, it goes on with these, and takes the rest.
// Without TLS it does nothing.
func (n *Node) ReloadTLS() error { return n.credentials.Reload(n.gossip) }
