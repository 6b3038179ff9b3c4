package netmesh

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"

	"github.com/bmqelect/bmqelect/elector"
)

// Mesh is this process's end of all links. All methods are safe for concurrent
// use and, but for Close, return at once.
type Mesh struct {
	cfg        Config
	handler    Handler
	listener   net.Listener
	advertised string
	process    uint64 // tells this process from others on copies of its data directory; not 0
	stats      stats
	facts      facts // of every link
	findings   findings
	log        logger
	dials      atomic.Uint64

	ctx    context.Context // of dialers and handshakes; ends when Close begins
	cancel context.CancelFunc
	done   chan struct{} // closed when nothing is left
	links  sync.WaitGroup
	others sync.WaitGroup // accept loop, handshakes, dialers

	mu      sync.RWMutex // guards what follows and the fields of peer that say so
	closing bool
	peers   map[elector.NodeID]*peer
	live    map[*link]struct{}    // also those that are being closed
	pending map[net.Conn]struct{} // accepted, not links yet
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
	m := newMesh(cfg, h, listener)
	if cfg.Faults != nil {
		cfg.Faults.onReset(m.resetLink)
	}
	m.others.Go(m.accept)
	return m, nil
}

func newMesh(cfg Config, h Handler, listener net.Listener) *Mesh {
	m := &Mesh{
		cfg: cfg, handler: h, listener: listener, advertised: cfg.advertised(listener.Addr()),
		process: max(rand.Uint64(), 1),
		log:     logger{Logger: cfg.Logger.With("node", cfg.Node)},
		done:    make(chan struct{}), facts: ownFacts(cfg), peers: make(map[elector.NodeID]*peer),
		live: make(map[*link]struct{}), pending: make(map[net.Conn]struct{}),
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Addr returns the address that the mesh listens on.
func (m *Mesh) Addr() net.Addr { return m.listener.Addr() }

// Listener is the listener of the mesh, for a program that has its file held open by
// another process. It is not to be used otherwise.
func (m *Mesh) Listener() net.Listener { return m.listener }

// Advertised returns the host:port that the mesh tells its peers to reach it by.
func (m *Mesh) Advertised() string { return m.advertised }

// AddPeer makes node a member that is dialed at addr, at once and for ever, or
// changes its address; a link that is up stays. An empty addr, this node itself
// and a closed mesh are ignored.
func (m *Mesh) AddPeer(node elector.NodeID, addr string) {
	if node == m.cfg.Node || addr == "" || elector.NameProblem(node) != "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.record(node)
	if p == nil || m.closing || p.addr == addr && !p.removed {
		return
	}
	p.addr, p.removed, p.reach.settled = addr, false, false
	p.poke()
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
	p.addr, p.removed, p.known, p.proof = "", true, false, proofWanted{}
	m.findings.forget(node, true, true)
	if p.link == nil {
		m.drop(p)
		return
	}
	p.link.end(elector.EvidenceLocal, refuse(ReasonRemoved, "node %s removed %s", m.cfg.Node, node))
}

// Disconnect closes the link to peer with a goodbye that says why. Whoever
// dials may do so again, after a pause.
func (m *Mesh) Disconnect(peer elector.NodeID, why string) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.peers[peer]; p != nil && p.link != nil {
		p.link.end(elector.EvidenceLocal, refuse(ReasonRequested, "%s", why))
	}
}

// resetLink breaks the connections to peer as a broken network would.
func (m *Mesh) resetLink(peer elector.NodeID) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.peers[peer]; p != nil && p.link != nil {
		p.link.breakOff()
		if p.evidence != nil {
			reset(p.evidence.conn)
		}
	}
}

// record returns node's record, a new one if there is none, or nil if the mesh
// is closing or full. Called with mu held.
func (m *Mesh) record(node elector.NodeID) *peer {
	if p := m.peers[node]; p != nil {
		return p
	}
	if m.closing || len(m.peers) >= maxMembers {
		return nil
	}
	p := newPeer(m, node)
	m.peers[node] = p
	m.others.Go(p.dialLoop)
	return p
}

// drop forgets a peer that has no link. Called with mu held.
func (m *Mesh) drop(p *peer) {
	p.gone = true
	p.dropEvidence()
	p.cancel()
	delete(m.peers, p.node)
}
