package sim_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/lsn"
)

// A step of a schedule waits and then does something to nodes A and B, as far as
// it applies to them. It prints as what rapid shows when a property fails.
type step struct {
	Wait     time.Duration
	Do       string
	A        elector.NodeID
	B        elector.NodeID `json:",omitzero"`
	Crash    sim.Crash      `json:",omitzero"`
	Faults   sim.Faults     `json:",omitzero"`
	Rest     time.Duration  `json:",omitzero"`
	Priority int            `json:",omitzero"`
}

func (st step) String() string {
	switch st.Do {
	case "crash":
		return fmt.Sprintf("+%s crash %s %+v", st.Wait, st.A, st.Crash)
	case "resign", "hold", "stall", "disk":
		return fmt.Sprintf("+%s %s %s for %s", st.Wait, st.Do, st.A, st.Rest)
	case "prefer":
		return fmt.Sprintf("+%s prefer %s by %d", st.Wait, st.A, st.Priority)
	case "faults":
		return fmt.Sprintf("+%s faults %s->%s %+v", st.Wait, st.A, st.B, st.Faults)
	}
	return fmt.Sprintf("+%s %s %s %s", st.Wait, st.Do, st.A, st.B)
}

// deeds are what a step may do. The first is what rapid shrinks to.
var deeds = map[string]func(*sim.Sim, step) error{
	"wait":    func(*sim.Sim, step) error { return nil },
	"cut":     func(s *sim.Sim, st step) error { return s.Cut(st.A, st.B) },
	"heal":    func(s *sim.Sim, st step) error { return s.Heal(st.A, st.B) },
	"healAll": func(s *sim.Sim, _ step) error { s.HealAll(); return s.Err() },
	"isolate": func(s *sim.Sim, st step) error { return eachLink(s, st.A, s.Cut) },
	"rejoin":  func(s *sim.Sim, st step) error { return eachLink(s, st.A, s.Heal) },
	"pair":    func(s *sim.Sim, st step) error { return s.Partition([]elector.NodeID{st.A, st.B}) },
	"reset":   func(s *sim.Sim, st step) error { return s.Reset(st.A, st.B) },
	"faults":  func(s *sim.Sim, st step) error { return s.SetFaults(st.A, st.B, st.Faults) },
	"crash":   func(s *sim.Sim, st step) error { return onRunning(s, st.A, crash(st.Crash)) },
	"restart": func(s *sim.Sim, st step) error { return onDown(s, st.A, s.Restart) },
	"stop":    func(s *sim.Sim, st step) error { return onAwake(s, st.A, s.Stop) },
	"pause":   func(s *sim.Sim, st step) error { return onAwake(s, st.A, s.Pause) },
	"resume":  func(s *sim.Sim, st step) error { return onPaused(s, st.A, s.Resume) },
	"transfer": func(s *sim.Sim, st step) error {
		return onAwake(s, st.A,
			func(id elector.NodeID) error { _ = s.Transfer(id, st.B); return s.Err() })
	},
	"resign": func(s *sim.Sim, st step) error {
		return onRunning(s, st.A, func(s *sim.Sim, id elector.NodeID) error {
			return s.Resign(id,
				st.Rest)
		})
	},
	"hold": func(s *sim.Sim, st step) error {
		return onRunning(s, st.A, tell(elector.Pause{For: st.Rest}))
	},
	"prefer": func(s *sim.Sim, st step) error {
		return onRunning(s, st.A, tell(elector.Prefer{Priority: st.Priority}))
	},
	"stall":  func(s *sim.Sim, st step) error { return onAwake(s, st.A, stall(s, st.Rest)) },
	"disk":   func(s *sim.Sim, st step) error { s.SetFsync(st.Rest/2, st.Rest); return nil },
	"hub":    func(s *sim.Sim, st step) error { return shape(s, hub(st.A)) },
	"leaf":   func(s *sim.Sim, st step) error { return shape(s, leaf(st.A, st.B)) },
	"bridge": func(s *sim.Sim, st step) error { return shape(s, bridge(s, st.A)) },
	"fit":    func(s *sim.Sim, st step) error { return onRunning(s, st.A, setFit(true)) },
	"unfit":  func(s *sim.Sim, st step) error { return onRunning(s, st.A, setFit(false)) },
	"abrupt": func(s *sim.Sim, st step) error { return onAwake(s, st.A, s.StopAbruptly) },
	"bounce": func(s *sim.Sim, st step) error {
		if err := onRunning(s, st.A, crash(st.Crash)); err != nil {
			return err
		}
		return onDown(s, st.A, s.Restart)
	},
}

var everything = []string{
	"wait", "cut", "heal", "healAll", "isolate", "rejoin", "pair", "reset", "faults",
	"crash", "restart", "restart", "stop", "pause", "resume", "resume", "transfer", "bounce",
	"resign", "fit", "unfit", "abrupt",
}

// spans are how long a process may be held up, and how long a write may take.
var spans = []time.Duration{0, 50 * time.Millisecond, 400 * time.Millisecond,
	900 * time.Millisecond, 3 * time.Second}

func tell(in elector.Input) func(*sim.Sim, elector.NodeID) error {
	return func(s *sim.Sim, id elector.NodeID) error { return s.Tell(id, in) }
}

// stall holds a process up for a while.
func stall(s *sim.Sim, long time.Duration) func(elector.NodeID) error {
	return func(id elector.NodeID) error {
		s.At(s.Now()+long, func(s *sim.Sim) error { return onPaused(s, id, s.Resume) })
		return s.Pause(id)
	}
}

func setFit(fit bool) func(*sim.Sim, elector.NodeID) error {
	return func(s *sim.Sim, id elector.NodeID) error { return s.SetFit(id, fit) }
}

func crash(how sim.Crash) func(*sim.Sim, elector.NodeID) error {
	return func(s *sim.Sim, id elector.NodeID) error { return s.Crash(id, how) }
}

func onRunning(s *sim.Sim, id elector.NodeID, do func(*sim.Sim, elector.NodeID) error) error {
	if v, _ := s.View(id); v.Running {
		return do(s, id)
	}
	return nil
}

func onDown(s *sim.Sim, id elector.NodeID, do func(elector.NodeID) error) error {
	if v, _ := s.View(id); !v.Running {
		return do(id)
	}
	return nil
}

func onAwake(s *sim.Sim, id elector.NodeID, do func(elector.NodeID) error) error {
	if v, _ := s.View(id); v.Running && !v.Paused {
		return do(id)
	}
	return nil
}

func onPaused(s *sim.Sim, id elector.NodeID, do func(elector.NodeID) error) error {
	if v, _ := s.View(id); v.Paused {
		return do(id)
	}
	return nil
}

// drawStep draws any step among the given nodes and deeds.
func drawStep(ids []elector.NodeID, do []string) *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		st := step{
			Wait: drawWait(t),
			Do:   rapid.SampledFrom(do).Draw(t, "do"),
			A:    rapid.SampledFrom(ids).Draw(t, "a"),
		}
		st.B = rapid.SampledFrom(ids).Filter(func(b elector.NodeID) bool {
			return b != st.A &&
				b != theLeader
		}).Draw(t, "b")
		switch st.Do {
		case "crash", "bounce":
			st.Crash.Unsynced = sim.Unsynced(rapid.IntRange(0, 2).Draw(t, "unsynced"))
			st.Crash.Silent = rapid.Bool().Draw(t, "silent")
		case "faults":
			st.Faults = drawFaults(t)
		case "resign", "hold":
			st.Rest = time.Duration(rapid.IntRange(0, 3).Draw(t, "rest")) * time.Second
		case "stall", "disk":
			st.Rest = rapid.SampledFrom(spans).Draw(t, "span")
		case "prefer":
			st.Priority = rapid.IntRange(-1, 2).Draw(t, "priority")
		}
		return st
	})
}

// drawWait draws waits of the size of a packet's way as well as of a timer.
func drawWait(t *rapid.T) time.Duration {
	unit := rapid.SampledFrom([]time.Duration{time.Millisecond, 30 * time.Millisecond,
		300 * time.Millisecond, 2 * time.Second})
	return time.Duration(rapid.IntRange(0, 10).Draw(t, "wait")) * unit.Draw(t, "unit") / 2
}

func drawFaults(t *rapid.T) sim.Faults {
	delay := rapid.SampledFrom([]time.Duration{0, time.Millisecond, 20 * time.Millisecond,
		200 * time.Millisecond, 900 * time.Millisecond})
	chance := rapid.SampledFrom([]int{0, 0, 10_000, 100_000, 500_000})
	return sim.Faults{
		Delay: delay.Draw(t, "delay"), Jitter: delay.Draw(t, "jitter"),
		LossPPM: chance.Draw(t, "loss"), DuplicatePPM: chance.Draw(t, "duplicate"),
		ReorderPPM: chance.Draw(t, "reorder"), ExtraMax: delay.Draw(t, "extra"),
		LatePPM: chance.Draw(t, "late"), LateMax: 10 * time.Second,
	}
}

// drawTiming draws a profile, or timers that are all different from it and valid.
func drawTiming(t *rapid.T) elector.Timing {
	name := rapid.SampledFrom(elector.ProfileNames()).Draw(t, "profile")
	timing, _ := elector.Profile(name)
	if rapid.Bool().Draw(t, "own timers") {
		return timing
	}
	ms := func(name string, lo, hi int) time.Duration {
		return time.Duration(rapid.IntRange(lo, hi).Draw(t, name)) * time.Millisecond
	}
	timing.HeartbeatBroadcast = ms("heartbeat", 50, 600)
	timing.HeartbeatMissCount = rapid.IntRange(2, 5).Draw(t, "misses")
	timing.Lease = timing.HeartbeatBroadcast +
		ms("lease", 1, int(timing.HeartbeatBroadcast/time.Millisecond))
	timing.ScoutingResult = ms("scouting", 100, 1000)
	timing.ElectionResult = ms("election", 100, 1000)
	timing.MaxRandomWait = ms("random", 100, 2000)
	timing.ClockDriftPPM = int64(rapid.IntRange(0, 100_000).Draw(t, "drift"))
	timing.InitialWait = max(timing.MaxRandomWait, timing.Promise()) + ms("initial", 0, 1000)
	timing.MinRandomWait = 0
	if timing.Promise() <= timing.Inactivity() {
		timing.MinRandomWait = rapid.SampledFrom([]time.Duration{0, 1, 50 * time.Millisecond}).Draw(t,
			"least random")
	}
	return timing
}

// drawCluster draws a cluster of voters with, perhaps, an observer, whose clocks
// differ within the drift that they are configured for.
func drawCluster(t *rapid.T) sim.Config { return drawClusterOf(t, 2, 5, 1) }

// drawClusterOf draws one of so many voters, and at most so many observers.
func drawClusterOf(t *rapid.T, least, most, observers int) sim.Config {
	n := rapid.IntRange(least, most).Draw(t, "voters")
	electable := rapid.IntRange(0, n-1).Draw(t, "electable")
	voters, timing, quality := names(n), drawTiming(t), drawQuality(t)
	if quality != (detector.QoS{}) {
		timing = elector.ForQoS(quality)
	}
	cfg := sim.Config{
		Seed:    rapid.Uint64().Draw(t, "seed"),
		Network: drawFaults(t),
		FsyncMax: rapid.SampledFrom([]time.Duration{0, 20 * time.Millisecond, 800 * time.Millisecond,
			3 * time.Second}).Draw(t, "fsync"),
		ProofMax: rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, 5 * time.Second}).Draw(
			t, "proof"),
		LinkTimeout: rapid.SampledFrom([]time.Duration{3 * time.Second, 300 * time.Millisecond}).Draw(t,
			"link timeout"),
	}
	ids := names(n + rapid.IntRange(0, observers).Draw(t, "observers"))
	for i, id := range ids {
		ppm := rapid.SampledFrom([]int64{0, timing.ClockDriftPPM / 2, timing.ClockDriftPPM}).Draw(t,
			"ppm")
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{
			ClockRatePPM: ppm, Work: drawWork(t),
			Elector: elector.Config{
				Self: id, Voters: voters, Timing: timing, Priority: rapid.IntRange(-1, 1).Draw(t, "priority"),
				QoS:          quality,
				NotCandidate: i != electable && rapid.IntRange(0, 3).Draw(t, "not candidate") == 3,
			},
		})
	}
	return cfg
}

// drawNarrow draws a cluster whose constants of terms are so small that schedules meet each of
// them, and whose disks are terms apart: nodes climb. With these a voter may be too far above
// the others to take part, so such a cluster need not have a leader.
func drawNarrow(t *rapid.T) sim.Config {
	cfg := drawCluster(t)
	narrow(t, cfg)
	return cfg
}

func narrow(t *rapid.T, cfg sim.Config) {
	leap := lsn.Term(rapid.IntRange(1, 4).Draw(t, "leap"))
	bounds := &elector.Bounds{
		Reserve: lsn.Term(rapid.IntRange(0, 4).Draw(t, "reserve")), Ahead: 2, Leap: leap, Climb: 2 * leap,
		Near: 1, ClimbFor: 500 * time.Millisecond,
	}
	for i := range cfg.Nodes {
		cfg.Nodes[i].Elector.Bounds = bounds
		cfg.Nodes[i].Term = lsn.Term(rapid.SampledFrom([]int{0, 0, 5, 20, 60}).Draw(t, "term"))
	}
}

// drawQuality draws what is asked of the detection of a crash: mostly nothing.
func drawQuality(t *rapid.T) (q detector.QoS) {
	detect := rapid.SampledFrom([]time.Duration{0, 0, 0, 300 * ms, 2 * time.Second}).Draw(t, "detect")
	if detect != 0 {
		q = detector.QoS{Detect: detect, Mistakes: detector.Recurrence(time.Hour), Accuracy: 0.999}
	}
	return q
}

// drawWork draws work that stops at once, soon, late, or not by itself.
func drawWork(t *rapid.T) sim.Work {
	stops := rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond, 100 * time.Millisecond,
		900 * time.Millisecond, time.Hour})
	return sim.Work{Does: rapid.Bool().Draw(t, "works"), Stops: stops.Draw(t, "stops")}
}

// play lets a schedule happen. Whoever holds a lease issues LSNs all the time.
func play(s *sim.Sim, schedule []step) error {
	for _, st := range schedule {
		if err := s.RunFor(st.Wait); err != nil {
			return err
		}
		if err := deeds[st.Do](s, aim(s, st)); err != nil {
			return err
		}
		if err := issueAll(s); err != nil {
			return err
		}
	}
	return s.RunFor(time.Second)
}

// theLeader stands for whoever leads when the step is done: faults hurt most there.
const theLeader elector.NodeID = "the-leader"

// aim names the nodes of a step.
func aim(s *sim.Sim, st step) step {
	if st.A != theLeader {
		return st
	}
	st.A = s.Nodes()[0]
	for _, id := range s.Nodes() {
		if v, _ := s.View(id); v.LeaseValid {
			st.A = id
		}
	}
	if st.A == st.B {
		st.B = s.Nodes()[len(s.Nodes())-1]
	}
	if st.A == st.B {
		st.B = s.Nodes()[0]
	}
	return st
}

func issueAll(s *sim.Sim) error {
	for _, id := range s.Nodes() {
		if _, _, err := s.Issue(id); err != nil {
			return err
		}
	}
	return nil
}
