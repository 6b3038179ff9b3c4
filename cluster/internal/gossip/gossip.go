package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"
)

const defaultStreamTimeout = 3 * time.Second // to open a stream, and for each exchange on it

// Gossip is a node's part in the membership of its cluster. Start makes one; its
// methods may be called from any goroutine.
type Gossip struct {
	cfg     Config
	log     hclog.Logger
	list    *memberlist.Memberlist
	members *members
	arrived func() uint64 // counts the packets that came in
	bound   netip.AddrPort
	addr    netip.AddrPort // advertised
	joined  atomic.Pointer[[]Joined]

	remember *rememberer
	stopJoin context.CancelFunc
	stop     chan struct{} // closed by Close
	wg       sync.WaitGroup

	transport *transport

	mu      sync.Mutex // serializes SetKeys, Leave and Close
	left    bool
	closing sync.Once
	closed  chan struct{} // closed when nothing runs any more
}

// Start binds, begins to look for the members and returns at once. It fails if the
// metadata is too large or the address cannot be bound; an unreachable cluster is no
// error. The caller must Close what it gets.
func Start(cfg Config) (*Gossip, error) {
	if _, err := encodeMeta(wireMeta{cfg.Meta, true}); err != nil {
		return nil, fmt.Errorf("start gossip of node %q: Meta: %w", cfg.Node, err)
	}
	if err := cfg.Keys.Check(); err != nil {
		return nil, fmt.Errorf("start gossip of node %q: %w", cfg.Node, err)
	}
	cfg = cfg.withDefaults()
	log := cfg.Logger.With("node", cfg.Node)
	g := &Gossip{
		cfg: cfg, log: log, members: newMembers(&cfg, log),
		stop: make(chan struct{}), closed: make(chan struct{}),
	}
	g.remember = newRememberer(cfg.Save, g.members.toRemember, log)
	if err := g.open(); err != nil {
		return nil, fmt.Errorf("start gossip of node %q: %w", cfg.Node, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.stopJoin = cancel
	j := &joiner{g: g, failed: map[string]int{}}
	g.wg.Go(func() { j.run(ctx) })
	go g.remember.run(g.stop)
	g.wg.Go(func() {
		g.members.run(g.stop, func(m Member) {
			g.cfg.OnChange(m)
			wake(g.remember.changed)
		})
	})
	return g, nil
}

// open binds the sockets and starts memberlist on them.
func (g *Gossip) open() error {
	bind, err := g.resolveOne("Bind", g.cfg.Bind)
	if err != nil {
		return err
	}
	tr, err := newTransport(&g.cfg, bind, g.members, g.log)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tr.Shutdown()
		}
	}()
	g.bound = netip.AddrPortFrom(bind.Addr(), uint16(tr.GetAutoBindPort()))
	if g.addr, err = g.advertised(g.bound); err != nil {
		return err
	}
	host := g.addr.Addr().String()
	if g.addr.Addr().IsUnspecified() {
		host = "" // memberlist chooses one of several interfaces
	}
	ip, port, err := tr.FinalAdvertiseAddr(host, int(g.addr.Port()))
	if err != nil {
		return fmt.Errorf("find an address to advertise for %s: %w", g.bound, err)
	}
	if addr, ok := netip.AddrFromSlice(ip); ok {
		g.addr = netip.AddrPortFrom(addr.Unmap(), uint16(port))
	}
	g.arrived, g.transport = tr.arrived.Load, tr
	if g.list, err = memberlist.Create(g.libraryConfig()); err != nil {
		return fmt.Errorf("start memberlist on %s: %w", g.bound, err)
	}
	return nil
}

// libraryConfig starts from memberlist's settings for a LAN. Its log goes to DEBUG:
// what matters of it reaches people as events of members and as failures to join.
func (g *Gossip) libraryConfig() *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = string(g.cfg.Node)
	c.Transport = g.transport
	c.UDPBufferSize -= 2 + len(g.cfg.Cluster) + sealSize // for the envelope
	c.BindAddr, c.BindPort = g.bound.Addr().String(), int(g.bound.Port())
	c.AdvertiseAddr, c.AdvertisePort = g.addr.Addr().String(), int(g.addr.Port())
	c.Logger = debugLogger(g.log)
	c.EnableCompression = g.cfg.compress

	t := g.cfg.Timing
	c.ProbeInterval, c.ProbeTimeout = t.Probe, min(t.Probe/2, 500*time.Millisecond)
	c.GossipInterval, c.PushPullInterval = t.Gossip, t.Sync
	c.TCPTimeout = g.cfg.streamTimeout
	// A member that misses a probe may object for three probe periods if enough others
	// agree that it is gone, and for at most three times that.
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = 3, 3
	// For so long a name stays with the address of a dead member: a restarted node must
	// be found at once. Zero would mean for ever.
	c.DeadNodeReclaimTime = time.Millisecond

	c.Delegate, c.Events, c.Conflict, c.Alive = g.members, g.members, g.members, g.members
	return c
}

// Local returns what this node tells the others.
func (g *Gossip) Local() Member {
	return Member{g.cfg.Node, g.addr.String(), g.cfg.Meta, StateAlive}
}

// Members returns the other members that are alive, and all voters that ever were.
func (g *Gossip) Members() []Member { return g.members.known() }

// Saved is closed when, after Close, Config.Save is not called any more.
func (g *Gossip) Saved() <-chan struct{} { return g.remember.done }

// Leave says goodbye to the others, so that they see this node as left, not as dead. It
// takes a round trip, or half a probe period if a member does not answer. Leaving twice,
// or after Close, does nothing. Close must follow.
func (g *Gossip) Leave() {
	g.stopJoin()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left {
		return
	}
	g.left = true
	g.members.setMeta(wireMeta{g.cfg.Meta, true})
	// memberlist would wait until its rounds of gossip have sent the one and then the other,
	// which takes several of their periods. It puts what is to be sent into pings, too.
	_ = g.list.UpdateNode(time.Nanosecond) // zero would be no limit
	others := g.ping(g.members.alive())
	_ = g.list.Leave(time.Nanosecond)
	g.ping(others)
}

// ping pings members, all at the same time, and returns those that answer.
func (g *Gossip) ping(members []Member) (answered []Member) {
	var mu sync.Mutex
	var pings sync.WaitGroup
	for _, m := range members {
		pings.Go(func() {
			addr, err := netip.ParseAddrPort(m.GossipAddr)
			if err == nil {
				_, err = g.list.Ping(string(m.Node), net.UDPAddrFromAddrPort(addr))
			}
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answered = append(answered, m)
		})
	}
	pings.Wait()
	return answered
}

// Close stops everything without a goodbye. When it returns nil, no callback runs
// and none will. It returns ctx's error if ctx ends first, which only a consumer
// that blocks in OnChange can cause; the rest goes on in the background. Every call
// after the first waits for the same end.
func (g *Gossip) Close(ctx context.Context) error {
	g.closing.Do(func() { go g.shutDown() })
	select {
	case <-g.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close gossip of node %q: %w", g.cfg.Node, ctx.Err())
	}
}

func (g *Gossip) shutDown() {
	g.stopJoin()
	close(g.stop)
	g.mu.Lock()
	g.left = true // memberlist panics when told to leave after its shutdown
	err := errors.Join(g.transport.Shutdown(), g.list.Shutdown())
	g.mu.Unlock()
	if err != nil {
		g.log.Debug("memberlist did not shut down cleanly", "error", err)
	}
	g.wg.Wait()
	close(g.closed)
}
