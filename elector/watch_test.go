package elector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/lsn"
)

const millis = time.Millisecond

var accrual = detector.PhiConfig{
	Threshold: 8, Window: 10, MinDeviation: 20 * millis, Pause: 1400 * millis,
}

// watcher is a node that will follow b, and notices with phi that b is gone.
func watcher(t *testing.T) *driven {
	return bootWith(t, elector.Config{Phi: accrual}, 3, 2)
}

// beat brings a heartbeat of b after a pause, and returns how long b may be silent.
func (d *driven) beat(after time.Duration, term lsn.Term, sequence uint64) time.Duration {
	d.now = d.now.Add(after)
	e := d.hear("b", elector.Message{Kind: elector.LeaderHeartbeat, Term: term, Sequence: sequence})
	return e.Wake.Sub(d.now)
}

// The more regular the leader's heartbeats are, the shorter a follower waits.
func TestPhiLearnsHowRegularTheLeaderIs(t *testing.T) {
	d := watcher(t)
	at := func(mean, deviation float64) time.Duration { // ms
		return time.Duration((mean + 1400 + 5.612*deviation) * 1e6)
	}
	require.InDelta(t, at(500, 125), d.beat(0, 3, 1), float64(millis), "nothing is known yet")
	n := uint64(1)
	for range 10 {
		n++
		d.beat(500*millis, 3, n)
	}
	n++
	require.InDelta(t, at(500, 20), d.beat(500*millis, 3, n), float64(millis), "regular")
	for range 5 {
		d.beat(400*millis, 3, n+1)
		n += 2
		d.beat(600*millis, 3, n)
	}
	wait := d.beat(500*millis, 3, n+1)
	require.InDelta(t, at(500, 95), wait, float64(10*millis), "irregular")

	d.now = d.now.Add(wait - 1)
	d.step(elector.Tick{})
	require.Equal(t, elector.NodeID("b"), d.Status().Leader, "not yet")
	d.now++
	e := d.step(elector.Tick{})
	require.Equal(t, elector.LeaderNoHeartbeat, e.Transitions[0].Reason)
}

// What was learnt belongs to one leadership.
func TestPhiBeginsAgainWithEachLeadership(t *testing.T) {
	d := watcher(t)
	first := d.beat(0, 3, 1)
	for n := range uint64(20) {
		d.beat(500*millis, 3, n+2)
	}
	require.Less(t, d.beat(500*millis, 3, 30), first)
	require.Equal(t, first, d.beat(500*millis, 4, 1), "the next term counts from 1 again")
}

// No correct leader sends a heartbeat that is no newer than the one before. Such a heartbeat must
// neither keep a leader alive nor leave the follower without a deadline.
func TestPhiIgnoresWhatIsNotNew(t *testing.T) {
	d := watcher(t)
	d.hear("b", elector.Message{Kind: elector.LeaderHeartbeat, Term: 3, Sequence: 0})
	require.Empty(t, d.Status().Leader)
	wait := d.beat(0, 3, 5)
	require.Equal(t, wait-200*millis, d.beat(200*millis, 3, 5))
	require.Equal(t, wait-300*millis, d.beat(100*millis, 3, 4))
}
