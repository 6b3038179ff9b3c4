// Package measure counts events of a node's elections. Counting takes no lock and allocates
// nothing, because it happens with every heartbeat.
package measure

import (
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/scouting"
)

const (
	lastReason = elector.Resigned
	lastAnswer = scouting.CauseRecord
)

// Measure has the counts of a node. It is safe for concurrent use.
type Measure struct {
	ScoutingGiven, ScoutingReceived Answers
	VotesGiven, VotesReceived       Answers

	Gaps     *Histogram    // seconds without a leader
	Renewals *Histogram    // the share of the lease that was left when it was renewed
	Waits    *Histogram    // seconds of events in the inbox
	Writes   *Histogram    // seconds of writes to the disk
	Stalls   atomic.Uint64 // ticks that were late by half a heartbeat period

	began   time.Time
	changes [lastReason + 1]atomic.Uint64 // of the leader
	phases  [phaseEnd]*Histogram
	writing atomic.Int64 // age at which the write under way began; 0 for none
}

// Bounds of buckets, in seconds. The phases of an election are compared with timers of 100 ms to
// 10 s, waits with the period of heartbeats, writes with the time that a proposal has.
var (
	phaseBounds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	waitBounds  = []float64{.00001, .0001, .001, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	writeBounds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	shareBounds = []float64{.05, .1, .2, .3, .4, .5, .6, .7, .8, .9}
)

// New returns the measure of a node that starts now.
func New() *Measure {
	m := &Measure{
		Gaps: NewHistogram(phaseBounds...), Renewals: NewHistogram(shareBounds...),
		Waits: NewHistogram(waitBounds...), Writes: NewHistogram(writeBounds...), began: time.Now(),
	}
	for p := range m.phases {
		m.phases[p] = NewHistogram(phaseBounds...)
	}
	return m
}

// Age is how long ago the node started. It is a cheap reading of the monotonic clock: the
// boot-time clock that leases need costs a system call.
func (m *Measure) Age() time.Duration { return time.Since(m.began) }

// Changes is how often the leader changed, by the reason. Every reason is there.
func (m *Measure) Changes() map[elector.Reason]uint64 {
	all := map[elector.Reason]uint64{}
	for r := elector.Started; r <= lastReason; r++ {
		all[r] = m.changes[r].Load()
	}
	return all
}

// Phases are the times that each phase of an election took, by its name.
func (m *Measure) Phases() map[string]Snapshot {
	all := map[string]Snapshot{}
	for p := phaseDiscovery; p < phaseEnd; p++ {
		all[phaseNames[p]] = m.phases[p].Snapshot()
	}
	return all
}

// Timed measures how long a write to the disk takes. There is one write at a time.
func (m *Measure) Timed(write func() error) error {
	began := max(m.Age(), 1)
	m.writing.Store(int64(began))
	defer m.writing.Store(0)
	err := write()
	m.Writes.Observe((m.Age() - began).Seconds())
	return err
}

// Writing is how long the write under way has taken so far; 0 if there is none.
func (m *Measure) Writing() time.Duration {
	if began := time.Duration(m.writing.Load()); began != 0 {
		return m.Age() - began
	}
	return 0
}

// Answers counts the answers to a question of the protocol.
type Answers struct {
	yes atomic.Uint64
	no  [lastAnswer + 1]atomic.Uint64
}

// Counts returns the positive answers, and the negative ones by cause. The map has every cause.
func (a *Answers) Counts() (yes uint64, no map[scouting.Cause]uint64) {
	no = map[scouting.Cause]uint64{}
	for c := scouting.CauseLeader; c <= lastAnswer; c++ {
		no[c] = a.no[c].Load()
	}
	return a.yes.Load(), no
}

// answered counts msg if it is the answer to a question of the protocol.
func answered(msg *elector.Message, scouted, votes *Answers) {
	a := scouted
	switch msg.Kind {
	case elector.ElectionScoutingResponse:
	case elector.ElectionProposalResponse:
		a = votes
	default:
		return
	}
	if msg.WillVote {
		a.yes.Add(1)
	} else if msg.Cause >= scouting.CauseLeader && msg.Cause <= lastAnswer {
		a.no[msg.Cause].Add(1)
	}
}
