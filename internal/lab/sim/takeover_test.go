package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// TestTakeoverIsRareAndComes: whatever comes and goes, leadership moves to a
// preferred node no more often than once in Takeover; and once everything is
// well, the node of the highest priority leads, and goes on to lead.
func TestTakeoverIsRareAndComes(t *testing.T) {
	takeovers := 0
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawAbleCluster(t)
		quiet(&cfg)
		wait := pick(t, "takeover", 2*time.Second, 5*time.Second, 20*time.Second)
		for i := range cfg.Nodes {
			cfg.Nodes[i].Elector.Takeover = wait
		}
		watch := watchTakeovers(&cfg, wait)
		s := playAny(t, cfg, failures, 60)
		require.NoError(t, calm(s))
		requirePreferredLeads(t, s, cfg, 5*(wait+bound(cfg)))
		require.Empty(t, watch.early)
		takeovers += watch.count
	})
	require.NotZero(t, takeovers, "no schedule made a takeover")
}

// failures are what makes nodes come and go; no command moves leadership.
var failures = []string{
	"wait", "wait", "wait", "cut", "heal", "healAll", "isolate", "rejoin", "pair", "reset", "crash",
	"restart", "restart", "pause",
	"resume", "resume", "bounce", "unfit", "fit",
}

// takeoverWatch is what an observer saw of takeovers: they are the only reason
// for TRANSFERRED where nobody commands a transfer.
type takeoverWatch struct {
	count int
	last  time.Duration
	early string // takeovers that came too soon after the one before
}

func watchTakeovers(cfg *sim.Config, wait time.Duration) *takeoverWatch {
	w := &takeoverWatch{last: -wait}
	// A clock that is fast by the drift measures the whole wait in that time.
	least := wait * 1_000_000 / time.Duration(1_000_000+cfg.Nodes[0].Elector.Timing.ClockDriftPPM)
	cfg.Observer = func(e *sim.Event) {
		t := e.Transition
		if e.Kind != sim.EventTransition || t.From != elector.Leader || t.Reason != elector.Transferred {
			return
		}
		if e.At-w.last < least {
			w.early += e.String() + "\n"
		}
		w.last = e.At
		w.count++
	}
	return w
}

// requirePreferredLeads requires that one of the highest priority leads within d,
// and still leads a minute later.
func requirePreferredLeads(t *rapid.T, s *sim.Sim, cfg sim.Config, d time.Duration) {
	best, high := []elector.NodeID{}, -1 // the lowest priority that is drawn
	for _, n := range cfg.Nodes {
		switch p := n.Elector.Priority; {
		case !electable(n) || p < high:
		case p > high:
			best, high = []elector.NodeID{n.Elector.Self}, p
		default:
			best = append(best, n.Elector.Self)
		}
	}
	for end := s.Now() + d; s.Now() < end; {
		require.NoError(t, s.RunFor(100*time.Millisecond))
		if id, ok := s.Leader(); ok && slices.Contains(best, id) {
			require.NoError(t, s.RunFor(time.Minute))
			require.Equal(t, id, leader(t, s))
			return
		}
	}
	require.Fail(t, "no preferred node leads", "for %s until %s", d, s.Now())
}

func electable(n sim.NodeConfig) bool { return !n.Elector.Observer() && !n.Elector.NotCandidate }

// Node e reaches only a, which leads.
func TestTransferToANodeThatCannotWinLeavesTheLeaderInPlace(t *testing.T) {
	for seed := range uint64(20) {
		cfg := led(seed, 5)
		watch := watchLeaders(&cfg)
		s := start(t, cfg)
		sever(t, s, "e", "b", "c", "d")
		require.NoError(t, s.RunFor(time.Second))
		watch.unseated = ""
		require.ErrorContains(t, s.Transfer("a", "e"),
			"it is connected to too few voters to win an election")
		require.NoError(t, s.RunFor(10*time.Second))
		require.Empty(t, watch.unseated)

		require.NoError(t, s.Stop("a"))
		require.NoError(t, s.RunFor(time.Second))
		require.Contains(t, []elector.NodeID{"b", "c", "d"}, leader(t, s),
			"the successor is one that can win")
	}
}

// TestFailedTakeoverIsTriedRarely: e is the preferred node, and a the only other candidate. The
// links of e are up, but what it sends to others than a is lost, so that nobody can know that it
// cannot win. Ten minutes have room for twenty attempts; doubling the wait leaves five at most.
func TestFailedTakeoverIsTriedRarely(t *testing.T) {
	cfg := led(1, 5)
	for i := range cfg.Nodes {
		e := &cfg.Nodes[i].Elector
		e.Takeover = 30 * time.Second
		e.NotCandidate = i != 0 && i != 4
		e.Priority = i / 4
	}
	watch := watchTakeovers(&cfg, 30*time.Second)
	s := start(t, cfg)
	lose := func(ppm int) {
		for _, id := range []elector.NodeID{"b", "c", "d"} {
			require.NoError(t, s.SetFaults("e", id, sim.Faults{Delay: ms, LossPPM: ppm}))
		}
	}
	lose(1_000_000)
	require.NoError(t, s.RunFor(10*time.Minute))
	require.InDelta(t, 3, watch.count, 2)

	lose(0)
	require.NoError(t, s.RunFor(20*time.Minute))
	require.Equal(t, elector.NodeID("e"), leader(t, s),
		"it is tried again within the time that the fault lasted")
}
