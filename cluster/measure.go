package cluster

import (
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/histogram"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/scouting"
)

// measure is what a node counts about itself. The driver owns it, but for the
// histograms and what is atomic; the path of a heartbeat takes no memory for it.
type measure struct {
	changes         map[elector.Reason]uint64 // of the leader; every reason is there
	scouting, votes struct{ given, received Answers }
	phases          [phaseEnd]*histogram.Histogram
	gaps            *histogram.Histogram // without a leader
	renewals        *histogram.Histogram // of what was left of the lease, as a share
	waits           *histogram.Histogram // of events in the inbox
	writes          *histogram.Histogram // of terms to the disk
	stalls          atomic.Uint64        // ticks that were late by half a heartbeat period
	writing         atomic.Int64         // age at which the write under way began; 0 for none
}

const (
	lastReason = elector.Resigned
	lastAnswer = scouting.CauseRank
)

// Buckets, in seconds. What takes part in an election is compared with timers of
// 100 ms to 10 s, an event with the heartbeat's period, a write with the time
// that a proposal has.
var (
	phaseBounds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	waitBounds  = []float64{.00001, .0001, .001, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	writeBounds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	shareBounds = []float64{.05, .1, .2, .3, .4, .5, .6, .7, .8, .9}
)

func newMeasure() *measure {
	m := &measure{
		changes:  map[elector.Reason]uint64{},
		gaps:     histogram.New(phaseBounds...),
		renewals: histogram.New(shareBounds...),
		waits:    histogram.New(waitBounds...),
		writes:   histogram.New(writeBounds...),
	}
	for r := elector.Started; r <= lastReason; r++ {
		m.changes[r] = 0
	}
	for _, a := range []*Answers{
		&m.scouting.given, &m.scouting.received, &m.votes.given, &m.votes.received,
	} {
		a.No = map[scouting.Cause]uint64{}
		for c := scouting.CauseLeader; c <= lastAnswer; c++ {
			a.No[c] = 0
		}
	}
	for p := range m.phases {
		m.phases[p] = histogram.New(phaseBounds...)
	}
	return m
}

// groupMeasure is what is kept of one election between its steps.
type groupMeasure struct {
	lease       time.Duration // of the configuration
	leaseEnd    elector.Time  // as of the step before
	leader      NodeID        // that the node is or follows
	lost        elector.Time  // when there was a leader last; 0 if never, or if there is one
	leaderships uint64        // how often there came to be a leader
	phase       phase
	phaseBegan  elector.Time
	discovery   elector.Time // when the wait after the start ends
}

// age is a cheap reading of the monotonic clock: the boot-time clock that leases
// need costs a system call.
func (n *Node) age() time.Duration { return time.Since(n.started) }

// taken measures how long an event was in the inbox, and how long a tick that was
// due at that age waits while the event goes first: the step may do the tick's work.
func (n *Node) taken(e *event, due time.Duration) {
	now := n.age()
	if e.posted != 0 {
		n.measure.waits.Observe((now - e.posted).Seconds())
	}
	if now > due {
		n.measure.waits.Observe((now - due).Seconds())
		n.held(now - due)
	}
}

// timed measures how long a write to the disk takes. The persister alone calls it.
func (n *Node) timed(write func() error) error {
	began := max(n.age(), 1)
	n.measure.writing.Store(int64(began))
	defer n.measure.writing.Store(0)
	err := write()
	n.measure.writes.Observe((n.age() - began).Seconds())
	return err
}

// stepped counts what a step met and brought about. It runs on the driver.
func (m *measure) stepped(g *group, in elector.Input, e *elector.Effects, now elector.Time) {
	if r, ok := in.(elector.Received); ok {
		m.answered(&r.Message, &m.scouting.received, &m.votes.received)
	}
	for i := range e.Messages {
		m.answered(&e.Messages[i].Message, &m.scouting.given, &m.votes.given)
	}
	s := &g.measure
	for i := range e.Transitions {
		m.changed(s, &e.Transitions[i], now)
	}
	// How near its end the lease came before it was renewed.
	if end := elector.Time(g.leaseEnd.Load()); end != s.leaseEnd {
		if end != 0 && end != elector.Never && s.leaseEnd != 0 && s.leaseEnd != elector.Never {
			m.renewals.Observe(float64(max(s.leaseEnd.Sub(now), 0)) / float64(s.lease))
		}
		s.leaseEnd = end
	}
	// Where there is a leader and no phase to end, it looks no further: that is the path
	// of a heartbeat.
	if s.leader != "" && s.phase == phaseNone {
		return
	}
	if next := s.phaseOf(g.elector.Status()); next != s.phase {
		if s.phase != phaseNone {
			m.phases[s.phase].Observe(now.Sub(s.phaseBegan).Seconds())
		}
		s.phase, s.phaseBegan = next, now
	}
}

// answered counts the answer to a question of the protocol, if that is what msg is.
func (m *measure) answered(msg *elector.Message, scouting, votes *Answers) {
	a := scouting
	switch msg.Kind {
	case elector.ElectionScoutingResponse:
	case elector.ElectionProposalResponse:
		a = votes
	default:
		return
	}
	if msg.WillVote {
		a.Yes++
	} else if _, known := a.No[msg.Cause]; known {
		a.No[msg.Cause]++
	}
}

// changed follows the leader that the node is or follows.
func (m *measure) changed(g *groupMeasure, t *elector.Transition, now elector.Time) {
	if t.Leader == g.leader {
		return
	}
	m.changes[t.Reason]++
	if g.leader == "" && g.lost != 0 {
		m.gaps.Observe(now.Sub(g.lost).Seconds())
	}
	g.leader, g.lost = t.Leader, 0
	if t.Leader == "" {
		g.lost = now
	} else {
		g.leaderships++
	}
}

// phase is a part of an election, as one node goes through it while it has no leader.
type phase uint8

// The phases, in the order of an election that succeeds.
const (
	phaseNone           phase = iota
	phaseDiscovery            // after the start: listens for a leader that there may be
	phaseBackOff              // waits before it may stand, for a promise to lapse too
	phaseScouting             // asks whether it would be elected
	phaseProposal             // stands for election, its own write to the disk included
	phaseFirstHeartbeat       // has voted for another, and waits for it to lead
	phaseEnd
)

var phaseNames = [phaseEnd]string{
	"none", "discovery", "back-off", "scouting", "proposal", "first-heartbeat",
}

func (g *groupMeasure) phaseOf(st elector.Status) phase {
	switch {
	case st.Role == elector.Dormant || st.Leader != "":
		return phaseNone
	case st.Role == elector.Candidate:
		return phaseProposal
	case st.AwaitedLeader != "":
		return phaseFirstHeartbeat
	case st.Scouting:
		return phaseScouting
	case st.StandAt == 0:
		return phaseNone // it does not stand
	}
	if g.discovery == 0 {
		g.discovery = st.StandAt
	}
	if st.StandAt == g.discovery {
		return phaseDiscovery
	}
	return phaseBackOff
}
