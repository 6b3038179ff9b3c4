package blazingmq_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/blazingmq"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/lsn"
)

var variants = map[string]algorithm.Algorithm{
	"scouting": blazingmq.Elector, "without-scouting": blazingmq.WithoutScouting,
}

// The article's two cases, as the scenario files tell them: without scouting the leaders
// alternate while two nodes do not hear each other, and a node that was cut off unseats a
// healthy leader when it is back; with scouting nothing changes.
func TestTheArticlesCases(t *testing.T) {
	for file, least := range map[string]int{"leader-ping-pong": 20, "non-sticky-leader": 1} {
		sc, err := scenario.Load("../../../../testdata/scenarios/" + file + ".yaml")
		require.NoError(t, err)
		for seed := range uint64(50) {
			demotions := func(name string) int {
				run, err := replay.Simulate(sc, replay.Options{Seed: seed, Algorithm: variants[name]})
				require.NoError(t, err)
				require.Empty(t, run.History.Problems)
				require.Empty(t, run.History.Broken)
				return run.History.Summarize(10*time.Second, sc.Duration).Demotions
			}
			require.Zero(t, demotions("scouting"), "%s, seed %d", file, seed)
			require.GreaterOrEqual(t, demotions("without-scouting"), least, "%s, seed %d", file, seed)
		}
	}
}

// TestOneVoteIsAQuorum is the tenth of upstream's cases: one of four nodes is configured to elect
// itself. It proposes without scouting, answers do not make it the leader, and the end of the time
// for votes does.
func TestOneVoteIsAQuorum(t *testing.T) {
	cfg := algorithm.Config{Order: []elector.NodeID{"a", "b", "c", "d"}, Elector: elector.Config{
		Self: "a", Quorum: 1, UnsafeQuorum: true, Timing: elector.Article()}}
	m := blazingmq.Elector.New(cfg)
	wait := m.Step(0, 0, algorithm.Start{}).Wake
	eff := m.Step(wait, 0, elector.Tick{})
	require.Equal(t, algorithm.View{Role: elector.Candidate, Term: 1}, m.View())
	for _, from := range []elector.NodeID{"b", "c"} {
		m.Step(wait, 0, algorithm.Received{From: from, Message: blazingmq.Message{
			Kind: blazingmq.ElectionResponse, Term: 1}})
		require.Equal(t, elector.Candidate, m.View().Role, from)
	}
	m.Step(eff.Wake, 0, elector.Tick{})
	require.Equal(t, algorithm.View{Role: elector.Leader, Leader: "a", Term: 1}, m.View())
}

// TestStaleMessages lets the first of three nodes hear messages of terms in which no script can
// put them, as a leader, a candidate or a follower in term 2.
func TestStaleMessages(t *testing.T) {
	type msg = blazingmq.Message
	leader := algorithm.View{Role: elector.Leader, Leader: "a", Term: 2}
	candidate := algorithm.View{Role: elector.Candidate, Term: 2}
	follower := algorithm.View{Role: elector.Follower, Leader: "b", Term: 2}
	begins := map[algorithm.View][]msg{
		candidate: {{Kind: blazingmq.ScoutingResponse, WillVote: true}},
		leader: {{Kind: blazingmq.ScoutingResponse, WillVote: true},
			{Kind: blazingmq.ElectionResponse, Term: 2}},
		follower: {{Kind: blazingmq.LeaderHeartbeat, Term: 2}},
	}
	for _, test := range []struct {
		as     algorithm.View
		from   algorithm.NodeID
		hears  msg
		is     algorithm.View
		answer msg
	}{
		{leader, "c", msg{Kind: blazingmq.LeadershipCession, Term: 2}, leader,
			msg{Kind: blazingmq.LeaderHeartbeat, Term: 2}},
		{leader, "c", msg{Kind: blazingmq.LeaderHeartbeat, Term: 1}, leader,
			msg{Kind: blazingmq.LeaderHeartbeat, Term: 2}},
		{leader, "c", msg{Kind: blazingmq.ElectionResponse, Term: 3}, algorithm.View{Term: 3,
			Role: elector.Follower}, msg{Kind: blazingmq.LeadershipCession, Term: 3}},
		{candidate, "c", msg{Kind: blazingmq.ElectionResponse, Term: 1}, candidate, msg{}},
		{follower, "b", msg{Kind: blazingmq.LeadershipCession, Term: 1}, follower, msg{}},
		{follower, "c", msg{Kind: blazingmq.LeaderHeartbeat, Term: 2}, follower, msg{}},
		{candidate, "c", msg{Kind: blazingmq.ScoutingRequest, Term: 2}, candidate,
			msg{Kind: blazingmq.ScoutingResponse, Term: 2}},
	} {
		m := blazingmq.Elector.New(algorithm.Config{Order: []elector.NodeID{"a", "b", "c"},
			Elector: elector.Config{Self: "a", Voters: []elector.NodeID{"a", "b", "c"},
				Timing: elector.Article()}})
		now := m.Step(0, 0, algorithm.Start{Disk: lsn.Term(1)}).Wake
		m.Step(now, 0, elector.Tick{})
		for _, message := range begins[test.as] {
			m.Step(now, 0, algorithm.Received{From: "b", Message: message})
		}
		require.Equal(t, test.as, m.View())
		sent := m.Step(now, 0, algorithm.Received{From: test.from, Message: test.hears}).Messages
		require.Equal(t, test.is, m.View(), test)
		if test.answer == (msg{}) {
			require.Empty(t, sent, test)
		} else {
			require.Equal(t, test.answer, sent[0].Message, test)
		}
	}
}
