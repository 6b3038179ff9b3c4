package algorithm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/gmt"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestText(t *testing.T) {
	type Base struct{ Term lsn.Term }
	type Grant struct {
		Base
		IDs     []algorithm.NodeID
		At      elector.Time
		Within  time.Duration
		Granted bool
		hidden  int
	}
	for want, m := range map[string]algorithm.Message{
		"Grant":        Grant{hidden: 1},
		"Grant term=3": Grant{Base: Base{3}},
		"Grant ids=[a b] at=1s within=2s granted": Grant{IDs: []algorithm.NodeID{"a", "b"},
			At: elector.Time(time.Second), Within: 2 * time.Second, Granted: true},
		"LEAD at=3.1":          gmt.Lead{At: lsn.LSN{Term: 3, Counter: 1}},
		"AppendEntries term=2": raft.Message{Kind: raft.AppendEntries, Term: 2},
		elector.Message{Kind: elector.LeaderHeartbeat, Term: 2}.String(): ours.Message{
			Message: elector.Message{Kind: elector.LeaderHeartbeat, Term: 2}},
	} {
		require.Equal(t, want, algorithm.Text(m))
	}
}
