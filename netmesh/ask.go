package netmesh

import "time"

// question waits for the answer to a ping that was sent after it was asked. It is
// put to the process that is linked when another one says that it is gone.
type question struct {
	after    uint64        // number of the newest ping before it
	answered chan struct{} // closed by the pong
}

// ask makes the link prove that the process at its other end lives, and waits for
// that, for the link's end, or for half the time of a handshake, so that a
// newcomer still gets its answer in time. It reports whether the process lives.
func (l *link) ask() bool {
	q := question{answered: make(chan struct{})}
	l.mu.Lock()
	q.after = l.meter.newest()
	l.questions = append(l.questions, q)
	l.mu.Unlock()
	nudge(l.probe)
	timer := time.NewTimer(l.m.cfg.HandshakeTimeout / 2)
	defer timer.Stop()
	select {
	case <-q.answered:
		return true
	case <-l.stop:
	case <-timer.C:
	case <-l.m.ctx.Done():
	}
	return false
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

// weigh judges a connection whose handshake has just begun, and reports why it is
// to be refused. A newcomer that says that the linked process is gone is believed
// only if that process does not contradict it.
func (m *Mesh) weigh(c *connection) *refusal {
	outcome, refused, kept := m.judged(c)
	switch outcome {
	case loses:
		// It would not dial if it had the link that is up: a ping finds out.
		nudge(kept.probe)
		return refused
	case doubted:
		if kept.ask() {
			return kept.p.contradicted(c)
		}
	case barred:
		return refused
	}
	m.awaitEnd(c)
	_, refused, _ = m.judged(c)
	return refused
}

// awaitEnd waits for the end of the evidence connection that has outlived its link, if c
// is of a later start: it proves that the process before is gone, and may be on its way.
// If it stands that process may live, and has time to make its link again.
func (m *Mesh) awaitEnd(c *connection) {
	m.mu.RLock()
	p := m.peers[c.node]
	if p == nil || !p.known || c.boot <= p.boot || p.link != nil || p.evidence == nil {
		m.mu.RUnlock()
		return
	}
	e := p.evidence
	m.mu.RUnlock()
	timer := time.NewTimer(m.cfg.HandshakeTimeout / 2)
	defer timer.Stop()
	select {
	case <-e.over:
	case <-e.done: // there is another link
	case <-timer.C:
	case <-m.ctx.Done():
	}
}

// judged is judge, and the link that c was compared with.
func (m *Mesh) judged(c *connection) (standing, *refusal, *link) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	p := m.peers[c.node]
	outcome, refused := p.judge(c)
	if p == nil {
		return outcome, refused, nil
	}
	return outcome, refused, p.link
}

// contradicted refuses c because the process that it claims to follow has answered.
// It stays out when that one is gone: it does not know what the other one voted.
func (p *peer) contradicted(c *connection) *refusal {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.copy = c.process
	return p.copied(c)
}
