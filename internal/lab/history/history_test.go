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

// The old leader would go on, if nobody asked it to go.
func TestDemotionsAreThoseThatNobodyAskedFor(t *testing.T) {
	for reason, want := range map[elector.Reason]int{
		elector.LeaseExpired: 1, elector.LeaderPreempted: 1,
		elector.Transferred: 0, elector.Resigned: 0, elector.Stopped: 0,
	} {
		h := story()
		down := elector.Transition{From: elector.Leader, To: elector.Follower, Reason: reason}
		if reason == elector.Stopped {
			down.To = elector.Dormant
		}
		h.Lanes[0].Transitions = []Transition{{At: 12 * s, Transition: down}}
		h.Lanes[0].Spans[0].LeaseUntil = Forever
		require.Equal(t, want, h.Summarize(0, 30*s).Demotions, reason)
		require.Zero(t, h.Summarize(12*s, 30*s).Demotions, "it was before the window")
	}
}

// Who leads must reach those that follow it, both ways, or the store of its algorithm. At 5 s a
// leads, and c follows it; b follows nobody.
func TestALeaderReachesWhatItNeeds(t *testing.T) {
	cut := func(from, to NodeID) []Cut { return []Cut{{from, to, 5 * s, 6 * s}} }
	store := func(down ...Span) *Lane {
		return &Lane{Node: "store", Spans: append([]Span{{From: -s, To: 5 * s, Process: Up}}, down...)}
	}
	up := Span{From: 5 * s, To: 31 * s, Process: Up}
	for name, c := range map[string]struct {
		cuts, storeCuts []Cut
		store           *Lane
		alone           bool // c follows nobody
		gone            bool // the leader, then
	}{
		"all is well":                {},
		"a follower does not hear":   {cuts: cut("a", "c"), gone: true},
		"a follower is not heard":    {cuts: cut("c", "a"), gone: true},
		"one that does not follow":   {cuts: cut("b", "a")},
		"two others":                 {cuts: cut("b", "c")},
		"it reaches no follower":     {alone: true, gone: true},
		"the store":                  {store: store(up)},
		"the store, not a follower":  {store: store(up), cuts: cut("a", "c")},
		"the store does not hear":    {store: store(up), storeCuts: cut("a", "store"), gone: true},
		"the store is not heard":     {store: store(up), storeCuts: cut("store", "a"), gone: true},
		"another's way to the store": {store: store(up), storeCuts: cut("store", "b")},
		"the store is down":          {store: store(Span{From: 5 * s, To: 31 * s}), gone: true},
		"the store, and no follower": {store: store(up), alone: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := story()
			h.Cuts, h.StoreCuts, h.Store = c.cuts, c.storeCuts, c.store
			if c.alone {
				h.Lanes[2].Spans = []Span{follows(-s, 5*s, "a"), lost(5*s, 12*s), follows(12*s, 30*s, "b")}
			}
			want := []Reign{{0, 10 * s, "a"}}
			if c.gone {
				want = []Reign{{0, 5 * s, "a"}, {5 * s, 6 * s, ""}, {6 * s, 10 * s, "a"}}
			}
			if c.gone && len(c.cuts)+len(c.storeCuts) == 0 {
				want = []Reign{{0, 5 * s, "a"}, {5 * s, 10 * s, ""}}
			}
			require.Equal(t, want, h.Reigns(0, 10*s))
		})
	}
}

// A demotion has a need if the leader lacked what it needs, for a moment of the last two intervals.
func TestADemotionHasANeed(t *testing.T) {
	for name, c := range map[string]struct {
		storeCuts []Cut
		crash     time.Duration // of the store, for 1 s
		want      int
	}{
		"none":                         {want: 1},
		"the way to the store":         {storeCuts: []Cut{{"a", "store", 7 * s, 8 * s}}},
		"the way back":                 {storeCuts: []Cut{{"store", "a", 7 * s, 8 * s}}},
		"that was long ago":            {storeCuts: []Cut{{"a", "store", 5 * s, 6 * s}}, want: 1},
		"another's way":                {storeCuts: []Cut{{"b", "store", 7 * s, 8 * s}}, want: 1},
		"the store was down":           {crash: 8 * s},
		"the store was down, long ago": {crash: 4 * s, want: 1},
	} {
		h := story()
		h.Inactivity, h.StoreCuts = 2*s, c.storeCuts
		up := Span{From: -s, To: 31 * s, Process: Up}
		h.Store = &Lane{Node: "store", Spans: []Span{up}}
		if c.crash != 0 {
			before, after := up, up
			before.To, after.From = c.crash, c.crash+s
			h.Store.Spans = []Span{before, {From: c.crash, To: c.crash + s}, after}
		}
		require.Equal(t, c.want, h.Summarize(0, 30*s).Demotions, name)
	}
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
