package clustertest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
)

// schedule determines a run.
type schedule struct {
	seed   uint64
	voters []cluster.NodeID
	timing elector.Timing
	steps  []step
	// elections are those of every node: the default one, for its work, and perhaps another.
	elections []string
	keeps     bool // a record in the default election

	swarm []int // the weights of the ops; in each schedule another half of them is 0
}

// step is one fault. It begins a while after the previous one, and ends after its span.
type step struct {
	after time.Duration
	op    string
	node  string // a node, "leader", or "rest": all except the leader
	peer  string // likewise, for what happens between two nodes
	span  time.Duration
}

func (s step) String() string {
	text := fmt.Sprintf("+%-9s %s %s", s.after, s.op, s.node)
	if s.peer != "" {
		text += " " + s.peer
	}
	return text + " " + s.span.String()
}

func (s schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "voters %v, lease %s, heartbeat %s x %d\n",
		s.voters, s.timing.Lease, s.timing.HeartbeatBroadcast, s.timing.HeartbeatMissCount)
	for _, step := range s.steps {
		fmt.Fprintf(&b, "  %s\n", step)
	}
	return b.String()
}

// op is a kind of fault. Its weight is how likely it is drawn.
type op struct {
	weight int
	pair   bool          // needs a peer
	longs  time.Duration // its longest span
	do     func(w *world, s step)
}

// ops is a slice, not a map, so that a seed always draws the same.
var ops = []struct {
	name string
	op
}{
	{"kill", op{6, false, 8 * time.Second, each((*supervised).kill)}},
	{"close", op{5, false, 5 * time.Second, each(closing(30 * time.Second))}},
	{"close-soon", op{4, false, 3 * time.Second, each(closing(300 * time.Millisecond))}},
	{"close-now", op{8, false, time.Second, each(closing(0))}},
	{"pause", op{8, false, 6 * time.Second, each((*supervised).pause)}},
	{"disk-fail", op{3, false, 4 * time.Second, each(onDisk(failing))}},
	{"disk-lies", op{2, false, 4 * time.Second, each(onDisk(lying))}},
	{"disk-full", op{3, false, 4 * time.Second, each(onDisk(full))}},
	{"disk-hang", op{5, false, 20 * time.Second, each(onDisk(hanging))}},
	{"disk-torn", op{3, false, 4 * time.Second, each(onDisk(torn))}},
	{"disk-slow", op{4, false, 15 * time.Second, each(onDisk(slow))}},
	{"drop", op{8, true, 8 * time.Second, between(drop)}},
	{"reject", op{8, true, 8 * time.Second, between(reject)}},
	{"reset", op{5, true, 0, between((*world).reset)}},
	{"copy", op{3, false, 15 * time.Second, each((*supervised).copied)}},
	{"transfer", op{5, false, 0, each((*supervised).transfer)}},
	{"step-down", op{4, false, 4 * time.Second, each((*supervised).stepDown)}},
	{"unfit", op{4, false, 5 * time.Second, each((*supervised).unfit)}},
	{"maintenance", op{4, false, longestMaintenance, each((*supervised).maintain)}},
	{"turn", op{8, false, 0, each((*supervised).turn)}},
	{"power", op{2, false, 2 * time.Second, (*world).blackout}},
	{"wipe", op{6, false, 3 * time.Second, each((*supervised).wipe)}},
}

// longestMaintenance is the longest pause of elections.
const longestMaintenance = 8 * time.Second

// draw returns the schedule of a seed.
func draw(seed uint64, steps int) schedule {
	random := rand.New(rand.NewPCG(seed, 0))
	s := schedule{seed: seed, keeps: seed%3 != 0, voters: []cluster.NodeID{"a", "b", "c", "d", "e"},
		timing: elector.Article()}
	if random.IntN(2) == 0 {
		s.voters = s.voters[:3]
	}
	if random.IntN(2) == 0 {
		s.timing.HeartbeatMissCount, s.timing.Lease = 6, 3*time.Second
	}
	for _, o := range ops {
		s.swarm = append(s.swarm, random.IntN(2)*o.weight)
	}
	s.swarm[random.IntN(len(ops))]++ // at least one
	for len(s.steps) < steps {
		s.steps = append(s.steps, s.drawSteps(random)...)
	}
	s.elections = []string{cluster.DefaultGroup, "beside"}[:1+random.IntN(2)]
	return s
}

// drawSteps draws one step, or two that belong together.
func (s schedule) drawSteps(random *rand.Rand) []step {
	after := pause(random)
	if random.IntN(12) == 0 && s.draws("reject") && s.draws("pause") {
		// A firewall answers for a leader while all others are held up.
		held := s.timing.Lease/4 + below(random, s.timing.Lease/2)
		return []step{
			{after, "pause", "rest", "", held},
			{0, "reject", "rest", "leader", held + 2*time.Second},
		}
	}
	name, op := s.drawOp(random)
	one := step{after: after, op: name, node: s.target(random), span: below(random, op.longs)}
	if random.IntN(3) == 0 {
		one.span /= 20
	}
	if op.pair {
		one.peer = s.target(random)
		back := one
		back.after, back.node, back.peer = 0, one.peer, one.node
		if random.IntN(2) == 0 && one.node != one.peer {
			return []step{one, back}
		}
	}
	return []step{one}
}

// pause draws the time between two steps. It is sometimes very short.
func pause(random *rand.Rand) time.Duration {
	if random.IntN(4) == 0 {
		return below(random, 100*time.Millisecond)
	}
	return below(random, 4*time.Second)
}

// below draws a time below limit, or returns 0 if limit is 0.
func below(random *rand.Rand, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(random.Int64N(int64(limit))).Truncate(time.Microsecond)
}

func (s schedule) drawOp(random *rand.Rand) (string, op) {
	sum := 0
	for _, weight := range s.swarm {
		sum += weight
	}
	at, i := random.IntN(sum), 0
	for ; at >= s.swarm[i]; i++ {
		at -= s.swarm[i]
	}
	return ops[i].name, ops[i].op
}

// draws reports whether the schedule may have an op.
func (s schedule) draws(name string) bool {
	for i, o := range ops {
		if o.name == name {
			return s.swarm[i] > 0
		}
	}
	return false
}

func (s schedule) target(random *rand.Rand) string {
	switch at := random.IntN(10); {
	case at < 4:
		return "leader"
	case at == 4:
		return "rest"
	default:
		return string(s.voters[random.IntN(len(s.voters))])
	}
}

// do does one step.
func (w *world) do(s step) {
	w.judge.note("%s", s)
	for _, o := range ops {
		if o.name == s.op {
			o.do(w, s)
		}
	}
}

// each calls do for every node that a step names.
func each(do func(m *supervised, span time.Duration)) func(*world, step) {
	return func(w *world, s step) {
		for _, m := range w.targets(s.node) {
			do(m, s.span)
		}
	}
}

// between calls do for every pair of nodes that a step names, in one direction.
func between(do func(w *world, from, to *supervised, span time.Duration)) func(*world, step) {
	return func(w *world, s step) {
		for _, from := range w.targets(s.node) {
			for _, to := range w.targets(s.peer) {
				if from != to {
					do(w, from, to, s.span)
				}
			}
		}
	}
}

// targets returns the members that a step names.
func (w *world) targets(name string) (all []*supervised) {
	leader := w.leader()
	for _, m := range w.members {
		switch {
		case string(m.id) == name, name == "leader" && m == leader, name == "rest" && m != leader:
			all = append(all, m)
		}
	}
	return all
}
