package sim_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// TestWhatIsOfAnotherTermCountsForNothing: votes and acks of other terms than the
// receiver's, and cessions of past terms, elect nobody, keep nobody leader and release
// nobody. Late messages and nodes that lost their disks bring such messages. The simulator
// checks that every leader has a quorum's votes of its own term, that its lease ends before
// a quorum's promises, and that nobody votes against a promise.
func TestWhatIsOfAnotherTermCountsForNothing(t *testing.T) {
	for range 3 {
		rapid.Check(t, func(t *rapid.T) {
			s := start(t, drawAbleCluster(t))
			require.NoError(t, s.RunFor(drawStart(t)))
			for _, st := range rapid.SliceOfN(drawStep(targets(s), everything), 1, 40).Draw(t, "schedule") {
				require.NoError(t, play(s, []step{st}))
				require.NoError(t, stray(t, s))
			}
		})
	}
}

// stray delivers to every node, from every voter, what belongs to another term.
func stray(t *rapid.T, s *sim.Sim) (err error) {
	off := lsn.Term(rapid.IntRange(1, 3).Draw(t, "off"))
	for _, to := range s.Nodes() {
		v := s.View(to)
		for _, from := range s.Nodes() {
			for _, m := range strays(v, off) {
				if v.Running && from != to {
					err = errors.Join(err, s.Inject(from, to, m))
				}
			}
		}
	}
	return err
}

// strays are messages of a term above the node's own and of one below.
func strays(v sim.View, off lsn.Term) []elector.Message {
	above := v.Status.Term + 10*off
	vote := elector.Message{
		Kind: elector.ElectionProposalResponse, Term: above, ProposedTerm: above, SentAt: v.Now,
		WillVote: true,
	}
	ack := elector.Message{Kind: elector.HeartbeatAck, Term: above, SentAt: v.Now, MayStand: true}
	ms := []elector.Message{vote, ack}
	if v.Status.Term > off {
		past := v.Status.Term - off
		vote.Term, vote.ProposedTerm, ack.Term = past, past, past
		ms = append(ms, vote, ack, elector.Message{Kind: elector.LeadershipCession, Term: past})
	}
	return ms
}

// TestOneMessageDoesNotUseUpTheTerms: whatever term a voter claims in one message, enough
// terms are left for many elections.
func TestOneMessageDoesNotUseUpTheTerms(t *testing.T) {
	for k := elector.ElectionScouting; k.Valid(); k++ {
		t.Run(k.String(), func(t *testing.T) {
			s := start(t, led(1, 5))
			for _, to := range s.Nodes() {
				m := elector.Message{
					Kind: k, Term: lsn.MaxTerm - 1, ProposedTerm: lsn.MaxTerm - 1,
					LeaderTerm: lsn.MaxTerm - 1, Leader: "c",
				}
				require.NoError(t, s.Inject("b", to, m))
				m.WillVote = true
				require.NoError(t, s.Inject("b", to, m))
			}
			require.NoError(t, s.RunFor(5*time.Second))
			require.NoError(t, s.Crash(leader(t, s), sim.Crash{}))
			require.NoError(t, s.RunFor(20*time.Second))
			require.Less(t, s.View(leader(t, s)).Status.Term, lsn.Term(1)<<40)
		})
	}
}

// TestANodeFarBehindRejoins: a node was away while the terms rose by more than one
// message may raise them. Half of the clusters cannot elect without it.
func TestANodeFarBehindRejoins(t *testing.T) {
	const far = 5 << 32
	for name, notCandidate := range map[string]bool{"candidate": false, "not candidate": true} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				cfg := cluster(seed, 3)
				cfg.Nodes[0].Term, cfg.Nodes[1].Term = far, far+1
				cfg.Nodes[2].Term = 7
				cfg.Nodes[1].Absent = seed%2 == 0 // then c is needed for a quorum
				cfg.Nodes[2].Elector.NotCandidate = notCandidate
				s := start(t, cfg)
				requireLeaderWithin(t, s, bound(cfg))
				require.NoError(t, s.RunFor(10*time.Second))
				status := s.View("c").Status
				require.Equal(t, leader(t, s), status.Leader)
				require.Greater(t, status.Term, lsn.Term(far))
			}
		})
	}
}

// TestLeaderReaffirmsItselfOnceAPeriod: a leader takes a new term no more often, even if a
// voter claims a higher term in every millisecond.
func TestLeaderReaffirmsItselfOnceAPeriod(t *testing.T) {
	cfg, reaffirmed := led(1, 3), 0
	cfg.Observer = func(e *sim.Event) {
		if e.At > 0 && e.Node == "a" && e.Kind == sim.EventTransition {
			require.Equal(t, elector.Reaffirmed, e.Transition.Reason)
			reaffirmed++
		}
	}
	s := start(t, cfg)
	for i := range 5000 {
		require.NoError(t, s.RunFor(time.Millisecond))
		require.NoError(t, s.Inject("b", "a", elector.Message{Kind: elector.InvalidHeartbeat,
			Term: lsn.Term(10 * (i + 1))}))
	}
	require.InDelta(t, 10, reaffirmed, 1, "in five seconds of half a second each")
}

// TestNoiseNeitherCrashesNorWedges is I6: whatever arrives, from whomever, the
// machines go on; and once the noise is over they elect a leader. Forged votes and
// heartbeats can break I1 and I2, so these are not checked. It is checked that nothing
// is sent before it is durable, that nobody votes twice and that terms only rise.
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

// drawTerm draws a term near the cluster's own, a far higher one, one of the last valid
// ones, or an invalid one.
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
