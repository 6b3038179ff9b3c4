package sim_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/lsn"
)

// A step of a schedule waits and then does something to nodes A and B, as far as
// it applies to them.
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

// String is what rapid shows of a step when a property fails.
func (st step) String() string {
	rest := fmt.Sprint(st.B)
	switch st.Do {
	case "crash", "bounce":
		rest = fmt.Sprintf("%+v", st.Crash)
	case "resign", "hold", "stall", "disk":
		rest = st.Rest.String()
	case "prefer":
		rest = fmt.Sprint(st.Priority)
	case "faults":
		rest += fmt.Sprintf(" %+v", st.Faults)
	}
	return fmt.Sprintf("+%s %s %s %s", st.Wait, st.Do, st.A, rest)
}

// A deed is what a step may do.
type deed struct {
	on func(sim.View) bool // how A must stand; nil if that does not matter
	do func(*sim.Sim, step) error
}

func up(v sim.View) bool     { return v.Running }
func down(v sim.View) bool   { return !v.Running }
func awake(v sim.View) bool  { return v.Running && !v.Paused }
func paused(v sim.View) bool { return v.Paused }

var deeds = map[string]deed{
	"wait":    {nil, func(*sim.Sim, step) error { return nil }},
	"cut":     {nil, func(s *sim.Sim, st step) error { return s.Cut(st.A, st.B) }},
	"heal":    {nil, func(s *sim.Sim, st step) error { return s.Heal(st.A, st.B) }},
	"healAll": {nil, func(s *sim.Sim, _ step) error { s.HealAll(); return s.Err() }},
	"isolate": {nil, func(s *sim.Sim, st step) error { return eachLink(s, st.A, s.Cut) }},
	"rejoin":  {nil, func(s *sim.Sim, st step) error { return eachLink(s, st.A, s.Heal) }},
	"pair": {nil, func(s *sim.Sim, st step) error {
		return s.Partition([]elector.NodeID{st.A, st.B})
	}},
	"reset":   {nil, func(s *sim.Sim, st step) error { return s.Reset(st.A, st.B) }},
	"faults":  {nil, func(s *sim.Sim, st step) error { return s.SetFaults(st.A, st.B, st.Faults) }},
	"disk":    {nil, func(s *sim.Sim, st step) error { s.SetFsync(st.Rest/2, st.Rest); return nil }},
	"hub":     {nil, func(s *sim.Sim, st step) error { return shape(s, hub(st.A)) }},
	"leaf":    {nil, func(s *sim.Sim, st step) error { return shape(s, leaf(st.A, st.B)) }},
	"bridge":  {nil, func(s *sim.Sim, st step) error { return shape(s, bridge(s, st.A)) }},
	"crash":   {up, func(s *sim.Sim, st step) error { return s.Crash(st.A, st.Crash) }},
	"restart": {down, func(s *sim.Sim, st step) error { return s.Restart(st.A) }},
	"bounce": {nil, func(s *sim.Sim, st step) (err error) {
		if up(s.View(st.A)) {
			err = s.Crash(st.A, st.Crash)
		}
		return errors.Join(err, s.Restart(st.A))
	}},
	"stop":   {awake, func(s *sim.Sim, st step) error { return s.Stop(st.A) }},
	"abrupt": {awake, func(s *sim.Sim, st step) error { return s.StopAbruptly(st.A) }},
	"pause":  {awake, func(s *sim.Sim, st step) error { return s.Pause(st.A) }},
	"resume": {paused, func(s *sim.Sim, st step) error { return s.Resume(st.A) }},
	"stall": {awake, func(s *sim.Sim, st step) error {
		s.At(s.Now()+st.Rest, func(s *sim.Sim) error {
			if paused(s.View(st.A)) {
				return s.Resume(st.A)
			}
			return nil
		})
		return s.Pause(st.A)
	}},
	"transfer": {awake, func(s *sim.Sim, st step) error {
		_ = s.Transfer(st.A, st.B) // most are refused, as they should be
		return s.Err()
	}},
	"resign": {up, func(s *sim.Sim, st step) error { return s.Resign(st.A, st.Rest) }},
	"hold": {up, func(s *sim.Sim, st step) error {
		return s.Tell(st.A, elector.Pause{For: st.Rest})
	}},
	"prefer": {up, func(s *sim.Sim, st step) error {
		return s.Tell(st.A, elector.Prefer{Priority: st.Priority})
	}},
	"publish": {nil, func(s *sim.Sim, st step) error {
		return ask(s, sim.Ask{Value: s.Now().String()})
	}},
	"add": {nil, func(s *sim.Sim, st step) error {
		return ask(s, sim.Ask{Via: st.A, Add: ids(st.B)})
	}},
	"remove": {nil, func(s *sim.Sim, st step) error { return ask(s, sim.Ask{Remove: ids(st.A)}) }},
	"replace": {nil, func(s *sim.Sim, st step) error {
		return ask(s, sim.Ask{Remove: ids(st.A), Add: ids(st.B)})
	}},
	"renew": {nil, func(s *sim.Sim, st step) error {
		return ask(s, sim.Ask{Via: st.B, Remove: ids(st.A), Add: ids(st.A)})
	}},
	"confirm": {up, func(s *sim.Sim, st step) error { return s.Tell(st.A, elector.Confirm{}) }},
	"cold":    {up, func(s *sim.Sim, st step) error { return s.Tell(st.A, elector.Prepared{}) }},
	"prepared": {up, func(s *sim.Sim, st step) error {
		return s.Tell(st.A, elector.Prepared{Ready: true})
	}},
	"wipe":  {down, wipe},
	"fit":   {up, func(s *sim.Sim, st step) error { return s.SetFit(st.A, true) }},
	"unfit": {up, func(s *sim.Sim, st step) error { return s.SetFit(st.A, false) }},
}

func ask(s *sim.Sim, what sim.Ask) error { return s.Ask(what, func(error) {}) }

// wipe puts a new machine in the place of one that is down. Until every voter has a record, one
// that lost its disk would count by its name (§15.13).
func wipe(s *sim.Sim, st step) error {
	for _, id := range s.Nodes() {
		if v := s.View(id); v.Votes && v.OnDisk.LSN.IsZero() {
			return nil
		}
	}
	return errors.Join(s.Wipe(st.A), s.Join(st.A))
}

// attempt does a step if it applies to its node.
func (st step) attempt(s *sim.Sim) error {
	deed := deeds[st.Do]
	if deed.on != nil && !deed.on(s.View(st.A)) {
		return nil
	}
	return deed.do(s, st)
}

var everything = []string{
	"wait", "cut", "heal", "healAll", "isolate", "rejoin", "pair", "reset", "faults",
	"crash", "restart", "restart", "stop", "pause", "resume", "resume", "transfer", "bounce",
	"resign", "fit", "unfit", "abrupt",
}

// spans are how long a process may be held up, and how long a write may take.
var spans = []time.Duration{0, 50 * ms, 400 * ms, 900 * ms, 3 * time.Second}

// pick draws one of some values.
func pick[T any](t *rapid.T, name string, of ...T) T { return rapid.SampledFrom(of).Draw(t, name) }

// drawStep draws any step among the given nodes and deeds.
func drawStep(ids []elector.NodeID, do []string) *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		st := step{
			Wait: drawWait(t),
			Do:   pick(t, "do", do...),
			A:    pick(t, "a", ids...),
		}
		other := func(b elector.NodeID) bool { return b != st.A && b != theLeader }
		st.B = rapid.SampledFrom(ids).Filter(other).Draw(t, "b")
		switch st.Do {
		case "crash", "bounce":
			st.Crash.Unsynced = rapid.SampledFrom([]sim.Unsynced{
				sim.UnsyncedByChance, sim.UnsyncedLost, sim.UnsyncedKept}).Draw(t, "unsynced")
			st.Crash.Silent = rapid.Bool().Draw(t, "silent")
		case "faults":
			st.Faults = drawFaults(t)
		case "resign", "hold":
			st.Rest = time.Duration(rapid.IntRange(0, 3).Draw(t, "rest")) * time.Second
		case "stall", "disk":
			st.Rest = pick(t, "span", spans...)
		case "prefer":
			st.Priority = rapid.IntRange(-1, 2).Draw(t, "priority")
		}
		return st
	})
}

// drawWait draws waits that are as short as a packet takes, or as long as a timer.
func drawWait(t *rapid.T) time.Duration {
	unit := pick(t, "unit", ms, 30*ms, 300*ms, 2*time.Second)
	return time.Duration(rapid.IntRange(0, 10).Draw(t, "wait")) * unit / 2
}

func drawFaults(t *rapid.T) sim.Faults {
	delay := rapid.SampledFrom([]time.Duration{0, ms, 20 * ms, 200 * ms, 900 * ms})
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
	timing, _ := elector.Profile(pick(t, "profile", elector.ProfileNames()...))
	if rapid.Bool().Draw(t, "own timers") {
		return timing
	}
	within := func(name string, lo, hi int) time.Duration {
		return time.Duration(rapid.IntRange(lo, hi).Draw(t, name)) * ms
	}
	timing.HeartbeatBroadcast = within("heartbeat", 50, 600)
	timing.HeartbeatMissCount = rapid.IntRange(2, 5).Draw(t, "misses")
	timing.Lease = timing.HeartbeatBroadcast + within("lease", 1, int(timing.HeartbeatBroadcast/ms))
	timing.ScoutingResult = within("scouting", 100, 1000)
	timing.ElectionResult = within("election", 100, 1000)
	timing.MaxRandomWait = within("random", 100, 2000)
	timing.ClockDriftPPM = int64(rapid.IntRange(0, 100_000).Draw(t, "drift"))
	timing.InitialWait = max(timing.MaxRandomWait, timing.Promise()) + within("initial", 0, 1000)
	timing.MinRandomWait = 0
	if timing.Promise() <= timing.Inactivity() {
		timing.MinRandomWait = pick(t, "least random", 0, 1, 50*ms)
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
		Seed:        rapid.Uint64().Draw(t, "seed"),
		Network:     drawFaults(t),
		FsyncMax:    pick(t, "fsync", 0, 20*ms, 800*ms, 3*time.Second),
		ProofMax:    pick(t, "proof", 0, 300*ms, 5*time.Second),
		LinkTimeout: pick(t, "link timeout", 3*time.Second, 300*ms),
	}
	ids := names(n + rapid.IntRange(0, observers).Draw(t, "observers"))
	for i, id := range ids {
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{
			ClockRatePPM: pick(t, "ppm", 0, timing.ClockDriftPPM/2, timing.ClockDriftPPM),
			Work:         drawWork(t),
			Elector: elector.Config{
				Self: id, Voters: voters, Timing: timing, QoS: quality,
				Priority:     rapid.IntRange(-1, 1).Draw(t, "priority"),
				NotCandidate: i != electable && rapid.IntRange(0, 3).Draw(t, "not candidate") == 3,
			},
		})
	}
	return cfg
}

// drawNarrow draws a cluster whose bounds on terms are so small that schedules reach each of
// them, and whose nodes start in terms that are far apart, so that some must climb. A voter may
// be too far above the others to take part, so such a cluster need not have a leader.
func drawNarrow(t *rapid.T) sim.Config {
	cfg := drawCluster(t)
	narrow(t, cfg)
	return cfg
}

func narrow(t *rapid.T, cfg sim.Config) {
	leap := lsn.Term(rapid.IntRange(1, 4).Draw(t, "leap"))
	bounds := &elector.Bounds{
		Reserve: lsn.Term(rapid.IntRange(0, 4).Draw(t, "reserve")), Ahead: 2, Leap: leap, Climb: 2 * leap,
		Near: 1, ClimbFor: 500 * ms,
	}
	for i := range cfg.Nodes {
		cfg.Nodes[i].Elector.Bounds = bounds
		cfg.Nodes[i].Term = pick[lsn.Term](t, "term", 0, 0, 5, 20, 60)
	}
}

// drawQuality draws what is asked of the detection of a crash: mostly nothing.
func drawQuality(t *rapid.T) (q detector.QoS) {
	if detect := pick(t, "detect", 0, 0, 0, 300*ms, 2*time.Second); detect != 0 {
		q = detector.QoS{Detect: detect, Mistakes: detector.Recurrence(time.Hour), Accuracy: 0.999}
	}
	return q
}

// drawWork draws work that stops at once, soon, late, or not by itself.
func drawWork(t *rapid.T) sim.Work {
	return sim.Work{
		Does:  rapid.Bool().Draw(t, "works"),
		Stops: pick(t, "stops", 0, 5*ms, 100*ms, 900*ms, time.Hour),
	}
}

// play lets a schedule happen. Whoever holds a lease issues LSNs all the time.
func play(s *sim.Sim, schedule []step) error {
	for _, st := range schedule {
		if err := s.RunFor(st.Wait); err != nil {
			return err
		}
		if err := errors.Join(aim(s, st).attempt(s), s.IssueAll()); err != nil {
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
		if s.View(id).LeaseValid {
			st.A = id
		}
	}
	if ids := s.Nodes(); st.A == st.B {
		st.B = ids[(slices.Index(ids, st.A)+1)%len(ids)]
	}
	return st
}

// shape leaves the links of a topology, and cuts all others.
func shape(s *sim.Sim, linked func(a, b elector.NodeID) bool) error {
	for _, a := range s.Nodes() {
		for _, b := range s.Nodes() {
			if a == b {
				continue
			}
			do := s.Cut
			if linked(a, b) || linked(b, a) {
				do = s.Heal
			}
			if err := do(a, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// hub is a star: all see the one in the middle alone.
func hub(middle elector.NodeID) func(a, b elector.NodeID) bool {
	return func(a, _ elector.NodeID) bool { return a == middle }
}

// leaf leaves one node a single link, and all others theirs.
func leaf(far, near elector.NodeID) func(a, b elector.NodeID) bool {
	return func(a, b elector.NodeID) bool { return a != far && b != far || a == far && b == near }
}

// bridge is two halves that do not see each other, and a node that sees both.
func bridge(s *sim.Sim, middle elector.NodeID) func(a, b elector.NodeID) bool {
	half := func(id elector.NodeID) bool { return slices.Index(s.Nodes(), id) < len(s.Nodes())/2 }
	return func(a, b elector.NodeID) bool { return a == middle || b != middle && half(a) == half(b) }
}
