package sim_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// splitVote is how often an election among n voters, of which s live, has no winner, if they
// stand without asking, after waits that are uniform in a window of which a message takes the
// share l: too many stand before they hear of another. Section 9.2 of Ongaro's dissertation
// on Raft.
func splitVote(n, s int, l float64) (p float64) {
	choose := 1.0
	for k := 0; k <= s; k++ {
		if k >= s-n/2 { // beside the first, whoever it is
			p += choose * math.Pow(l, float64(k)) * math.Pow(1-l, float64(s-k))
		}
		choose *= float64(s-k) / float64(k+1)
	}
	return p
}

// TestSplitVoteFormula: the figures for 5 voters are those that the dissertation prints. They
// say that the longest random wait should be 10 to 20 times what a message takes.
func TestSplitVoteFormula(t *testing.T) {
	t.Parallel()
	const seeds = 100
	for _, v := range []struct {
		n, s int
		l, p float64
	}{
		{3, 2, .1, .19}, {5, 4, .01, .000592}, {5, 4, .1, .0523}, {5, 4, .2, .1808}, {5, 3, .2, .488},
		{7, 6, .1, .01585}, {7, 4, .1, .3439}, {9, 8, .1, .005024}, {9, 5, .1, .40951},
		{9, 5, .2, .67232},
	} {
		require.InEpsilon(t, v.p, splitVote(v.n, v.s, v.l), 2e-3, "%+v", v)
		all := herd{voters: v.n, change: unasked(v.l), lose: killedWith(v.n - v.s - 1)}.playAll(t, seeds)
		split := share(all, func(o outcome) bool { return o.terms > 1 })
		require.InDelta(t, v.p, split, 3.5*math.Sqrt(v.p*(1-v.p)/seeds)+.005, "%+v", v)
	}
}

// A herd is a cluster whose leader goes: all others find that out at the same moment.
type herd struct {
	voters int
	change func(*elector.Config)
	lose   func(s *sim.Sim, leader elector.NodeID) error
	jitter time.Duration
	delay  time.Duration // of each message; 0 for oneWay
}

// outcome is how often anybody asked or stood until somebody led, in how many terms, and how
// long that took from when the leader was gone.
type outcome struct {
	attempts, terms int
	took            time.Duration
}

const oneWay = 15 * time.Millisecond

// play plays one failover.
func (h herd) play(t *testing.T, seed uint64) (o outcome) {
	t.Helper()
	const first = 10
	ids := names(h.voters)
	cfg := sim.Config{Seed: seed}
	cfg.Network = sim.Faults{Delay: cmp.Or(h.delay, oneWay), Jitter: h.jitter}
	cfg.Begin = sim.Begin{Leader: ids[seed%uint64(h.voters)], Term: first}
	timing := elector.Article()
	for _, id := range ids {
		e := elector.Config{Self: id, Voters: ids, Timing: timing}
		h.change(&e)
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{Elector: e})
	}
	var gone, led time.Duration
	asked := map[string]bool{}
	cfg.Observer = func(e *sim.Event) {
		switch m, _ := e.Message.(ours.Message); {
		case gone == 0 || led != 0:
		case e.Kind == sim.EventSent && m.Kind == elector.ElectionScouting:
			asked[fmt.Sprint(e.Node, m.Round)] = true
		case e.Kind == sim.EventTransition && e.Transition.To == elector.Candidate &&
			cfg.Nodes[0].Elector.UnsafeNoScouting:
			asked[fmt.Sprint(e.Node, e.Transition.Term)] = true
		case e.Kind == sim.EventTransition && e.Transition.To == elector.Leader:
			led, o.terms = e.At, int(e.Transition.Term-first)
		}
	}
	s := start(t, cfg)
	// Seeds differ in how long ago the last heartbeat was.
	require.NoError(t, s.RunUntil(5*time.Second+time.Duration(seed*7919%500)*time.Millisecond))
	require.NoError(t, h.lose(s, cfg.Begin.Leader))
	for gone = s.Now(); led == 0; {
		require.Less(t, s.Now(), time.Minute, "nobody leads: %d voters, seed %d", h.voters, seed)
		require.NoError(t, s.RunFor(100*time.Millisecond))
	}
	o.attempts, o.took = len(asked), led-gone
	return o
}

// playAll plays failovers under many seeds.
func (h herd) playAll(t *testing.T, seeds int) (all []outcome) {
	for seed := range seeds {
		all = append(all, h.play(t, uint64(seed)+1))
	}
	return all
}

// share is that of the outcomes for which has holds.
func share(all []outcome, has func(outcome) bool) float64 {
	n := 0
	for _, o := range all {
		if has(o) {
			n++
		}
	}
	return float64(n) / float64(len(all))
}

func inTurn(c *elector.Config) { c.Timing.MinRandomWait = time.Millisecond }

// atRandom makes the random wait so short that nodes collide: a message takes the share l.
func atRandom(l float64) func(*elector.Config) {
	return func(c *elector.Config) {
		c.Timing.MaxRandomWait = time.Duration(float64(oneWay) / l)
	}
}

func unasked(l float64) func(*elector.Config) {
	return func(c *elector.Config) { atRandom(l)(c); c.UnsafeNoScouting = true }
}

func killed(s *sim.Sim, leader elector.NodeID) error { return s.Crash(leader, sim.Crash{}) }

// killedWith kills so many others first.
func killedWith(others int) func(s *sim.Sim, leader elector.NodeID) error {
	return func(s *sim.Sim, leader elector.NodeID) error {
		left := others
		for _, id := range s.Nodes() {
			if id != leader && left > 0 {
				left--
				if err := killed(s, id); err != nil {
					return err
				}
			}
		}
		return killed(s, leader)
	}
}

// killedWithHeir kills the one that is first in line, too.
func killedWithHeir(s *sim.Sim, leader elector.NodeID) error {
	return errors.Join(killed(s, heirOf(s, leader)), killed(s, leader))
}

// stoppedBeforeHeir lets the leader name its successor, which is killed when all know that.
func stoppedBeforeHeir(s *sim.Sim, leader elector.NodeID) error {
	return errors.Join(s.Stop(leader), killed(s, heirOf(s, leader)))
}

func heirOf(s *sim.Sim, leader elector.NodeID) elector.NodeID {
	ids := s.Nodes()
	if last := ids[len(ids)-1]; last != leader {
		return last
	}
	return ids[len(ids)-2]
}

func paused(s *sim.Sim, leader elector.NodeID) error { return s.Pause(leader) }

// unplugged is the end of a machine: no kernel is left that proves it.
func unplugged(s *sim.Sim, leader elector.NodeID) error {
	return s.Crash(leader, sim.Crash{Silent: true})
}

// TestTheFormulaHoldsInTheSimulator compares how nodes collide: those that stand at random and
// unasked, as the formula has it; those that ask first; those that stand in turn. A message
// takes a tenth of the window of the random wait, ten times what is good: there votes split.
func TestTheFormulaHoldsInTheSimulator(t *testing.T) {
	t.Parallel()
	const seeds = 200
	table := "attempts in a failover, per cent of failovers\n" +
		"voters  votes split: formula, simulated  at random: 1, 2, more  in turn: 1, 2, more\n"
	for n := 3; n <= 9; n++ {
		play := func(change func(*elector.Config), seeds int) []outcome {
			return herd{voters: n, change: change, lose: killed}.playAll(t, seeds)
		}
		p := splitVote(n, n-1, .1)
		split := share(play(unasked(.1), seeds), func(o outcome) bool { return o.terms > 1 })
		require.InDelta(t, p, split, 3*math.Sqrt(p*(1-p)/seeds)+.01, "%d voters", n)
		turns := play(inTurn, seeds/4)
		require.Equal(t, 1., share(turns, alone), "%d voters: %s", n, attempts(turns))
		table += fmt.Sprintf("%d  %4.1f %4.1f  %s  %s\n", n, 100*p, 100*split,
			attempts(play(atRandom(.1), seeds/4)), attempts(turns))
	}
	t.Log(table)
}

// TestTurnsHoldHoweverTheLeaderGoes is about what all followers find out at the same moment.
func TestTurnsHoldHoweverTheLeaderGoes(t *testing.T) {
	t.Parallel()
	const seeds = 30
	for _, c := range []struct {
		name   string
		herd   herd
		fewest int
	}{
		{"killed", herd{lose: killed, jitter: oneWay}, 3},
		{"killed with its heir", herd{lose: killedWithHeir}, 5},
		{"stopped, and its heir killed", herd{lose: stoppedBeforeHeir}, 5},
		{"paused", herd{lose: paused, jitter: oneWay}, 3},
		{"unplugged", herd{lose: unplugged, jitter: oneWay}, 3},
	} {
		for n := c.fewest; n <= 9; n++ {
			c.herd.voters, c.herd.change = n, inTurn
			all := c.herd.playAll(t, seeds)
			slices.SortFunc(all, func(a, b outcome) int { return cmp.Compare(a.took, b.took) })
			t.Logf("%s, %d voters: median %s, worst %s", c.name, n, all[seeds/2].took, all[seeds-1].took)
			require.Equal(t, 1., share(all, alone), "%s, %d voters: %s", c.name, n, attempts(all))
		}
	}
}

// TestADeadSuccessorHoldsNobodyBack: a leader that stops and names a successor which dies as
// well is replaced about as soon as if both had crashed.
func TestADeadSuccessorHoldsNobodyBack(t *testing.T) {
	for _, profile := range []string{"lan", "article"} {
		timing, _ := elector.Profile(profile)
		median := func(lose func(*sim.Sim, elector.NodeID) error) time.Duration {
			h := herd{voters: 5, lose: lose, delay: 100 * time.Microsecond}
			h.change = func(c *elector.Config) { c.Timing = timing }
			all := h.playAll(t, 100)
			slices.SortFunc(all, func(a, b outcome) int { return cmp.Compare(a.took, b.took) })
			return all[len(all)/2].took
		}
		killed, stopped := median(killedWithHeir), median(stoppedBeforeHeir)
		t.Logf("%s: both killed %s, the leader stopped and its heir killed %s", profile, killed, stopped)
		require.Less(t, stopped, killed+timing.ElectionResult/2, profile)
	}
}

// alone holds if nobody except the winner ever asked, and it once.
func alone(o outcome) bool { return o.attempts == 1 && o.terms == 1 }

// attempts is in how many of a hundred failovers there was one attempt, two, and more.
func attempts(all []outcome) string {
	var of [3]int
	for _, o := range all {
		of[min(o.attempts, 3)-1]++
	}
	percent := func(n int) float64 { return 100 * float64(n) / float64(len(all)) }
	return fmt.Sprintf("%3.0f %3.0f %3.0f", percent(of[0]), percent(of[1]), percent(of[2]))
}
