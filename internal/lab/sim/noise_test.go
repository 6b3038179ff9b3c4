package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// TestNoiseNeitherCrashesNorWedges is I6: whatever arrives, from whomever, the
// machines go on; and once the noise is over they elect a leader. What forged
// votes and heartbeats can break (I1, I2) is not asked meanwhile; that nothing
// is sent before it is durable, that nobody votes twice and that terms only rise is.
func TestNoiseNeitherCrashesNorWedges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawAbleCluster(t)
		cfg.Checks = spec.Checks{NoLeases: true, TwoLeaders: true}
		s := start(t, cfg)
		require.NoError(t, s.RunFor(drawStart(t)))
		for _, n := range rapid.SliceOfN(drawNoise(s.Nodes()), 1, 60).Draw(t, "noise") {
			require.NoError(t, s.RunFor(n.wait))
			require.NoError(t, s.Inject(n.from, n.to, n.message))
		}
		require.NoError(t, calm(s))
		requireLeaderWithin(t, s, bound(cfg))
	})
}

type noise struct {
	wait     time.Duration
	from, to elector.NodeID
	message  elector.Message
}

func drawNoise(ids []elector.NodeID) *rapid.Generator[noise] {
	anybody := rapid.SampledFrom(append([]elector.NodeID{"", elector.AllMembers, "stranger"}, ids...))
	return rapid.Custom(func(t *rapid.T) noise {
		return noise{
			wait: drawWait(t), from: anybody.Draw(t, "from"), to: rapid.SampledFrom(ids).Draw(t, "to"),
			message: elector.Message{
				Kind: elector.Kind(rapid.IntRange(0, int(elector.NodeUnavailable)+1).Draw(t, "kind")),
				Term: drawTerm(t), ProposedTerm: drawTerm(t), LeaderTerm: drawTerm(t),
				LSN:   lsn.LSN{Term: drawTerm(t), Counter: rapid.Uint64().Draw(t, "counter")},
				Round: rapid.Uint64().Draw(t, "round"), Sequence: rapid.Uint64().Draw(t, "sequence"),
				Priority: rapid.Int().Draw(t, "priority"), WillVote: rapid.Bool().Draw(t, "vote"),
				Cause:      scouting.Cause(rapid.IntRange(0, 7).Draw(t, "cause")),
				RetryAfter: time.Duration(rapid.Int64().Draw(t, "retry")),
				SentAt:     elector.Time(rapid.Int64().Draw(t, "sent")),
				MayStand:   rapid.Bool().Draw(t, "candidate"),
				Leader:     anybody.Draw(t, "leader"), Successor: anybody.Draw(t, "successor"),
			},
		}
	})
}

// drawTerm draws a term of the cluster's age, a far higher one, one of the last that
// there are, or an absurd one.
func drawTerm(t *rapid.T) lsn.Term {
	switch rapid.IntRange(0, 9).Draw(t, "age") {
	case 7:
		return lsn.MaxTerm - lsn.Term(rapid.Uint64Max(2).Draw(t, "last"))
	case 8:
		return lsn.Term(rapid.Uint64Max(1<<62).Draw(t, "high"))
	case 9:
		return lsn.Term(rapid.Uint64Range(1<<63, math.MaxUint64).Draw(t, "absurd"))
	}
	return lsn.Term(rapid.Uint64Max(6).Draw(t, "term"))
}
