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

// splitVote is the probability that an election among n voters, s of them alive, has no winner.
// They stand without asking, after waits that are uniform in a window; a message takes the share
// l of that window. Votes split if too many stand before they hear of another candidate. From
// section 9.2 of Ongaro's dissertation on Raft.
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

// TestSplitVoteFormula compares how often votes split with the formula, for nodes that stand at
// random and unasked. The figures for 5 voters are those that the dissertation prints. They
// say that the longest random wait should be 10 to 20 times what a message takes.
func TestSplitVoteFormula(t *testing.T) {
	t.Parallel()
	const seeds = 100
	for _, v := range []struct {
		n, s int
		l, p float64
	}{
		{3, 2, .1, .19}, {4, 3, .1, .271}, {5, 4, .01, .000592}, {5, 4, .1, .0523}, {5, 4, .2, .1808},
		{5, 3, .2, .488}, {6, 5, .1, .08146}, {7, 6, .1, .01585}, {7, 4, .1, .3439},
		{8, 7, .1, .02569}, {9, 8, .1, .005024}, {9, 5, .1, .40951}, {9, 5, .2, .67232},
	} {
		require.InEpsilon(t, v.p, splitVote(v.n, v.s, v.l), 2e-3, "%+v", v)
		h, split := herd{voters: v.n, change: unasked(v.l), lose: killedWith(v.n - v.s - 1)}, 0.
		for _, o := range h.playAll(t, seeds) {
			if o.terms > 1 {
				split += 1. / seeds
			}
		}
		require.InDelta(t, v.p, split, 3.5*math.Sqrt(v.p*(1-v.p)/seeds)+.005, "%+v", v)
	}
}

// A herd is a cluster that loses its leader: all others find that out at the same moment.
type herd struct {
	voters int
	change func(*elector.Config)
	lose   func(s *sim.Sim, leader elector.NodeID) error
	jitter time.Duration
	delay  time.Duration // of each message; 0 for oneWay
}

// outcome is how often anybody asked until somebody led, in how many terms, and how
// long that took from when the leader was gone.
type outcome struct {
	attempts, terms int
	took            time.Duration
}

const oneWay = 15 * ms

// play plays one failover.
func (h herd) play(t *testing.T, seed uint64) (o outcome) {
	t.Helper()
	const first = 10
	cfg := cluster(seed, h.voters)
	cfg.FsyncMax = 0
	cfg.Network = sim.Faults{Delay: cmp.Or(h.delay, oneWay), Jitter: h.jitter}
	cfg.Begin = sim.Begin{Leader: names(h.voters)[seed%uint64(h.voters)], Term: first}
	for i := range cfg.Nodes {
		h.change(&cfg.Nodes[i].Elector)
	}
	var gone, led time.Duration
	asked := map[string]bool{}
	cfg.Observer = func(e *sim.Event) {
		switch m, _ := e.Message.(ours.Message); {
		case gone == 0 || led != 0:
		case e.Kind == sim.EventSent && m.Kind == elector.ElectionScouting:
			asked[fmt.Sprint(e.Node, m.Round)] = true
		case e.Kind == sim.EventTransition && e.Transition.To == elector.Leader:
			led, o.terms = e.At, int(e.Transition.Term-first)
		}
	}
	s := start(t, cfg)
	// Seeds differ in how long ago the last heartbeat was.
	require.NoError(t, s.RunUntil(5*time.Second+time.Duration(seed*7919%500)*ms))
	require.NoError(t, h.lose(s, cfg.Begin.Leader))
	for gone = s.Now(); led == 0; {
		require.Less(t, s.Now(), time.Minute, "nobody leads: %d voters, seed %d", h.voters, seed)
		require.NoError(t, s.RunFor(100*ms))
	}
	o.attempts, o.took = len(asked), led-gone
	return o
}

// playAll plays failovers under many seeds, and returns them with the shortest first.
func (h herd) playAll(t *testing.T, seeds int) (all []outcome) {
	for seed := range seeds {
		all = append(all, h.play(t, uint64(seed)+1))
	}
	slices.SortFunc(all, func(a, b outcome) int { return cmp.Compare(a.took, b.took) })
	return all
}

func inTurn(c *elector.Config) { c.Timing.MinRandomWait = ms }

// unasked makes nodes stand without asking first, after a random wait that is so short that they
// collide: a message takes the share l of it.
func unasked(l float64) func(*elector.Config) {
	return func(c *elector.Config) {
		c.Timing.MaxRandomWait = time.Duration(float64(oneWay) / l)
		c.UnsafeNoScouting = true
	}
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

// unplugged is the end of a machine: no kernel is left that proves it.
func unplugged(s *sim.Sim, leader elector.NodeID) error {
	return s.Crash(leader, sim.Crash{Silent: true})
}

// TestTurnsHoldHoweverTheLeaderGoes: all followers find out at the same moment that the leader is
// gone. As they stand in turn, only the winner asks, and only once.
func TestTurnsHoldHoweverTheLeaderGoes(t *testing.T) {
	t.Parallel()
	pause := func(s *sim.Sim, leader elector.NodeID) error { return s.Pause(leader) }
	for _, c := range []struct {
		name   string
		herd   herd
		fewest int
	}{
		{"killed", herd{lose: killed, jitter: oneWay}, 3},
		{"killed with its heir", herd{lose: killedWithHeir}, 5},
		{"stopped, and its heir killed", herd{lose: stoppedBeforeHeir}, 5},
		{"paused", herd{lose: pause, jitter: oneWay}, 3},
		{"unplugged", herd{lose: unplugged, jitter: oneWay}, 3},
	} {
		for n := c.fewest; n <= 9; n++ {
			c.herd.voters, c.herd.change = n, inTurn
			for _, o := range c.herd.playAll(t, 30) {
				o.took = 0
				require.Equal(t, outcome{attempts: 1, terms: 1}, o, "%s, %d voters", c.name, n)
			}
		}
	}
}

// TestADeadSuccessorHoldsNobodyBack: a leader that stops and names a successor which dies as
// well is replaced about as soon as if both had crashed.
func TestADeadSuccessorHoldsNobodyBack(t *testing.T) {
	for _, profile := range []string{"lan", "article"} {
		timing, _ := elector.Profile(profile)
		h := herd{voters: 5, delay: 100 * time.Microsecond}
		h.change = func(c *elector.Config) { c.Timing = timing }
		h.lose = killedWithHeir
		killed := h.playAll(t, 100)[50].took
		h.lose = stoppedBeforeHeir
		stopped := h.playAll(t, 100)[50].took
		require.Less(t, stopped, killed+timing.ElectionResult/2, profile)
	}
}
