package compare

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
)

const s = time.Second

// lane makes the lane of a node from pairs: the leader that the node followed, and until when.
// The node's own name means that it led, "-" that it was down.
func lane(id history.NodeID, parts ...any) history.Lane {
	l := history.Lane{Node: id, Voter: true}
	from := -s
	for i := 0; i < len(parts); i += 2 {
		leader := history.NodeID(parts[i].(string))
		part := history.Span{From: from, To: parts[i+1].(time.Duration), Process: history.Up,
			Role: elector.Follower, Leader: leader}
		switch leader {
		case id:
			part.Role, part.LeaseUntil = elector.Leader, history.Forever
		case "-":
			part.Process, part.Role, part.Leader = history.Down, elector.Dormant, ""
		}
		l.Spans = append(l.Spans, part)
		from = part.To
	}
	return l
}

// run is one of three nodes for 60 s, with a fault from 10 s to 40 s.
func run(lanes ...history.Lane) (*history.History, Fault) {
	h := &history.History{Duration: 60 * s, Quorum: 2, Inactivity: 3 * s / 2, Lanes: lanes}
	return h, Fault{From: 10 * s, To: 40 * s}
}

func TestACrash(t *testing.T) {
	h, f := run(
		lane("a", "a", 10*s, "-", 40*s, "", 42*s, "b", 61*s),
		lane("b", "a", 12*s, "", 13*s, "b", 61*s),
		lane("c", "a", 12*s, "b", 61*s), // names b before b leads
	)
	f.Crashed = "a"
	want := Figures{Measured: 50 * s, Recovery: 3 * s, FirstKnows: 3 * s, LastKnows: 3 * s}
	want.Summary = history.Summary{LeaderChanges: 1, Elections: 1, Leaderless: 3 * s,
		Availability: .94, MaxTerm: 0, Failovers: []time.Duration{3 * s}}
	require.Equal(t, want, Measure(h, f))
	h.Lanes[2] = lane("c", "a", 14*s, "b", 61*s)
	got := Measure(h, f)
	require.Equal(t, 3*s, got.FirstKnows)
	require.Equal(t, 4*s, got.LastKnows)
	h.Lanes[2] = lane("c", "a", 61*s)
	require.Equal(t, 30*s, Measure(h, f).LastKnows, "it never knows: until the repair")
	require.Equal(t, 32*s, Measure(h, f).Leaderless, "b is alone until a is back")
}

func TestRecoveryEndsWithTheRepair(t *testing.T) {
	h, f := run(
		lane("a", "a", 38*s, "", 50*s, "a", 61*s),
		lane("b", "a", 61*s),
		lane("c", "a", 61*s),
	)
	got := Measure(h, f)
	require.Equal(t, 2*s, got.Recovery)
	require.Equal(t, 12*s, got.Leaderless)
}

func TestTwoLeadersAtATime(t *testing.T) {
	h, f := run(
		lane("a", "a", 20*s, "b", 61*s),
		lane("b", "a", 12*s, "b", 61*s),
		lane("c", "a", 12*s, "b", 61*s),
	)
	got := Measure(h, f)
	require.Equal(t, 8*s, got.Overlap)
	require.Zero(t, got.Leaderless)
	h.Lanes[0].Spans[0].LeaseUntil = 13 * s
	require.Equal(t, s, Measure(h, f).Overlap, "its lease ends, whatever it thinks")
}

func TestDemotions(t *testing.T) {
	cut := func(from, to history.NodeID, end time.Duration) history.Cut {
		return history.Cut{From: from, To: to, Start: 10 * s, End: end}
	}
	for name, c := range map[string]struct {
		cuts   []history.Cut
		lanes  []history.Lane // replace those of the same nodes
		paused bool
		want   int
	}{
		"of a leader that is well": {want: 1},
		"of one that has a quorum": {cuts: []history.Cut{cut("a", "b", 40*s)}, want: 1},
		"of one that hears one of two and is heard by the other": {
			cuts: []history.Cut{cut("a", "b", 40*s), cut("c", "a", 40*s)}},
		"of one that lost its quorum just before": {
			cuts: []history.Cut{cut("a", "b", 18*s), cut("a", "c", 18*s)}},
		"of one that had it back": {
			cuts: []history.Cut{cut("a", "b", 16*s), cut("a", "c", 16*s)}, want: 1},
		"of one that was paused": {paused: true},
		"of one whose followers were not there": {lanes: []history.Lane{
			lane("b", "a", 11*s, "-", 19*s, "", 20*s, "b", 61*s),
			lane("c", "a", 11*s, "-", 19*s, "", 20*s, "b", 61*s)}},
		"which is none if it goes on to lead": {lanes: []history.Lane{
			lane("a", "a", 61*s),
			lane("b", "a", 20*s, "", 30*s, "a", 61*s), lane("c", "a", 20*s, "", 30*s, "a", 61*s)}},
		"that does not know of it": {lanes: []history.Lane{lane("a", "a", 61*s)}, want: 1},
		"before the fault": {lanes: []history.Lane{
			lane("a", "a", 5*s, "b", 61*s), lane("b", "a", 5*s, "b", 61*s),
			lane("c", "a", 5*s, "b", 61*s)}},
		"by itself, twice": {want: 2, lanes: []history.Lane{
			lane("a", "a", 20*s, "", 21*s, "a", 30*s, "", 31*s, "a", 61*s),
			lane("b", "a", 61*s), lane("c", "a", 61*s)}},
	} {
		t.Run(name, func(t *testing.T) {
			h, f := run(
				lane("a", "a", 20*s, "b", 61*s),
				lane("b", "a", 20*s, "b", 61*s),
				lane("c", "a", 20*s, "b", 61*s),
			)
			h.Cuts = c.cuts
			for _, l := range c.lanes {
				h.Lanes[l.Node[0]-'a'] = l
			}
			if c.paused {
				h.Lanes[0].Spans[0].Process = history.Paused
			}
			require.Equal(t, c.want, Measure(h, f).Demotions)
		})
	}
}

func TestElectionsAndMessages(t *testing.T) {
	h, f := run(
		lane("a", "a", 15*s, "a", 20*s, "", 21*s, "a", 22*s, "-", 23*s, "a", 61*s),
		lane("b", "a", 5*s, "b", 6*s, "a", 61*s),
		lane("c", "a", 61*s),
	)
	h.Sent = []history.Bucket{{At: 9 * s, Count: 5}, {At: 10 * s, Count: 7}, {At: 59 * s, Count: 11}}
	got := Measure(h, f)
	require.Equal(t, 2, got.Elections, "that of b was before the fault")
	require.Equal(t, 18, got.Messages)
}
