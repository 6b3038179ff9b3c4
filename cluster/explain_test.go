package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestExplainSaysThatNoTermsAreLeft(t *testing.T) {
	s := elector.Status{Role: elector.Follower, Term: lsn.MaxTerm, Quorum: 1, NoTermsLeft: true}
	cfg := Config{Node: "a", Voters: []NodeID{"a"}}
	require.Equal(t,
		"no leader: no terms are left: 9223372036854775807 is the highest there is, so nobody can be elected; see docs/errors.md#terms-used-up",
		explain(s, "", cfg, nil, 1))
	s.Role = elector.Leader
	require.Equal(t,
		"this node leads, as the only voter, but no terms are left: nobody can be elected after it; see docs/errors.md#terms-used-up",
		explain(s, "", cfg, nil, 1))
}

func TestExplainSaysThatACandidateWaitsForItsDisk(t *testing.T) {
	s := elector.Status{Role: elector.Candidate, Term: 4, Quorum: 1, Writing: true}
	require.Equal(t, "no leader: this node writes term 4 to its disk, to stand for election in it",
		explain(s, "", Config{Node: "a", Voters: []NodeID{"a"}}, nil, 1))
}
