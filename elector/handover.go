package elector

import "fmt"

// HandoverCause says what makes a leader hand over. A stronger cause replaces a
// weaker one that is under way; they are in ascending order.
type HandoverCause uint8

// The causes. HandoverNone is the invalid zero.
const (
	HandoverNone     HandoverCause = iota
	HandoverTakeover               // Config.Takeover: a voter of higher priority is fit
	HandoverUnable                 // Eligible{false}
	HandoverTransfer               // Transfer
	HandoverResign                 // Resign
	HandoverStop                   // Stop, not abrupt
	handoverEnd
)

var handovers = [handoverEnd]struct {
	name string
	why  Reason
}{
	HandoverNone:     {"none", ReasonNone},
	HandoverTakeover: {"takeover", Transferred},
	HandoverUnable:   {"unable", Resigned},
	HandoverTransfer: {"transfer", Transferred},
	HandoverResign:   {"resign", Resigned},
	HandoverStop:     {"stop", Stopped},
}

// String returns the cause's name in lower case.
func (c HandoverCause) String() string {
	if c < handoverEnd {
		return handovers[c].name
	}
	return fmt.Sprintf("handover(%d)", uint8(c))
}

// Handover is a leader's handover that is under way. It waits for the target's
// word that it is there, then for the guarded work to stop. The zero Handover is
// none.
type Handover struct {
	// To is the successor. After Resign and Stop it is only a preference, "" for
	// none: the best at the moment of the cession is named.
	To    NodeID
	Cause HandoverCause
	Why   Reason // of the transition that ends it
	Asked Time   // an ack by To of what was sent from then on is its word; 0 if nobody is asked
	// End is when the leader leads on without that word, or, if Stopping, the
	// latest end of the guarded work: it cedes then, whether or not that stopped.
	End      Time
	Stopping bool // the guarded work was told to stop (Effects.StopWork)
}

// Handover returns the handover that is under way; the zero Handover if there is
// none. A leader that is still one when it has ended leads on.
func (m *Machine) Handover() Handover { return m.state.Leader.Handover }

// transfer asks a follower whether it is there; a leader that could not hand over
// to it ignores it.
func (m *Machine) transfer(to NodeID) {
	if to == "" {
		to = m.BestSuccessor()
	}
	if m.Transferable(to) == nil && m.mayReplace(HandoverTransfer) {
		m.handOverTo(to, HandoverTransfer)
		m.greet(to)
	}
}

// mayReplace reports whether a handover for the given cause goes before the one
// that is under way.
func (m *Machine) mayReplace(c HandoverCause) bool {
	h := &m.state.Leader.Handover
	return c > h.Cause || c == h.Cause && !h.Stopping
}

// handOverTo waits for a heartbeat to be acked. The target's last ack may be as
// old as the lease: if it was paused or cut off meanwhile, stepping down for its
// sake would leave nobody to lead.
func (m *Machine) handOverTo(to NodeID, c HandoverCause) {
	s := &m.state
	h := Handover{To: to, Cause: c, Why: handovers[c].why, Asked: s.Now, End: s.Now.Add(m.cfg.Timing.ElectionResult)}
	if old := s.Leader.Handover; old.Stopping {
		h.Stopping, h.End = true, old.End
	}
	s.Leader.Handover = h
}

// handoverAcked goes on with a handover once its target has acked a heartbeat
// that was sent since it was asked.
func (m *Machine) handoverAcked(from NodeID, sentAt Time) {
	h := m.state.Leader.Handover
	if h.Stopping || h.To != from || sentAt < h.Asked || m.state.Now >= h.End {
		return
	}
	if m.Transferable(from) != nil {
		m.state.Leader.Handover = Handover{}
		return
	}
	m.stopWork()
}

// giveUpOffice hands over to whoever is best, or to nobody, without asking.
func (m *Machine) giveUpOffice(c HandoverCause) {
	h := &m.state.Leader.Handover
	h.Cause, h.Why = c, handovers[c].why
	if !h.Stopping {
		h.Asked, h.End = 0, 0
		m.stopWork()
	}
}

// stopWork lets the guarded work stop before the leader cedes: until then work of
// two nodes could overlap. It has until the end of the lease that it knows of.
func (m *Machine) stopWork() {
	l := &m.state.Leader
	if !l.Working {
		m.concede()
		return
	}
	end := l.LeaseEnd
	if end == Never {
		end = m.state.Now.Add(m.cfg.Timing.Lease)
	}
	l.Handover.Stopping, l.Handover.End = true, end
	m.eff.StopWork = true
}

// guard notes that guarded work began or stopped. None begins once it was told
// to stop.
func (m *Machine) guard(held bool) {
	l := &m.state.Leader
	if m.state.Role != Leader || held && l.Handover.Stopping {
		return
	}
	l.Working = held
	if l.Handover.Stopping {
		m.workStopped()
	}
}

// workStopped ends the handover, unless it was for the sake of a successor that
// is fit no more: then the leader leads on, and work may begin again.
func (m *Machine) workStopped() {
	h := &m.state.Leader.Handover
	if h.Cause <= HandoverTransfer && m.Transferable(h.To) != nil {
		*h = Handover{}
		return
	}
	m.concede()
}

// handoverDue acts on the end of a handover's time. What was told to stop by now
// counts as stopped.
func (m *Machine) handoverDue() {
	if m.state.Leader.Handover.Stopping {
		m.concede()
		return
	}
	m.state.Leader.Handover = Handover{}
}

// concede ends this leadership for the handover that is under way.
func (m *Machine) concede() {
	h := m.state.Leader.Handover
	if h.Cause == HandoverStop {
		m.leave()
		return
	}
	to := m.successor()
	if h.Cause == HandoverTakeover {
		m.takeoverMade(to)
	}
	m.stepDown(h.Why, to, to)
	m.standAfter(to)
}

// successor is whom this leader names when it cedes: the target of its handover
// if that is still fit, and else the best; "" for nobody.
func (m *Machine) successor() NodeID {
	if to := m.state.Leader.Handover.To; to != "" && m.Transferable(to) == nil {
		return to
	}
	return m.BestSuccessor()
}
