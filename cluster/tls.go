package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/internal/gossip"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/netmesh"
)

// ErrCredentials is in the error of a start whose Config.TLS gives nothing that other
// members would accept.
var ErrCredentials = errors.New("no usable certificate")

const (
	credentialsEvery = 10 * time.Second // between two looks at Config.TLS
	// A certificate ends soon when less than a tenth of its time is left, and at most
	// endsSoon: automatic renewal comes before that.
	endsSoon = 14 * 24 * time.Hour
)

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

// credentials are the newest of Config.TLS that are right. Those before stay if it gives
// wrong ones.
type credentials struct {
	cfg    *Config
	newest atomic.Pointer[Credentials]
	// reload is held from before they are read until all use them: nobody goes back to those
	// that were read before.
	reload sync.Mutex

	mu          sync.Mutex // not held while a file is read
	from, until time.Time
	plainSince  time.Time // when AcceptPlain was first seen set, and set since then
}

// ofMesh are those that the mesh needs.
func (c *credentials) ofMesh() *netmesh.Credentials { return &c.newest.Load().Credentials }

// ofGossip are the keys of gossip; none without TLS.
func (c *credentials) ofGossip() gossip.Keys {
	if c == nil {
		return nil
	}
	return c.newest.Load().GossipKeys
}

// openCredentials returns the first credentials; nil without TLS.
func openCredentials(cfg *Config) (*credentials, error) {
	if cfg.TLS == nil {
		return nil, nil
	}
	c := &credentials{cfg: cfg}
	_, err := c.read()
	return c, err
}

// read asks Config.TLS, and returns the credentials that were the newest before; nil if there
// were none. If there is an error, too, they are replaced but for what it names. It is not
// called twice at a time.
func (c *credentials) read() (old *Credentials, err error) {
	next, err := c.cfg.TLS()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	from, until, err := next.Check(c.cfg.Cluster, c.cfg.Node)
	if err == nil {
		err = gossip.Keys(next.GossipKeys).Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	if err = keepWhatIsGone(c.newest.Load(), &next); err != nil {
		err = fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.from, c.until = from, until
	if !next.AcceptPlain {
		c.plainSince = time.Time{}
	} else if c.plainSince.IsZero() {
		c.plainSince = time.Now()
	}
	return c.newest.Swap(&next), err
}

// keepWhatIsGone keeps a node from what it was not told to do, by a file that is not there any
// more for example: to stop to encrypt gossip, or to let in those whom it keeps out. The error
// names what next has from old.
func keepWhatIsGone(old, next *Credentials) (err error) {
	real := func(key []byte) bool { return len(key) > 0 }
	if old == nil {
		return nil
	}
	if len(next.GossipKeys) == 0 && slices.ContainsFunc(old.GossipKeys, real) {
		next.GossipKeys = old.GossipKeys
		err = errors.New("there is no key of gossip any more (file gossip.key): write the word " +
			"plain to stop encrypting")
	}
	if len(next.Names) == 0 && len(old.Names) > 0 {
		next.Names = old.Names
		err = errors.Join(err, errors.New("there is no list of names any more (file names): write "+
			"it again, or restart the node to let in everybody with a certificate"))
	}
	return err
}

// end is until when the other members accept the certificate, and whether that is soon.
func (c *credentials) end() (until time.Time, soon bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until, time.Until(c.until) < min(c.until.Sub(c.from)/10, endsSoon)
}

// acceptsPlain reports whether members without TLS are accepted, and for how long by now.
func (c *credentials) acceptsPlain() (yes bool, since time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plainSince.IsZero() {
		return false, 0
	}
	return true, time.Since(c.plainSince)
}

// CheckTLS reports what is wrong with the credentials that c.TLS gives now; nil without TLS.
func CheckTLS(c Config) error {
	c = c.withDefaults()
	_, err := openCredentials(&c)
	return err
}

// ReloadTLS asks Config.TLS for new credentials at once; a node does so by itself every ten
// seconds. New links use them, and those that stand stay, but such without TLS that are accepted
// no more. If the credentials are wrong the error says why, and the node goes on with those
// before; if only gossip keys or names are gone, it goes on with these, and takes the rest.
// Without TLS it does nothing.
func (n *Node) ReloadTLS() error {
	if n.credentials == nil {
		return nil
	}
	n.credentials.reload.Lock()
	defer n.credentials.reload.Unlock()
	old, err := n.credentials.read()
	until, soon := n.credentials.end()
	at, why := until.UTC().Format(time.RFC3339), ""
	switch {
	case err != nil:
		why = fmt.Sprintf("node %q goes on with the certificate that ends at %s: %v", n.cfg.Node, at, err)
	case soon:
		why = fmt.Sprintf("the certificate of node %q ends at %s", n.cfg.Node, at)
	}
	n.diagnosis.OfNode(findings.Certificate, why)
	if old == nil {
		return err
	}
	now := n.credentials.newest.Load()
	if !bytes.Equal(old.Certificate.Certificate[0], now.Certificate.Certificate[0]) {
		n.log.Info("new certificate in use", "until", at)
	}
	if now.AcceptPlain != old.AcceptPlain {
		n.log.Info("the need for TLS has changed", "accept-plain", now.AcceptPlain)
	}
	if n.gossip == nil {
		return err
	}
	return errors.Join(err, n.reloadGossipKeys())
}

// reloadGossipKeys lets gossip use the newest keys.
func (n *Node) reloadGossipKeys() error {
	before := n.gossipEncryption()
	changed, err := n.gossip.SetKeys(n.credentials.ofGossip())
	if changed {
		n.log.Info("new gossip keys in use", "encryption", n.gossipEncryption(), "before", before)
	}
	if err != nil {
		n.log.Error("new gossip keys are not in use: gossip goes on with those before",
			"encryption", before, "error", err)
	}
	return err
}

// gossipEncryption is Status.GossipEncryption.
func (n *Node) gossipEncryption() string {
	switch keys := n.gossip.Keys(); {
	case keys.Demands():
		return "required"
	case keys.Sends():
		return "preferred"
	case len(keys) > 1:
		return "accepted"
	}
	return "none"
}

// watchCredentials looks for new ones, if there are any, until the node ends.
func (n *Node) watchCredentials() {
	if n.credentials == nil {
		return
	}
	ticker := time.NewTicker(credentialsEvery)
	defer ticker.Stop()
	for {
		_ = n.ReloadTLS() // a finding or the log says it
		select {
		case <-ticker.C:
		case <-n.quit:
			return
		}
	}
}
