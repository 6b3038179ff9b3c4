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

// defaultStreamTimeout bounds the dial of a stream, and each exchange on it.
const defaultStreamTimeout = 3 * time.Second

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

// Start binds its address, begins to look for the members, and returns at once. It fails if
// the metadata is too large, a key has a wrong size, or the address cannot be bound; an
// unreachable cluster is no error. The caller must close the result.
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

// libraryConfig starts from memberlist's settings for a LAN. Its log goes to DEBUG: people
// learn of the important part from changes of members and from failures to join.
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
	// A member that missed a probe has three probe periods to refute that it is dead if
	// enough others suspect it, and at most three times as long otherwise.
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = 3, 3
	// How long the name of a dead member stays bound to its address. A restarted node may
	// have another one and must be found at once. Zero would mean for ever.
	c.DeadNodeReclaimTime = time.Millisecond

	c.Delegate, c.Events, c.Conflict, c.Alive = g.members, g.members, g.members, g.members
	return c
}

// Local returns this node as it describes itself to the others.
func (g *Gossip) Local() Member {
	return Member{g.cfg.Node, g.addr.String(), g.cfg.Meta, StateAlive}
}

// Members returns the other members that are alive, and the voters that once were.
func (g *Gossip) Members() []Member { return g.members.known() }

// Saved returns a channel that is closed after Close, when the last call of Config.Save has
// returned.
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
	// With a longer time-out memberlist would wait until its rounds of gossip have sent first
	// the update and then the goodbye, which takes several periods. Pings carry both at once.
	_ = g.list.UpdateNode(time.Nanosecond) // zero would be no limit
	others := g.ping(g.members.alive())
	_ = g.list.Leave(time.Nanosecond)
	g.ping(others)
}

// ping pings members concurrently, and returns those that answer.
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
// and none will. If ctx ends first it returns the error of ctx, and goes on in the
// background; only an OnChange that blocks can cause that. Further calls wait for the same
// end.
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
