package sim_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// TestSafeUnderAnySchedule is I1, I2 and I3, and that no transition is unknown,
// nobody votes twice in a term and nothing leaves a node before it is durable:
// the simulator checks all that after every event.
func TestSafeUnderAnySchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		playAny(t, drawCluster(t), everything, 60)
	})
}

// TestSafeAtEveryBound is the same where the constants of terms are small.
func TestSafeAtEveryBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		playAny(t, drawNarrow(t), everything, 60)
	})
}

// TestLiveAfterAnySchedule is I5: once everything is up and healed, there is a
// leader within a bound that follows from the configuration.
func TestLiveAfterAnySchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawAbleCluster(t)
		s := playAny(t, cfg, everything, 30)
		require.NoError(t, calm(s))
		requireLeaderWithin(t, s, bound(cfg))
	})
}

// playAny makes a cluster and plays a schedule on it: at most so many steps of the given kinds.
func playAny(t *rapid.T, cfg sim.Config, do []string, most int) *sim.Sim {
	s := start(t, cfg)
	require.NoError(t, s.RunFor(drawStart(t)))
	schedule := rapid.SliceOfN(drawStep(targets(s), do), 1, most).Draw(t, "schedule")
	require.NoError(t, play(s, schedule))
	return s
}

// targets are what a schedule may aim at.
func targets(s *sim.Sim) []elector.NodeID { return append(s.Nodes(), theLeader) }

// drawStart draws how long the cluster is left alone: just started, or settled.
func drawStart(t *rapid.T) time.Duration {
	return pick(t, "start", 0, 4*time.Second, 20*time.Second)
}

// drawAbleCluster draws one whose network is fast enough for its timers; no other
// can elect, or keep, a leader.
func drawAbleCluster(t *rapid.T) sim.Config {
	cfg := drawCluster(t)
	enable(cfg)
	return cfg
}

// enable makes the timers of a cluster long enough for its network.
func enable(cfg sim.Config) {
	timing := cfg.Nodes[0].Elector.Timing
	timing.Lease = max(timing.Lease, timing.HeartbeatBroadcast+20*ms)
	timing.InitialWait = max(timing.InitialWait, timing.Promise())
	for i := range cfg.Nodes {
		cfg.Nodes[i].Elector.Timing = timing
	}
}

// calm ends every fault. A node that was told to stop may wait for its work to end first, so
// all nodes are started once more 10 s later.
func calm(s *sim.Sim) error {
	s.HealAll()
	if err := reviveAll(s); err != nil {
		return err
	}
	if err := s.RunFor(10 * time.Second); err != nil {
		return err
	}
	if err := reviveAll(s); err != nil {
		return err
	}
	well := func(a, b elector.NodeID) error { return s.SetFaults(a, b, sim.Faults{Delay: ms}) }
	var err error
	for _, id := range s.Nodes() {
		err = errors.Join(err, eachLink(s, id, well))
	}
	return err
}

func reviveAll(s *sim.Sim) (err error) {
	for _, id := range s.Nodes() {
		err = errors.Join(err, step{Do: "resume", A: id}.attempt(s),
			step{Do: "restart", A: id}.attempt(s), s.SetFit(id, true), s.Tell(id, elector.Pause{}))
	}
	return err
}

// bound is how long a cluster may take to have a leader once nothing disturbs
// it: what the disturbance left (messages under way, links to time out and to
// make, an old leader's silence, promises, a restart), and twenty attempts to
// stand. An attempt fails only if two nodes collide.
func bound(cfg sim.Config) time.Duration {
	t := cfg.Nodes[0].Elector.Timing
	left := 10*time.Second + cfg.LinkTimeout + time.Second + t.Inactivity() + t.InitialWait +
		t.Promise()
	attempt := t.MaxRandomWait + t.ScoutingResult + t.ElectionResult + 2*cfg.FsyncMax
	return 2 * (left + 20*attempt)
}

// leaderWithin reports whether somebody leads before d is over. It ends when somebody does.
func leaderWithin(s *sim.Sim, d time.Duration) (bool, error) {
	for end := s.Now() + d; s.Now() < end; {
		if err := s.RunFor(100 * ms); err != nil {
			return false, err
		}
		if _, ok := s.Leader(); ok {
			return true, nil
		}
	}
	return false, nil
}

func requireLeaderWithin(t require.TestingT, s *sim.Sim, d time.Duration) {
	leads, err := leaderWithin(s, d)
	require.NoError(t, err)
	require.True(t, leads, "nobody leads for %s until %s", d, s.Now())
}

// TestLiveThroughOneHub is I5 at its narrowest: only one node that may stand is
// connected both ways with a quorum; any other link may be cut, either way.
func TestLiveThroughOneHub(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawAbleCluster(t)
		s := playAny(t, cfg, everything, 30)
		require.NoError(t, calm(s))
		other := leavesAlone(drawHub(t, cfg))
		for _, a := range s.Nodes() {
			for _, b := range s.Nodes() {
				if a != b && other(step{Do: "cut", A: a, B: b}) &&
					rapid.IntRange(0, 3).Draw(t, "way") > 0 {
					require.NoError(t, s.Cut(a, b))
				}
			}
		}
		requireLeaderWithin(t, s, hubBound(cfg))
	})
}

// hubBound is bound for a hub. A spoke of higher rank refuses the hub while its own,
// hopeless round is open, so all spokes must be between two rounds at once. In thirty
// times as many attempts as that takes on average it fails with a chance of e^-30.
func hubBound(cfg sim.Config) time.Duration {
	t := cfg.Nodes[0].Elector.Timing
	attempts := 30
	for range elector.Majority(len(cfg.Nodes[0].Elector.Voters)) - 1 {
		attempts *= 2 + int(2*t.ScoutingResult/t.MaxRandomWait)
	}
	return bound(cfg) + time.Duration(attempts)*(t.MaxRandomWait+t.ScoutingResult)
}

// drawHub draws a node that may stand, and then as many voters as it needs.
func drawHub(t *rapid.T, cfg sim.Config) []elector.NodeID {
	hub := rapid.SampledFrom(cfg.Nodes).Filter(electable).Draw(t, "hub").Elector.Self
	kept, voters := []elector.NodeID{hub}, cfg.Nodes[0].Elector.Voters
	for _, id := range rapid.Permutation(voters).Draw(t, "spokes") {
		if id != hub && len(kept) < elector.Majority(len(voters)) {
			kept = append(kept, id)
		}
	}
	return kept
}

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
