package elector

// handoverCause says what makes a leader hand over. A stronger cause replaces a
// weaker one that is under way; they are in ascending order. §9.1
type handoverCause uint8

const (
	handoverNone     handoverCause = iota
	handoverTakeover               // Config.Takeover: a voter of higher priority is fit
	handoverUnable                 // Eligible{false}
	handoverTransfer               // Transfer
	handoverResign                 // Resign
	handoverStop                   // Stop, not abrupt
)

var handovers = [...]struct {
	name string
	why  Reason
}{
	handoverNone:     {"none", ReasonNone},
	handoverTakeover: {"takeover", Transferred},
	handoverUnable:   {"unable", Resigned},
	handoverTransfer: {"transfer", Transferred},
	handoverResign:   {"resign", Resigned},
	handoverStop:     {"stop", Stopped},
}

// String returns the cause's name in lower case.
func (c handoverCause) String() string { return handovers[c].name }

// Handover is a leader's handover that is under way. It waits for the target's ack of a new
// heartbeat, until the target can stand, and then for the guarded work to stop. The zero Handover
// means none.
type Handover struct {
	// To is the successor. After Resign and Stop it is only a preference, "" for
	// none: the best at the moment of the cession is named.
	To NodeID
	// Cause prints as takeover, unable, transfer, resign or stop.
	Cause handoverCause
	Why   Reason // of the transition that ends it
	Asked Time   // an ack by To of what was sent from then on is its word; 0 if nobody is asked
	// End is when the leader gives the handover up without that word. If Stopping it is the
	// latest end of the guarded work: the leader cedes then, whether or not the work has stopped.
	End      Time
	Stopping bool // the guarded work was told to stop (Effects.StopWork)
	ReadyBy  Time // until when it waits for To to be prepared; 0: it does not
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
	if m.Transferable(to) == nil && m.mayReplace(handoverTransfer) {
		m.askTarget(to, handoverTransfer)
		m.heartbeat(to, 0)
	}
}

// mayReplace reports whether a handover for the given cause goes before the one
// that is under way.
func (m *Machine) mayReplace(c handoverCause) bool {
	h := &m.state.Leader.Handover
	return c > h.Cause || c == h.Cause && !h.Stopping
}

// askTarget waits for a heartbeat to be acked: §9.2. The target's last ack may be as old
// as the lease: if it was paused or cut off since, nobody would lead after the cession.
func (m *Machine) askTarget(to NodeID, c handoverCause) {
	s := &m.state
	h := Handover{
		To: to, Cause: c, Why: handovers[c].why,
		Asked: s.Now, End: s.Now.Add(m.cfg.Timing.ElectionResult),
	}
	if m.cfg.Prepare != 0 {
		h.ReadyBy = s.Now.Add(m.cfg.Prepare)
	}
	if old := s.Leader.Handover; old.Stopping {
		h.Stopping, h.End = true, old.End
	}
	s.Leader.Handover = h
}

// handoverAcked goes on with a handover once its target has acked a heartbeat
// that was sent since it was asked.
func (m *Machine) handoverAcked(from NodeID, voter int, sentAt Time) {
	h := &m.state.Leader.Handover
	switch {
	case h.Stopping || h.To != from || sentAt < h.Asked || m.state.Now >= h.End:
	case m.hasRecord() && !m.hasStored(voter): // §15.11
	case h.Cause <= handoverTransfer && m.Transferable(from) != nil:
		*h = Handover{}
	case !m.waitsForTarget(voter):
		m.stopWork()
	}
}

// startHandover hands over to the best successor, or to nobody, without asking. If that is not
// prepared yet, the leader waits for it: §9.14.
func (m *Machine) startHandover(c handoverCause) {
	h := &m.state.Leader.Handover
	again := h.Cause == c
	h.Cause, h.Why = c, handovers[c].why
	waits := c == handoverStop || m.state.Leader.Working // otherwise nobody works meanwhile
	if !h.Stopping && !again && (!waits || !m.awaitPrepared(c)) {
		h.Asked, h.End = 0, 0
		m.stopWork()
	}
}

// stopWork lets the guarded work stop before the leader cedes: §9.3. Otherwise the work of two
// nodes could overlap.
func (m *Machine) stopWork() {
	l := m.state.Leader
	if !l.Working {
		m.finishHandover()
		return
	}
	end := l.LeaseEnd
	if end == Never {
		end = m.state.Now.Add(m.cfg.Timing.Lease)
	}
	l.Handover.Stopping, l.Handover.End = true, end
	m.eff.StopWork = true
}

// guard notes that guarded work began or stopped. No work begins after the word to stop.
func (m *Machine) guard(held bool) {
	l := m.state.Leader
	if m.state.Role != Leader || held && l.Handover.Stopping {
		return
	}
	l.Working = held
	h := &l.Handover
	switch {
	case !h.Stopping:
	case h.Cause <= handoverTransfer && m.Transferable(h.To) != nil:
		*h = Handover{} // §9.4: the successor is not fit any more; work may begin again
	default:
		m.finishHandover()
	}
}

// handoverExpired acts on the end of a handover's time. Work that was told to stop counts as
// stopped by then; the leader waits no longer for a target that did not answer, and asks one again
// that was not prepared in time.
func (m *Machine) handoverExpired() {
	switch h := &m.state.Leader.Handover; {
	case h.Stopping:
		m.finishHandover()
	case h.Cause > handoverTransfer:
		h.Asked, h.End = 0, 0
		m.stopWork()
	case h.End == h.ReadyBy:
		m.askTarget(h.To, h.Cause)
		h.ReadyBy = 0
		m.heartbeat(h.To, 0)
	default:
		*h = Handover{}
	}
}

// finishHandover ends this leadership for the handover that is under way.
func (m *Machine) finishHandover() {
	s := &m.state
	h := s.Leader.Handover
	if h.Cause == handoverStop {
		m.leave()
		return
	}
	to := m.successor()
	if h.Cause == handoverTakeover { // §9.12: failed, until the target is heard to lead
		t := &s.rare().Takeover
		t.To, t.Failed = to, min(t.Failed+1, maxFailed)
	}
	m.stepDown(h.Why, to, to)
	m.standAfterCession(to)
}

// stop leaves at once if it is abrupt, otherwise after this leader's guarded work: §9.8.
func (m *Machine) stop(abrupt bool) {
	s := &m.state
	switch {
	case s.Role == Dormant:
	case abrupt:
		m.becomeDormant()
	case s.Role == Leader && (s.Leader.Working || s.Leader.Cold != 0):
		s.Leaving = true
		m.startHandover(handoverStop)
	default:
		m.leave()
	}
}

// leave cedes what this node holds and stops taking part.
func (m *Machine) leave() {
	m.cede(m.successor())
	m.becomeDormant()
}

// becomeDormant stops taking part without releasing any promise.
func (m *Machine) becomeDormant() {
	s := &m.state
	m.send(AllMembers, &Message{Kind: NodeUnavailable, Term: min(s.Term, s.Durable)})
	m.giveBack()
	m.become(Dormant, Stopped, "")
	s.Leaving, s.Refused, s.Turns.Failed = false, &nobody.Refused, 0
	m.held = nil
}
