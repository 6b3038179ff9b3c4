// Package credentials holds the newest TLS credentials of a node: its certificate, the names that
// it accepts, and the keys of gossip.
package credentials

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster/internal/gossip"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
)

// ErrUnusable means that other members would not accept the credentials.
var ErrUnusable = errors.New("no usable certificate")

const (
	lookEvery = 10 * time.Second // between two looks for new credentials
	// A certificate ends soon when less than a tenth of its time is left, and less than endsSoon:
	// automatic renewal comes before that.
	endsSoon = 14 * 24 * time.Hour
)

// Set is the result of one read.
type Set struct {
	netmesh.Credentials

	GossipKeys [][]byte
}

// Config says to whom the credentials belong, and where they come from.
type Config struct {
	Cluster string
	Node    elector.NodeID
	Read    func() (Set, error) // called once at a time
	Log     hclog.Logger
	// Found gets what is wrong with the certificate, "" if nothing is wrong any more.
	Found func(why string)
}

// Newest holds the newest valid credentials. They stay if wrong ones are read. Its methods are safe
// for concurrent use. A node without TLS has a nil *Newest.
type Newest struct {
	cfg Config
	set atomic.Pointer[Set]
	// reload is held from before a read until all use the result, so that no older credentials
	// replace newer ones.
	reload sync.Mutex

	mu          sync.Mutex // not held while a file is read
	from, until time.Time
	plainSince  time.Time // since when AcceptPlain has been set; zero if it is not
}

// Open returns the first credentials. The error wraps ErrUnusable.
func Open(cfg Config) (*Newest, error) {
	c := &Newest{cfg: cfg}
	_, err := c.read()
	return c, err
}

// Mesh returns the credentials of the mesh.
func (c *Newest) Mesh() *netmesh.Credentials { return &c.set.Load().Credentials }

// Gossip returns the keys of gossip.
func (c *Newest) Gossip() gossip.Keys {
	if c == nil {
		return nil
	}
	return c.set.Load().GossipKeys
}

// read reads credentials and returns the old ones. If old is nil with an error, nothing has
// changed. If old is not nil with an error, the credentials are replaced except for what the error
// names. Calls must not overlap.
func (c *Newest) read() (old *Set, err error) {
	next, err := c.cfg.Read()
	var from, until time.Time
	if err == nil {
		from, until, err = next.Check(c.cfg.Cluster, c.cfg.Node)
	}
	if err == nil {
		err = gossip.Keys(next.GossipKeys).Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	if err = keepWhatIsGone(c.set.Load(), &next); err != nil {
		err = fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.from, c.until = from, until
	if !next.AcceptPlain {
		c.plainSince = time.Time{}
	} else if c.plainSince.IsZero() {
		c.plainSince = time.Now()
	}
	return c.set.Swap(&next), err
}

// keepWhatIsGone copies gossip keys and names from old to next if next has none. A file that is
// gone, for example, must not end the encryption of gossip, and must not let in members that the
// names keep out. The error names what was copied.
func keepWhatIsGone(old, next *Set) (err error) {
	if old == nil {
		return nil
	}
	real := func(key []byte) bool { return len(key) > 0 }
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

// End is when the certificate ends, and whether that is soon.
func (c *Newest) End() (until time.Time, soon bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until, time.Until(c.until) < min(c.until.Sub(c.from)/10, endsSoon)
}

// AcceptsPlain reports whether members without TLS are accepted, and how long that has been so.
func (c *Newest) AcceptsPlain() (yes bool, since time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plainSince.IsZero() {
		return false, 0
	}
	return true, time.Since(c.plainSince)
}

// Reload reads credentials and gives their keys to g, which may be nil. If they are wrong the error
// says why, and the old ones stay. If only gossip keys or names are gone, only these stay.
func (c *Newest) Reload(g *gossip.Gossip) error {
	if c == nil {
		return nil
	}
	c.reload.Lock()
	defer c.reload.Unlock()
	old, err := c.read()
	until, soon := c.End()
	at, why := until.UTC().Format(time.RFC3339), ""
	switch {
	case err != nil:
		why = fmt.Sprintf("node %q goes on with the certificate that ends at %s: %v", c.cfg.Node, at, err)
	case soon:
		why = fmt.Sprintf("the certificate of node %q ends at %s", c.cfg.Node, at)
	}
	c.cfg.Found(why)
	if old == nil {
		return err
	}
	now := c.set.Load()
	if !bytes.Equal(old.Certificate.Certificate[0], now.Certificate.Certificate[0]) {
		c.cfg.Log.Info("new certificate in use", "until", at)
	}
	if now.AcceptPlain != old.AcceptPlain {
		c.cfg.Log.Info("the need for TLS has changed", "accept-plain", now.AcceptPlain)
	}
	if g == nil {
		return err
	}
	before := g.Keys().Encryption()
	changed, failed := g.SetKeys(now.GossipKeys)
	if changed {
		c.cfg.Log.Info("new gossip keys in use", "encryption", g.Keys().Encryption(), "before", before)
	}
	if failed != nil {
		c.cfg.Log.Error("new gossip keys are not in use: gossip goes on with those before",
			"encryption", before, "error", failed)
	}
	return errors.Join(err, failed)
}

// Watch reloads the credentials until quit.
func (c *Newest) Watch(g *gossip.Gossip, quit <-chan struct{}) {
	if c == nil {
		return
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		_ = c.Reload(g) // a finding or the log has the error
		select {
		case <-ticker.C:
		case <-quit:
			return
		}
	}
}
