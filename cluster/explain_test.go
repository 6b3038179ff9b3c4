package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestExplain(t *testing.T) {
	const now = elector.Time(time.Minute)
	up := MemberStatus{Node: "b", Voter: true, Link: "up"}
	for _, c := range []struct {
		s       elector.Status
		why     string // it does not stand
		members []MemberStatus
		want    string
	}{
		{elector.Status{Role: elector.Follower, Leader: "b", HeardAt: now - 1e9}, "", nil,
			"follows b, last heard 1s ago"},
		{elector.Status{Role: elector.Leader, Supporters: []NodeID{"a", "b"}}, "", nil,
			"this node leads, backed by 2 of 2 voters (2 needed)"},
		{elector.Status{Role: elector.Leader, Supporters: []NodeID{"a", "b"}}, "it is ill", nil,
			"(2 needed), until another node can take over: it is ill"},
		{elector.Status{Role: elector.Leader, Handover: elector.Handover{To: "b"}}, "", nil,
			"backed by 0 of 2 voters (2 needed), and asks b to take over ("},
		{elector.Status{Role: elector.Leader, Handover: elector.Handover{Stopping: true}}, "", nil,
			"hands over (none) when its guarded work has stopped"},
		{elector.Status{Role: elector.Leader, NoTermsLeft: true}, "", nil,
			"but no terms are left: nobody can be elected after it; see docs/errors.md#terms-used-up"},
		{elector.Status{Term: lsn.MaxTerm, NoTermsLeft: true}, "", nil, "no leader: no terms are left: " +
			"9223372036854775807 is the highest there is, so nobody can be elected; see docs/errors.md"},
		{elector.Status{}, "", nil, "no leader: 2 of 2 voters needed, 1 reachable"},
		{elector.Status{}, "", []MemberStatus{{Node: "b", Voter: true, Link: "none"}},
			"1 reachable (b: never heard of)"},
		{elector.Status{Role: elector.Candidate, Term: 4, Writing: true}, "", []MemberStatus{up},
			"no leader: this node writes term 4 to its disk, to stand for election in it"},
		{elector.Status{Role: elector.Candidate, Term: 4}, "", []MemberStatus{up},
			"no leader: this node stands for election in term 4"},
		{elector.Status{AwaitedLeader: "b", Term: 4}, "", []MemberStatus{up},
			"no leader: voted for b in term 4, waiting for its first heartbeat"},
		{elector.Status{Scouting: true}, "", []MemberStatus{up}, "asking the voters"},
		{elector.Status{}, "it is ill", []MemberStatus{up}, "no leader: this node does not stand: it is ill"},
		{elector.Status{EmbargoEnd: now + 2e9}, "", []MemberStatus{up},
			"just started, supports nobody for another 2s"},
		{elector.Status{PromisedTo: "b", PromiseEnd: now + 5e6}, "", []MemberStatus{up},
			"the lease of b may run for another 5ms"},
		{elector.Status{HintedLeader: "b"}, "", []MemberStatus{up},
			"others follow b, which this node does not hear"},
		{elector.Status{StandAt: now + 15e9}, "", []MemberStatus{up},
			"stands for election in 15s, unless a leader shows up"},
		{elector.Status{}, "", []MemberStatus{up}, "no leader: waiting for another node to stand"},
	} {
		c.s.Quorum = 2
		if c.s.Role == elector.Dormant { // not said
			c.s.Role = elector.Follower
		}
		cfg := Config{Node: "a", Voters: []NodeID{"a", "b"}}
		require.Contains(t, explain(c.s, c.why, cfg, c.members, nil, now), c.want)
	}
	require.Equal(t, "this node takes no part", explain(elector.Status{}, "", Config{}, nil, nil, now))
	lone := elector.Status{Role: elector.Leader, Quorum: 1}
	require.Equal(t, "this node leads, as the only voter",
		explain(lone, "", Config{Node: "a", Voters: []NodeID{"a"}}, nil, nil, now))
}
