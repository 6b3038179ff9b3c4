package netmesh

import (
	"time"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/elector"
)

// connKey is what decides between two connections to one peer.
type connKey struct {
	node     elector.NodeID
	identity uuid.UUID
	boot     uint64
	process  uint64 // random number of the process; 0 if it tells none
	dialer   elector.NodeID
	dial     uint64 // counts the dials of the dialer's process
}

// connKey returns what decides between the connection of this handshake and another one.
func (h *hello) connKey(dialer elector.NodeID) connKey {
	return connKey{
		node: elector.NodeID(h.Node), identity: [16]byte(h.Identity), boot: h.Boot, process: h.Process,
		dialer: dialer, dial: h.Dial,
	}
}

// decision is what becomes of a new connection.
type decision uint8

const (
	keepNew    decision = iota // it becomes the link
	keepOld                    // the link that is up is kept
	breaksRule                 // it breaks a rule
	askFirst                   // the process that is linked, or was a moment ago, may live
)

// judge decides about a connection to p, the record of its node or nil. It is the
// one place where identities, boots and connections are compared. Called with
// Mesh.mu held.
func (p *peer) judge(c *connKey, by *claimed) (decision, *refusal) {
	if p == nil || !p.known {
		return keepNew, nil
	}
	switch {
	case c.identity != p.identity && p.processGone:
		return keepNew, nil // a new data directory, and nobody runs on the old one
	case c.identity != p.identity: // §6.9
		// A second process under one name, or a data directory that was lost:
		// a misconfiguration, and no proof that the first one is gone.
		return breaksRule, refuse(ReasonDuplicateName,
			"node %q has identity %s, and identity %s is known by that name%s",
			c.node, c.identity, p.identity, p.where())
	case c.boot < p.boot, c.boot == p.boot && c.twin(p.process),
		c.process != 0 && c.process == p.copy:
		return breaksRule, p.copied(c)
	case c.boot > p.boot && p.link != nil:
		// A start on the same directory ends the old process first. If that one
		// lives, the newcomer has a copy, and its word must not count.
		return askFirst, refuse(reasonAlreadyConnected,
			"node %q is connected at boot %d%s, and boot %d must wait until that ends",
			c.node, p.boot, p.where(), c.boot)
	case p.link == nil && p.mayReturn(c, by):
		return askFirst, refuse(reasonAlreadyConnected, "the process of node %q at boot %d was "+
			"linked just now, and may make its link again", c.node, p.boot)
	case c.boot > p.boot, p.link == nil, isClosed(p.link.stop):
		return keepNew, nil
	}
	// Both connections are between the same two processes, and both ends decide alike.
	kept := &p.link.connKey
	switch {
	case c.dialer == kept.dialer && c.dial > kept.dial, c.dialer < kept.dialer:
		if !by.prove(p.key()) { // a stranger may claim to be the same process
			return askFirst, refuse(reasonAlreadyConnected,
				"node %q is connected%s, and this connection does not show that it is of the same process",
				c.node, p.where())
		}
		return keepNew, nil
	case c.dialer == kept.dialer:
		return keepOld, refuse(reasonStale, "dial %d of node %q, and dial %d is connected",
			c.dial, c.dialer, kept.dial)
	}
	return keepOld, refuse(reasonAlreadyConnected,
		"the connection that node %q dialed is kept, not that of node %q", kept.dialer, c.dialer)
}

// mayReturn reports whether the process that lost its link a moment ago may come back, while c
// does not show that it comes from that process or a later start. Nothing proves that the process
// is gone, and without TLS anybody may call first. Called with Mesh.mu held.
func (p *peer) mayReturn(c *connKey, by *claimed) bool {
	shown := by.authenticated || c.boot == p.boot && by.prove(p.key())
	ended := p.evidence != nil && p.evidence.seen == elector.EvidenceEOF
	return !shown && !ended && !p.refusing && !p.processGone && p.key() != nil &&
		p.status.loss == elector.EvidenceReset && time.Since(p.status.since) < p.m.cfg.times.idle
}

// judge is peer.judge after the check that the data directory was not replaced.
// Called with mu held.
func (m *Mesh) judge(c *connKey, by *claimed) (decision, *refusal) {
	if refused := m.outdated(c); refused != nil {
		return breaksRule, refused
	}
	return m.peers[c.node].judge(c, by)
}

// twin reports whether c surely leads to another process than the one of that
// number. Old builds tell no number.
func (c *connKey) twin(process uint64) bool {
	return c.process != 0 && process != 0 && c.process != process
}

// copied refuses c because its data directory cannot be the one of the known process: each start
// on a directory raises its boot counter.
func (p *peer) copied(c *connKey) *refusal {
	return refuse(ReasonCopied,
		"node %q comes at boot %d of identity %s, and another process was seen at boot %d of it%s: "+
			"the data directory was copied, or restored from a copy",
		c.node, c.boot, c.identity, p.boot, p.where())
}

// where says, for the text of a refusal, where the known process is connected.
func (p *peer) where() string {
	if p.link == nil {
		return ""
	}
	return ", connected at " + p.link.info.Remote
}

// judgeNewcomer judges a connection whose handshake has just begun, and reports why it is
// to be refused. A newcomer that says that the linked process is gone is believed
// only if that process does not contradict it.
func (m *Mesh) judgeNewcomer(c *connKey, by *claimed) *refusal {
	judge := func() (decision, *refusal, *link) {
		m.mu.RLock()
		defer m.mu.RUnlock()
		p := m.peers[c.node]
		outcome, refused := m.judge(c, by)
		if p == nil {
			return outcome, refused, nil
		}
		return outcome, refused, p.link
	}
	outcome, refused, kept := judge()
	switch outcome {
	case keepOld:
		// The peer would not dial if it had the link that is up: a ping finds out.
		kept.pingNow.wake()
		return refused
	case askFirst:
		if kept != nil && kept.lives() {
			// The newcomer stays out even after the linked process is gone: it does not know
			// how that process voted.
			m.mu.Lock()
			defer m.mu.Unlock()
			if c.boot == kept.boot {
				return refused // it may be the same process, whose other connection stands
			}
			if c.process != kept.process {
				kept.p.copy = c.process
			}
			return kept.p.copied(c)
		}
	case breaksRule:
		return refused
	}
	m.awaitEnd(c)
	_, refused, _ = judge()
	return refused
}

// question is put to the process that is linked when another one says that it is gone. It waits
// for the answer to a ping that is sent later.
type question struct {
	after    uint64        // number of the newest ping before the question
	answered chan struct{} // closed by the pong
}

// lives reports whether the process at the other end of the link proves that it lives. It waits
// at most for the link's end or for half the time of a handshake, so that a newcomer still gets
// its answer in time.
func (l *link) lives() bool {
	q := question{answered: make(chan struct{})}
	l.mu.Lock()
	q.after = l.meter.newest()
	l.questions = append(l.questions, q)
	l.mu.Unlock()
	l.pingNow.wake()
	pause(l.m.ctx, l.m.cfg.times.handshake/2, q.answered, l.stop)
	return isClosed(q.answered)
}

// answer ends the questions that a pong of that number answers.
func (l *link) answer(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.questions[:0]
	for _, q := range l.questions {
		if number > q.after {
			close(q.answered)
			continue
		}
		rest = append(rest, q)
	}
	l.questions = rest
}

// awaitEnd waits for the end of an evidence connection that has outlived its link, if c comes from
// a later start. That end proves that the process before is gone, and may be on its way. While the
// connection stands, that process may live, and has time to make its link again.
func (m *Mesh) awaitEnd(c *connKey) {
	m.mu.RLock()
	p := m.peers[c.node]
	if p == nil || !p.known || c.boot <= p.boot || p.link != nil || p.evidence == nil {
		m.mu.RUnlock()
		return
	}
	e := p.evidence
	m.mu.RUnlock()
	pause(m.ctx, m.cfg.times.handshake/2, e.over, e.dropped) // dropped: there is another link
}
