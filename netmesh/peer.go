package netmesh

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/elector"
)

// peer is what is known of one member, with or without a link.
type peer struct {
	m          *Mesh
	node       elector.NodeID
	ctx        context.Context // of its dialer
	cancel     context.CancelFunc
	wake       waker // of the dialer
	callbacks  callbackLock
	queue      queue
	notes      notes
	traffic    traffic
	handshakes handshakes

	// Guarded by Mesh.mu.
	addr        string // of AddPeer; "" for a peer that came by itself, which nobody dials
	reached     string // where the process behind the newest link listens, as that showed; "": unknown
	elsewhere   bool   // the next dial is to reached: the one to addr has failed
	dialing     bool   // at the moment
	removed     bool   // RemovePeer was called, the link is on its way out
	known       bool   // identity and boot are set
	identity    uuid.UUID
	boot        uint64     // the highest seen
	process     uint64     // number of the process of that boot; 0 if unknown
	copy        uint64     // number of a process that runs on a copy of its directory; 0 for none
	keys        [][]byte   // of its links, the newest first, by which it proves that it is the same
	offered     []byte     // of the newest link that the process has asked for
	doubted     bool       // the process did not prove that, so its end proves nothing
	refusing    bool       // a dial to the address was refused since the link was lost
	processGone bool       // that process is no more: it said so, or it is proven dead
	link        *link      // nil if down
	evidence    *evidence  // of the newest link; nil if there is none, or nothing to learn from it
	dialLater   bool       // the next dial is not at once
	lostNow     bool       // the link was lost since the dialer looked last
	forgotten   bool       // Forget was called since the last link: nothing is known
	status      peerStatus // for Links alone
}

type peerStatus struct {
	since time.Time
	loss  elector.Evidence
	err   string
}

// send is called with Mesh.mu held.
func (p *peer) send(group string, msg *elector.Message) bool {
	if p == nil || p.link == nil {
		return false
	}
	if p.link.info.Version < version5 && hasRecord(msg) {
		known := *msg
		known.Entered, known.Cold = 0, false // an ack is one without these, too
		if hasRecord(&known) {
			return false
		}
		msg = &known
	}
	p.queue.push(group, msg)
	p.link.ready.wake()
	return true
}

// sameProcess reports whether a link to the process behind l is up, so that frames on l count.
// Those of a replaced connection do, too.
func (p *peer) sameProcess(l *link) bool {
	p.m.mu.RLock()
	defer p.m.mu.RUnlock()
	return p.link != nil && p.link.info.Boot == l.info.Boot
}

// isStranger reports whether the peer came by itself and surely has no vote. Called with Mesh.mu
// held.
func (p *peer) isStranger() bool {
	return p.addr == "" && !p.m.cfg.isVoter(p.node)
}

// drop forgets a peer that has no link. Called with Mesh.mu held.
func (p *peer) drop() {
	p.dropEvidence()
	p.cancel()
	delete(p.m.peers, p.node)
}

// install makes l, whose handshake is complete, the link to its peer, or lets it
// run out beside the one that is kept. A refusal means that l was not started.
func (m *Mesh) install(l *link) *refusal {
	m.mu.Lock()
	p := m.record(l.info.Node, false)
	m.mu.Unlock()
	if p == nil {
		return refuse(reasonCrowded,
			"node %s is leaving, or has no room for more members without a vote", m.cfg.Node)
	}
	l.p = p
	conn := l.conn // not through the fault layer
	p.callbacks.lock()
	defer p.callbacks.unlock()
	outcome, restarted, refused := p.place(l)
	if refused != nil {
		return refused
	}
	if l.dialed {
		// An error shows in the first read.
		j := join{Proofs: m.proofs(p.node, frameJoin, l.dial)}
		if frame, err := l.enc.encode(frameJoin, &j); err == nil {
			_, _ = conn.Write(frame)
		}
	}
	if outcome == keepNew {
		if restarted {
			m.handler.Died(p.node, elector.ProofReincarnated)
		}
		m.handler.LinkUp(l.info)
	}
	m.log.Debug("connected", "peer", p.node, "remote", l.info.Remote,
		"dialed", l.dialed, "kept", outcome == keepNew)
	return nil
}

// place decides about l and registers it.
func (p *peer) place(l *link) (outcome decision, restarted bool, refused *refusal) {
	m := p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return breaksRule, false, m.leaving()
	}
	if m.peers[p.node] != p || p.removed && l.dialed {
		return breaksRule, false, refuse(reasonRemoved, "node %s was removed meanwhile", p.node)
	}
	outcome, refused = m.judge(&l.connKey, &l.claims)
	switch outcome {
	case breaksRule, askFirst:
		return outcome, false, refused
	case keepOld:
		l.retire(p.link)
	case keepNew:
		restarted = p.setLink(l)
	}
	if m.cfg.Faults != nil {
		l.conn = m.cfg.Faults.Wrap(p.node, l.conn, l.frames.r)
		l.frames = newFrameReader(l.conn, maxFrame)
	}
	m.live[l] = struct{}{}
	m.links.Add(1)
	return outcome, restarted, nil
}

// setLink makes l the link and reports whether it shows that an earlier process is
// gone: a later start on its data directory, after its kernel has ended the evidence
// connection. Without that the directory may be a copy and the process alive.
// Called with Mesh.mu held.
func (p *peer) setLink(l *link) (restarted bool) {
	old := p.link
	later := p.known && l.identity == p.identity && l.boot > p.boot
	restarted = later && p.evidence != nil && p.evidence.seen == elector.EvidenceEOF // §6.6
	p.dropEvidence()
	p.trust(l)
	l.info.Identities = p.m.remember(p, l)
	if p.m.disowner == p.node {
		p.m.disowner = ""
	}
	p.processGone, p.forgotten, p.refusing = false, false, false
	p.known, p.identity, p.boot, p.process = true, l.identity, l.boot, l.process
	p.link, p.removed = l, false
	p.reached, p.elsewhere = l.info.Address, false
	if l.dialed {
		p.reached = l.info.Remote
	}
	p.status.since, p.status.err = time.Now(), ""
	if old != nil { // of the same process
		old.retire(l)
	}
	p.wake.wake()  // the dialer has nothing to do
	l.ready.wake() // what waits for the old one goes to the new one
	l.noted.wake()
	return restarted
}

// trust takes note of whether l shows that it leads to the process of the link before, and of
// its key. Called with Mesh.mu held.
func (p *peer) trust(l *link) {
	same := p.known && l.identity == p.identity && l.boot == p.boot
	p.doubted = same && (p.doubted || !l.claims.prove(p.key()))
	if !same {
		p.keys = nil
	}
	if l.info.Version >= version4 {
		p.keys = append([][]byte{l.key}, p.keys[:min(len(p.keys), maxKeys-1)]...)
	}
}

// key is that of the newest link to a process that can show it; nil if there is none. Called
// with Mesh.mu held.
func (p *peer) key() []byte {
	if len(p.keys) == 0 {
		return nil
	}
	return p.keys[0]
}

// lose takes note that l has ended, and tells the handler if it was the link.
func (m *Mesh) lose(l *link, ev elector.Evidence, err error) {
	p := l.p
	p.callbacks.lock()
	defer p.callbacks.unlock()
	if !p.unlink(l, ev, err) {
		return
	}
	log := m.logPeer
	if ev == elector.EvidenceGoodbye || ev == elector.EvidenceLocal {
		log = m.log.Debug // on purpose, at one end or the other
	}
	m.handler.LinkDown(p.node, ev)
	proof := p.prove()
	p.wake.wake() // now the dialer knows whether to wait
	log("link down", "peer", p.node, "evidence", ev.String(), "cause", err)
	p.logDeath(proof)
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.link == nil && p.isStranger() && m.peers[p.node] == p {
		p.drop() // or names that strangers invent would stay
	}
}

// unlink reports whether l was the link.
func (p *peer) unlink(l *link, ev elector.Evidence, err error) bool {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.link != l {
		return false
	}
	lived := time.Since(p.status.since)
	p.link, p.lostNow = nil, true
	p.queue.clear()
	p.notes.clear()
	// A lost peer is dialed at once, but not one that left on purpose, or that comes and goes.
	p.dialLater = ev == elector.EvidenceGoodbye || ev == elector.EvidenceLocal ||
		lived < p.m.cfg.times.redialMin
	p.status = peerStatus{since: time.Now(), loss: ev, err: err.Error()}
	var said *refusal
	p.processGone = errors.As(err, &said) && said.endsLink && said.Reason == reasonClosing
	if p.removed {
		p.drop()
	}
	return true
}
