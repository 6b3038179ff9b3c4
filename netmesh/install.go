package netmesh

import (
	"errors"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// install makes l, whose handshake is complete, the link to its peer, or lets it
// run out beside the one that is kept. A refusal means that l was not started.
func (m *Mesh) install(l *link) *refusal {
	m.mu.Lock()
	p := m.record(l.info.Node)
	m.mu.Unlock()
	if p == nil {
		return refuse(ReasonCrowded, "node %s is leaving or knows %d members already", m.cfg.Node, maxMembers)
	}
	l.p = p
	p.takeTurn()
	defer p.leaveTurn()
	outcome, reborn, refused := m.place(p, l)
	if refused != nil {
		return refused
	}
	if l.dialed {
		l.join()
	}
	if outcome == wins {
		m.announce(p, l, reborn)
	}
	m.log.Debug("connected", "peer", p.node, "remote", l.info.Remote, "dialed", l.dialed, "kept", outcome == wins)
	return nil
}

// announce tells the handler that l is up, with the peer's turn held.
func (m *Mesh) announce(p *peer, l *link, reborn bool) {
	m.findings.forget(p.node, reborn, true)
	if reborn {
		m.handler.Died(p.node, elector.ProofReincarnated)
	}
	m.handler.LinkUp(l.info)
}

// place decides about l and registers it.
func (m *Mesh) place(p *peer, l *link) (outcome standing, reborn bool, refused *refusal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return barred, false, refuse(ReasonClosing, "node %s is leaving", m.cfg.Node)
	}
	if p.gone || p.removed && l.dialed {
		return barred, false, refuse(ReasonRemoved, "node %s was removed meanwhile", p.node)
	}
	outcome, refused = p.judge(&l.connection)
	switch outcome {
	case barred, doubted:
		return outcome, false, refused
	case loses:
		l.retire(p.link)
	case wins:
		reborn = p.adopt(l)
	}
	m.live[l] = struct{}{}
	m.links.Add(1)
	return outcome, reborn, nil
}

// adopt makes l the link and reports whether it shows that an earlier process is
// gone: a later start on its data directory, after its kernel has ended the evidence
// connection. Without that the directory may be a copy and the process alive.
// Called with Mesh.mu held.
func (p *peer) adopt(l *link) (reborn bool) {
	old := p.link
	later := p.known && l.identity == p.identity && l.boot > p.boot
	reborn = later && p.evidenceEnd() == elector.EvidenceEOF // §6.6
	p.dropEvidence()
	p.departed, p.forgotten = false, false
	p.known, p.identity, p.boot, p.process = true, l.identity, l.boot, l.process
	if l.dialed || old == nil {
		p.reach = reach{settled: l.dialed}
	}
	p.link, p.removed, p.proof = l, false, proofWanted{}
	p.epoch++
	p.status.since, p.status.err = time.Now(), ""
	if old != nil { // of the same process
		old.retire(l)
	}
	p.poke()   // the dialer may have something to find out
	l.signal() // what waits for the old one goes to the new one
	return reborn
}

// lose takes note that l has ended, and tells the handler if it was the link.
func (m *Mesh) lose(l *link, ev elector.Evidence, err error) {
	p := l.p
	p.takeTurn()
	defer p.leaveTurn()
	if !m.unplace(p, l, ev, err) {
		return
	}
	log := m.log.Info
	if ev == elector.EvidenceGoodbye || ev == elector.EvidenceLocal {
		log = m.log.Debug // on purpose, at one end or the other
	} else if !m.isVoter(p.node) {
		// Whoever is no voter may come and go, under one name or many: one line a
		// minute tells of all of them.
		if _, due := m.log.due(warning{"link down", ""}, time.Now()); !due {
			log = m.log.Debug
		}
	}
	m.findings.forget(p.node, true, false)
	log("link down", "peer", p.node, "evidence", ev.String(), "cause", err)
	m.handler.LinkDown(p.node, ev)
	p.poke()
}

// isVoter reports whether a node is one of the voters; each is if they are not known.
func (m *Mesh) isVoter(node elector.NodeID) bool {
	return len(m.cfg.Voters) == 0 || slices.Contains(m.cfg.Voters, node)
}

func (m *Mesh) unplace(p *peer, l *link, ev elector.Evidence, err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.link != l {
		return false
	}
	lived := time.Since(p.status.since)
	p.link = nil
	p.queue.clear()
	// A loss is looked into at once; who left on purpose, or comes and goes, is not pressed.
	p.lazy = ev == elector.EvidenceGoodbye || ev == elector.EvidenceLocal || lived < m.cfg.RedialMin
	p.status = peerStatus{since: time.Now(), loss: ev, err: err.Error()}
	var said *goodbyeError
	p.departed = errors.As(err, &said) && said.Reason == ReasonClosing
	if p.evidence != nil {
		p.evidence.provable = p.provable(l)
		p.seekProof()
	}
	p.reach = reach{}
	if p.removed {
		m.drop(p)
	}
	return true
}

// provable reports whether how the evidence connection of l ends, and a dial after it,
// says something about the process at the other end: it is known that nothing stands
// between, and its address is not one that refused while it lived. Called with Mesh.mu
// held.
func (p *peer) provable(l *link) bool {
	return !p.m.cfg.NoDeathProof && l.direct.Load() && !p.reach.failing()
}

// prove tells the handler that the process behind the link of that epoch is
// gone: its kernel ended the evidence connection, and now a dial was refused.
func (m *Mesh) prove(p *peer, epoch uint64) {
	p.takeTurn()
	defer p.leaveTurn()
	m.mu.Lock()
	valid := p.epoch == epoch && p.link == nil && !p.gone && !m.closing
	p.departed = p.departed || valid
	m.mu.Unlock()
	if valid { // §6.5
		m.log.Info("peer is dead", "peer", p.node, "proof", elector.ProofRefusedAfterEOF.String())
		m.handler.Died(p.node, elector.ProofRefusedAfterEOF)
	}
}
