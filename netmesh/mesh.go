package netmesh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/limit"
)

const (
	// maxMembers bounds the records that this process keeps.
	maxMembers = 1024
	// maxStrangers bounds the records that strangers with a valid handshake can create.
	maxStrangers = 256
)

// Mesh is this process's end of all links. All methods are safe for concurrent
// use and, except for Close, return at once.
type Mesh struct {
	cfg        Config
	handler    Handler
	started    time.Time
	observer   Observer // nil if the handler is none
	listener   net.Listener
	socket     socket // for datagrams
	advertised string
	process    uint64 // tells this process from others on copies of its data directory; not 0
	facts      atomic.Pointer[Facts]
	closed     [reasonEnd]atomic.Uint64
	log        logger
	dials      atomic.Uint64
	pending    *limit.Crowd[net.Conn] // accepted, not links yet

	ctx    context.Context // of dialers and handshakes; ends when Close begins
	cancel context.CancelFunc
	done   chan struct{} // closed when nothing is left
	links  sync.WaitGroup
	others sync.WaitGroup // accept loop, handshakes, dialers

	mu      sync.RWMutex // guards what follows and the fields of peer that say so
	closing bool
	peers   map[elector.NodeID]*peer
	// identities are Config.Identities as they are now.
	identities map[elector.NodeID][]uuid.UUID
	disowner   elector.NodeID     // says that the data directory here is outdated; "" if nobody does
	live       map[*link]struct{} // also those that are being closed
	// offered are the keys given to nodes without a record that are asking for a link.
	offered map[elector.NodeID][]byte
}

// Listen checks cfg, starts to listen and accepts members from then on. It
// dials nobody until AddPeer. The error is Config.Validate's or says why the
// address cannot be listened on.
func Listen(cfg Config, h Handler) (*Mesh, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if h == nil {
		return nil, errors.New("netmesh: no handler")
	}
	cfg = cfg.withDefaults()
	listener, err := cfg.Network.Listen(cfg.Bind)
	if err != nil {
		return nil, fmt.Errorf("netmesh: node %s: listen on %s: %w", cfg.Node, cfg.Bind, err)
	}
	m := &Mesh{
		cfg: cfg, handler: h, started: time.Now(),
		listener: listener, advertised: cfg.advertised(listener.Addr()),
		process: max(rand.Uint64(), 1),
		log: logger{
			Logger: cfg.Logger.With("node", cfg.Node), refused: limit.Log[warning]{Most: maxRefusals},
		},
		done: make(chan struct{}), peers: make(map[elector.NodeID]*peer),
		live: make(map[*link]struct{}), identities: map[elector.NodeID][]uuid.UUID{},
		offered: map[elector.NodeID][]byte{},
		pending: limit.NewCrowd[net.Conn](maxPending),
	}
	maps.Copy(m.identities, cfg.Identities)
	m.facts.Store(&cfg.Facts)
	m.observer, _ = h.(Observer)
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.listenPackets()
	m.others.Go(m.accept)
	m.others.Go(m.watchLinks)
	return m, nil
}

// Addr returns the address that the mesh listens on.
func (m *Mesh) Addr() net.Addr { return m.listener.Addr() }

// Listener returns the listener of the mesh, for a program that lets another process hold its
// file open. It must not be used otherwise.
func (m *Mesh) Listener() net.Listener { return m.listener }

// Tell replaces Config.Facts, and tells the peers. Facts that no correct peer would tell are an
// error and change nothing.
func (m *Mesh) Tell(f Facts) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("netmesh: Facts: %w", err)
	}
	m.facts.Store(&f)
	m.mu.RLock()
	defer m.mu.RUnlock()
	for l := range m.live {
		l.pingNow.wake() // facts go with pings
	}
	return nil
}

// AddPeer makes node a member that is dialed at addr, at once and for ever, or
// changes its address for the next dial; a link that is up stays. An empty addr, this node itself
// and a closed mesh are ignored.
func (m *Mesh) AddPeer(node elector.NodeID, addr string) {
	if node == m.cfg.Node || addr == "" || elector.NameProblem(node) != "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.record(node, true)
	if p == nil || m.closing || p.addr == addr && !p.removed {
		return
	}
	if p.addr == "" || p.removed { // others wait for their next dial: anybody may tell addresses
		p.wake.wake()
	}
	p.addr, p.removed, p.elsewhere = addr, false, false
}

// RemovePeer says goodbye to node, dials it no more and forgets its identity and
// boot counter: another process may take its name. If it dials here it is
// accepted again, like any unknown node.
func (m *Mesh) RemovePeer(node elector.NodeID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.peers[node]
	if p == nil {
		return
	}
	p.addr, p.reached, p.removed, p.known = "", "", true, false
	if p.link == nil {
		p.drop()
		return
	}
	p.link.end(elector.EvidenceLocal, refuse(reasonRemoved, "node %s removed %s", m.cfg.Node, node))
}

// Forget lets any process take the name of node from now on, also one with another data
// directory. It is for a machine that is gone for good without a proof of its death. It fails
// while a link to node stands, and for the time of quiet after the last one was lost or this mesh
// began: until then the process may rely on the promises of its peers. To forget an unknown node
// is no error.
func (m *Mesh) Forget(node elector.NodeID, quiet time.Duration) error {
	say := func() {} // without the lock: a logger may block
	defer func() { say() }()
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.peers[node]
	if p == nil {
		return nil
	}
	if p.link != nil {
		return fmt.Errorf("the process of node %q lives: there is a link to it%s", node, p.where())
	}
	if since := time.Since(p.status.since); since < quiet {
		return fmt.Errorf("the link to node %q is down for %s only; "+
			"after %s nothing that was promised to it is left", node, since.Round(time.Millisecond), quiet)
	}
	if p.known {
		who := []any{"peer", node, "identity", p.identity, "boot", p.boot}
		say = func() { m.log.Info("member forgotten: the next process of its name is taken in", who...) }
	}
	if all := m.identities[node]; len(all) > 0 {
		m.identities[node] = all[len(all)-1:] // the operator has decided
	}
	p.known, p.processGone, p.copy, p.forgotten, p.reached = false, false, 0, true, ""
	return nil
}

// Disconnect closes the link to peer with a goodbye that says why. Whoever
// dials may do so again, after a pause.
func (m *Mesh) Disconnect(peer elector.NodeID, why string) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.peers[peer]; p != nil && p.link != nil {
		p.link.end(elector.EvidenceLocal, refuse(reasonRequested, "%s", why))
	}
}

// Send queues msg for a peer, or for all that are connected if to is
// elector.AllMembers, and never blocks. All that waits for a peer leaves in as few frames
// as hold it. A message replaces an older one of its group and kind that still waits, and
// goes behind all others. The result is whether the message was queued, by at least one
// peer for AllMembers: false if there is no link, or if group or a name in msg is longer
// than MaxNameLength. True is no promise that it arrives.
func (m *Mesh) Send(to elector.NodeID, group string, msg elector.Message) bool {
	if NameProblem(group) != "" || max(len(msg.Leader), len(msg.Successor)) > MaxNameLength {
		return false
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if to != elector.AllMembers {
		return m.peers[to].send(group, &msg)
	}
	sent := false
	for _, p := range m.peers {
		sent = p.send(group, &msg) || sent
	}
	return sent
}

// Close says goodbye on all links, waits until their ends are reported, closes
// the listener last and returns when no goroutine is left. If ctx ends first, connections
// are reset and the error says so; what is left then ends as soon as the handler
// returns. Close may be called any number of times, also at the same time.
func (m *Mesh) Close(ctx context.Context) error {
	m.mu.Lock()
	first := !m.closing
	m.closing = true
	m.mu.Unlock()
	if first {
		go m.shutdown()
	}
	select {
	case <-m.done:
		return nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.peers {
		p.dropEvidence()
	}
	for l := range m.live {
		l.breakOff()
	}
	for _, conn := range m.pending.All() {
		reset(conn)
	}
	_ = m.listener.Close()
	return fmt.Errorf("netmesh: node %s: close: %w", m.cfg.Node, ctx.Err())
}

// shutdown closes everything, the listener last: as long as this process can
// be anybody's leader, nobody's dial is refused: a refusal is half of a proof of death.
func (m *Mesh) shutdown() {
	m.cancel()
	m.mu.RLock()
	for l := range m.live {
		l.end(elector.EvidenceLocal, refuse(reasonClosing, "node %s is leaving", m.cfg.Node))
	}
	for _, conn := range m.pending.All() {
		_ = conn.SetReadDeadline(time.Now().Add(goodbyeTime)) // fails as the next read does
	}
	m.mu.RUnlock()
	m.links.Wait()
	m.mu.Lock()
	for _, p := range m.peers {
		p.dropEvidence()
	}
	m.mu.Unlock()
	_ = m.listener.Close() // nothing to be done about a failure
	if m.socket.conn != nil {
		_ = m.socket.conn.Close()
	}
	m.others.Wait()
	close(m.done)
}

// record returns node's record, a new one if there is none, or nil if the mesh is closing or has
// no room. A node is invited if AddPeer named it, and it did not come by itself. Called with mu
// held.
func (m *Mesh) record(node elector.NodeID, invited bool) *peer {
	if p := m.peers[node]; p != nil {
		return p
	}
	if m.closing || !m.hasRoom(node, invited) {
		return nil
	}
	p := &peer{
		m: m, node: node, callbacks: make(callbackLock, 1), wake: newWaker(),
		status: peerStatus{since: time.Now()}, offered: m.offered[node],
	}
	p.handshakes.least, p.handshakes.most = m.cfg.times.handshake, m.cfg.times.handshakeMost
	p.ctx, p.cancel = context.WithCancel(m.ctx)
	m.peers[node] = p
	m.others.Go(p.dialLoop)
	return p
}

// hasRoom reports whether there is room for one more record. Called with mu held.
func (m *Mesh) hasRoom(node elector.NodeID, invited bool) bool {
	strangers := 0
	for _, p := range m.peers {
		if p.isStranger() {
			strangers++
		}
	}
	return len(m.peers) < maxMembers &&
		(invited || m.cfg.isVoter(node) || strangers < maxStrangers)
}

// refused tells the observer of a handshake that failed by a rule.
func (m *Mesh) refused(peer elector.NodeID, at string, err error) {
	var r *refusal
	if m.observer != nil && errors.As(err, &r) && r.Reason != reasonNone {
		m.observer.Refused(peer, r.Reason, fmt.Sprintf("%v; at %s", r, at))
	}
}
