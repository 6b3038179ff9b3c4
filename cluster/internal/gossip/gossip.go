package gossip

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
)

// Gossip is a node's part in the membership of its cluster. Start makes one; its
// methods may be called from any goroutine.
type Gossip struct {
	cfg      Config
	log      hclog.Logger
	list     *memberlist.Memberlist
	table    *table
	events   *eventQueue
	listener *listener
	addr     netip.AddrPort // advertised
	announce chan struct{}  // wakes the announcer

	stopJoin context.CancelFunc
	stop     chan struct{} // closed by Close
	wg       sync.WaitGroup

	mu      sync.Mutex // serializes Leave, Close and the announcer's use of list
	left    bool
	closing sync.Once
	closed  chan struct{} // closed when nothing runs any more
}

// Start binds, begins to look for the members and returns at once. It fails if
// the configuration is wrong or the address cannot be bound; an unreachable
// cluster is no error. The caller must Close what it gets.
func Start(cfg Config) (*Gossip, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := newGossip(cfg)
	bound, err := g.open()
	if err != nil {
		return nil, fmt.Errorf("start gossip of node %q: %w", cfg.Node, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.stopJoin = cancel
	j := g.newJoiner(bound, g.addr)
	g.wg.Go(func() { j.run(ctx) })
	g.wg.Go(func() { g.watchClashes(g.stop) })
	g.wg.Go(func() { g.runAnnouncer(g.stop) })
	g.wg.Go(func() { g.events.run(g.stop) })
	return g, nil
}

func newGossip(cfg Config) *Gossip {
	cfg.Timing = cfg.Timing.withDefaults()
	cfg.Join, cfg.KnownPeers = slices.Clone(cfg.Join), slices.Clone(cfg.KnownPeers)
	cfg.Voters = slices.Clone(cfg.Voters)
	if cfg.resolve == nil {
		cfg.resolve = resolve
	}
	if cfg.Found == nil {
		cfg.Found = func(findings.Kind, elector.NodeID, string) {}
	}
	cfg.streamTimeout = cmp.Or(cfg.streamTimeout, defaultStreamTimeout)
	log := cfg.Logger
	if log == nil {
		log = hclog.NewNullLogger()
	}
	g := &Gossip{
		cfg:      cfg,
		log:      log.With("node", cfg.Node),
		table:    newTable(),
		events:   newEventQueue(cfg.OnEvent),
		announce: make(chan struct{}, 1),
		stop:     make(chan struct{}),
		closed:   make(chan struct{}),
	}
	g.listener = &listener{
		self:    cfg.Node,
		voters:  cfg.Voters,
		table:   g.table,
		events:  g.events,
		log:     g.log,
		join:    make(chan struct{}, 1),
		clash:   newClashes(cfg.Found),
		own:     cfg.Meta.wire(false),
		refused: map[string]string{},
	}
	return g
}

// open binds the sockets and starts memberlist on them; it returns what was bound.
func (g *Gossip) open() (netip.AddrPort, error) {
	bind, err := g.resolveOne("Bind", g.cfg.Bind)
	if err != nil {
		return bind, err
	}
	tr, err := newTransport(&g.cfg, bind, g.table, g.log)
	if err != nil {
		return bind, err
	}
	bound := netip.AddrPortFrom(bind.Addr(), uint16(tr.GetAutoBindPort()))
	g.addr, err = g.advertised(bound)
	if err == nil {
		err = g.create(tr, bound)
	}
	if err != nil {
		_ = tr.Shutdown()
	}
	return bound, err
}

func (g *Gossip) create(tr *transport, bound netip.AddrPort) error {
	ip, port, err := tr.FinalAdvertiseAddr(advertiseHost(g.addr), int(g.addr.Port()))
	if err != nil {
		return fmt.Errorf("find an address to advertise for %s: %w", bound, err)
	}
	if addr, ok := netip.AddrFromSlice(ip); ok {
		g.addr = netip.AddrPortFrom(addr.Unmap(), uint16(port))
	}
	list, err := memberlist.Create(libraryConfig(g, tr, bound))
	if err != nil {
		return fmt.Errorf("start memberlist on %s: %w", bound, err)
	}
	g.list = list
	return nil
}

// advertiseHost leaves the choice among several interfaces to memberlist.
func advertiseHost(addr netip.AddrPort) string {
	if addr.Addr().IsUnspecified() {
		return ""
	}
	return addr.Addr().String()
}

// Members returns the other members, alive or remembered, in the order of their
// names. The slice is the caller's.
func (g *Gossip) Members() []Member { return g.table.list() }

// Local returns what this node tells the others.
func (g *Gossip) Local() Member {
	return Member{g.cfg.Node, g.addr.String(), g.listener.meta(), StateAlive}
}

func (g *Gossip) member(node elector.NodeID) Member {
	if node == g.cfg.Node {
		return g.Local()
	}
	for _, m := range g.Members() {
		if m.Node == node {
			return m
		}
	}
	return Member{Node: node}
}

// UpdateMeta replaces what this node tells the others, and returns before they
// have heard. It fails, and changes nothing, if m takes more than 512 bytes.
func (g *Gossip) UpdateMeta(m Meta) error {
	if err := g.listener.setMeta(func(w *wireMeta) { *w = m.wire(w.Leaving) }); err != nil {
		return fmt.Errorf("update metadata of node %q: %w", g.cfg.Node, err)
	}
	signal(g.announce)
	return nil
}

// runAnnouncer passes changed metadata on, apart from UpdateMeta because
// memberlist waits until it has been sent.
func (g *Gossip) runAnnouncer(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-g.announce:
			g.mu.Lock()
			if !g.left {
				g.tell(g.cfg.Timing.Gossip)
			}
			g.mu.Unlock()
		}
	}
}

// tell queues this node's metadata and waits for at most d until it has been sent.
func (g *Gossip) tell(d time.Duration) {
	if err := g.list.UpdateNode(d); err != nil {
		g.log.Debug("metadata is still on its way", "error", err)
	}
}
