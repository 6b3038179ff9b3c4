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

// TestStickyWhateverTheRestDoes is I4: nothing that happens to other nodes and
// links unseats a leader which exchanges messages both ways with a quorum. One
// of the others may even come up with a disk from a far higher term.
func TestStickyWhateverTheRestDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawSteadyCluster(t)
		watch := watchLeaders(&cfg)
		s := start(t, cfg)
		requireLeaderWithin(t, s, bound(cfg))
		require.NoError(t, s.RunFor(time.Minute))
		leads := leader(t, s)
		kept := keep(cfg, s, leads)
		for _, id := range s.Nodes() {
			require.NoError(t, step{Do: "restart", A: id}.attempt(s))
		}
		schedule := rapid.SliceOfN(drawStep(s.Nodes(), everything).Filter(leavesAlone(kept)), 1,
			60).Draw(t, "schedule")
		watch.unseated = ""
		require.NoError(t, play(s, schedule))
		require.NoError(t, s.RunFor(30*time.Second))
		require.Empty(t, watch.unseated, "%s leads with %s", leads, kept)
		require.Equal(t, leads, leader(t, s))
	})
}

// drawSteadyCluster draws a cluster whose network is quiet until a schedule says
// otherwise. Its disks are quick: while a leader that re-affirms itself waits for slow
// ones, a node that leaves may be the only one that has written the new term. A node
// that a quorum can do without may be absent, with an inflated term on its disk.
func drawSteadyCluster(t *rapid.T) sim.Config {
	cfg := drawAbleCluster(t)
	quiet(&cfg)
	if voters := len(cfg.Nodes[0].Elector.Voters); voters > 2 {
		spare := rapid.IntRange(0, voters-1).Draw(t, "spare")
		cfg.Nodes[spare].Absent = rapid.Bool().Draw(t, "absent") && anotherStands(cfg, spare)
		if cfg.Nodes[spare].Absent {
			cfg.Nodes[spare].Term = 1000
		}
	}
	return cfg
}

// quiet makes a network fast, and writes short beside what a heartbeat leaves of the lease.
func quiet(cfg *sim.Config) {
	cfg.Network = sim.Faults{Delay: ms, Jitter: ms}
	timing := cfg.Nodes[0].Elector.Timing
	cfg.FsyncMax = min(cfg.FsyncMax, (timing.Lease-timing.HeartbeatBroadcast)/8)
}

// anotherStands reports whether a voter other than i may stand for election.
func anotherStands(cfg sim.Config, i int) bool {
	return slices.ContainsFunc(cfg.Nodes, func(n sim.NodeConfig) bool {
		return n.Elector.Self != cfg.Nodes[i].Elector.Self && electable(n)
	})
}

// watched is what an observer saw of leaderships since it was reset.
type watched struct{ unseated string }

func watchLeaders(cfg *sim.Config) *watched {
	w := &watched{}
	cfg.Observer = func(e *sim.Event) {
		t := e.Transition
		if e.Kind == sim.EventTransition && t.From != t.To &&
			(t.From == elector.Leader || t.To == elector.Leader) {
			w.unseated += e.String() + "\n"
		}
	}
	return w
}

// keep chooses the quorum that stays with the leader, itself first.
func keep(cfg sim.Config, s *sim.Sim, leads elector.NodeID) []elector.NodeID {
	voters := cfg.Nodes[0].Elector.Voters
	kept := []elector.NodeID{leads}
	for _, id := range voters {
		if id != leads && s.View(id).Running && len(kept) < elector.Majority(len(voters)) {
			kept = append(kept, id)
		}
	}
	return kept
}

// leavesAlone tells whether a step spares the kept processes and the links
// between the first of them, the leader, and the others.
func leavesAlone(kept []elector.NodeID) func(step) bool {
	return func(st step) bool {
		switch st.Do {
		case "wait", "healAll":
			return true
		case "cut", "heal", "reset", "faults":
			between := st.A == kept[0] || st.B == kept[0]
			return !between || !slices.Contains(kept, st.A) || !slices.Contains(kept, st.B)
		case "pair":
			return false
		}
		return !slices.Contains(kept, st.A)
	}
}
