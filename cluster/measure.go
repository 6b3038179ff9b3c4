package cluster

import (
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/histogram"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// measure is what a node counts about itself. The driver owns it, but for the
// histograms and what is atomic; the path of a heartbeat takes no memory for it.
type measure struct {
	changes  [lastReason + 1]uint64 // of the leader, by reason
	answers  [questions][directions][lastAnswer + 1]uint64
	phases   [phaseEnd]*histogram.Histogram
	gaps     *histogram.Histogram // without a leader
	renewals *histogram.Histogram // of what was left of the lease, as a share
	waits    *histogram.Histogram // of events in the inbox
	writes   *histogram.Histogram // of terms to the disk
	writing  atomic.Int64         // age of the node at which the write under way began; 0 for none
}

const lastReason = elector.Resigned

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
		gaps:     histogram.New(phaseBounds...),
		renewals: histogram.New(shareBounds...),
		waits:    histogram.New(waitBounds...),
		writes:   histogram.New(writeBounds...),
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
	phase       Phase
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
	}
}

// timed returns a write that measures how long it takes.
func (n *Node) timed(write func(map[string]lsn.Term) error) func(map[string]lsn.Term) error {
	return func(terms map[string]lsn.Term) error {
		began := max(n.age(), 1)
		n.measure.writing.Store(int64(began))
		defer n.measure.writing.Store(0)
		err := write(terms)
		n.measure.writes.Observe((n.age() - began).Seconds())
		return err
	}
}

// stepped counts what a step met and brought about. It runs on the driver.
func (m *measure) stepped(g *group, in elector.Input, e *elector.Effects, now elector.Time) {
	if r, ok := in.(elector.Received); ok {
		m.answered(received, &r.Message)
	}
	for i := range e.Messages {
		m.answered(given, &e.Messages[i].Message)
	}
	for i := range e.Transitions {
		m.moved(&g.measure, &e.Transitions[i], now)
	}
	m.renewed(&g.measure, elector.Time(g.leaseEnd.Load()), now)
	m.inPhase(g, now)
}

// The questions of the protocol, and which way their answers go.
const (
	scoutingQuestion = iota
	voteQuestion
	questions
)

const (
	given = iota
	received
	directions
)

// lastAnswer is the last cause of a no; scouting.CauseNone stands for yes.
const lastAnswer = scouting.CauseRank

func (m *measure) answered(direction int, msg *elector.Message) {
	question := scoutingQuestion
	switch msg.Kind {
	case elector.ElectionScoutingResponse:
	case elector.ElectionProposalResponse:
		question = voteQuestion
	default:
		return
	}
	cause := msg.Cause
	if msg.WillVote {
		cause = scouting.CauseNone
	}
	if cause <= lastAnswer && msg.WillVote == (cause == scouting.CauseNone) {
		m.answers[question][direction][cause]++
	}
}

// moved follows the leader that the node is or follows.
func (m *measure) moved(g *groupMeasure, t *elector.Transition, now elector.Time) {
	if t.Leader == g.leader {
		return
	}
	if t.Reason <= lastReason {
		m.changes[t.Reason]++
	}
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

// renewed measures how near its end the lease came before it was renewed.
func (m *measure) renewed(g *groupMeasure, end, now elector.Time) {
	if end == g.leaseEnd {
		return
	}
	if end != 0 && end != elector.Never && g.leaseEnd != 0 && g.leaseEnd != elector.Never {
		m.renewals.Observe(float64(max(g.leaseEnd.Sub(now), 0)) / float64(g.lease))
	}
	g.leaseEnd = end
}
