package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

const s = time.Second

func follows(from, to time.Duration, leader NodeID) Span {
	return Span{From: from, To: to, Process: Up, Role: elector.Follower, Term: 1, Leader: leader}
}

func leads(from, to, lease time.Duration, self NodeID) Span {
	return Span{From: from, To: to, Process: Up, Role: elector.Leader, Term: 1, Leader: self,
		LeaseUntil: lease}
}

func lost(from, to time.Duration) Span { return follows(from, to, "") }

// story: a leads from 0 until its lease ends at 10 s, though it thinks so until
// 12 s; b leads from 15 s on. c stays with a until 12 s.
func story() *History {
	return &History{
		Quorum: 2, Duration: 30 * s,
		Lanes: []Lane{
			{Node: "a", Voter: true, Spans: []Span{leads(-s, 12*s, 10*s, "a"), lost(12*s, 20*s),
				follows(20*s, 30*s, "b")}},
			{Node: "b", Voter: true, Spans: []Span{lost(-s, 15*s), leads(15*s, 30*s, Forever, "b")}},
			{Node: "c", Voter: true, Spans: []Span{follows(-s, 12*s, "a"), follows(12*s, 30*s, "b")}},
		},
	}
}

func TestALeaderNeedsRoleLeaseAndAQuorum(t *testing.T) {
	h := story()
	require.Equal(t, NodeID("a"), h.LeaderAt(0))
	require.Equal(t, NodeID("a"), h.LeaderAt(10*s-1))
	require.Equal(t, NodeID(""), h.LeaderAt(10*s), "its lease is over, whatever it thinks")
	require.Equal(t, NodeID(""), h.LeaderAt(14*s), "c expects b, but b does not lead yet")
	require.Equal(t, NodeID("b"), h.LeaderAt(15*s), "b and c are a quorum")
	h.Lanes[2].Voter = false
	require.Equal(t, NodeID(""), h.LeaderAt(15*s), "an observer is none")
	require.Equal(t, NodeID("b"), h.LeaderAt(20*s))
}

func TestReignsHaveNoGaps(t *testing.T) {
	require.Equal(t, []Reign{{0, 10 * s, "a"}, {10 * s, 15 * s, ""}, {15 * s, 30 * s, "b"}},
		story().Reigns(0, 30*s))
	require.Equal(t, []Reign{{11 * s, 13 * s, ""}}, story().Reigns(11*s, 13*s))
}

func TestSummaryCountsChangesAndGaps(t *testing.T) {
	h := story()
	sum := h.Summarize(0, 30*s)
	require.Equal(t, 1, sum.LeaderChanges)
	require.Equal(t, []time.Duration{5 * s}, sum.Failovers)
	require.Equal(t, 5*s, sum.Leaderless)
	require.InDelta(t, 25.0/30, sum.Availability, 1e-9)
	require.EqualValues(t, 1, sum.MaxTerm)
}

func TestLeadersOverlapWhileBothHaveALease(t *testing.T) {
	h := story()
	require.Zero(t, h.Summarize(0, 30*s).Overlap)
	h.Lanes[1].Spans = []Span{lost(-s, 9*s), leads(9*s, 30*s, Forever, "b")}
	require.Equal(t, s, h.Summarize(0, 30*s).Overlap, "b leads from 9 s on, a until 10 s")
	h.Lanes[0].Spans[0].LeaseUntil = Forever
	require.Equal(t, 2*s, h.Summarize(10*s, 30*s).Overlap, "and a until 12 s")
}

func TestAChangeCountsWhereTheNewLeaderBegins(t *testing.T) {
	h := story()
	h.Lanes[0].Transitions = []Transition{{At: -s}}
	require.Equal(t, 1, h.Summarize(12*s, 30*s).LeaderChanges, "a led before the window")
	require.Equal(t, 0, h.Summarize(16*s, 30*s).LeaderChanges)
}

func TestDemotionsAreThoseThatNobodyAskedFor(t *testing.T) {
	h := story()
	down := func(at time.Duration, to elector.Role, why elector.Reason) Transition {
		t := elector.Transition{From: elector.Leader, To: to, Reason: why}
		return Transition{At: at, Transition: t}
	}
	h.Lanes[0].Transitions = []Transition{
		down(1*s, elector.Follower, elector.LeaseExpired),
		down(2*s, elector.Follower, elector.Transferred),
		down(2*s, elector.Follower, elector.Resigned),
		down(3*s, elector.Dormant, elector.Stopped),
		down(40*s, elector.Follower, elector.LeaderPreempted),
	}
	require.Equal(t, 1, h.Summarize(0, 30*s).Demotions)
}

func TestMessagesAreCountedByBucket(t *testing.T) {
	h := story()
	h.Sent = []Bucket{{0, 3}, {10 * s, 5}, {20 * s, 7}}
	require.Equal(t, 5, h.MessagesIn(10*s, 20*s))
	require.Equal(t, 15, h.MessagesIn(0, 30*s))
}

func TestANodeOutsideItsSpansIsDown(t *testing.T) {
	l := &Lane{Node: "a", Spans: []Span{leads(0, 10*s, Forever, "a")}}
	require.Equal(t, Down, l.At(-s).Process)
	require.Equal(t, Down, l.At(10*s).Process)
	require.Equal(t, Up, l.At(5*s).Process)
}
