package elector_test

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// quanta are timers in units of a quantum, for a given drift.
func quanta(heartbeat, lease int, driftPPM int64) elector.Timing {
	d := func(n int) time.Duration { return time.Duration(n) * time.Duration(unit) }
	t := elector.Timing{
		MaxRandomWait: 1, ScoutingResult: d(2), ElectionResult: d(lease + 1),
		HeartbeatBroadcast: d(heartbeat), HeartbeatMissCount: (lease + heartbeat) / heartbeat,
		Lease: d(lease), ClockDriftPPM: driftPPM,
	}
	t.InitialWait = t.Promise()
	return t
}

// least are the smallest bounds that the rules allow: every election waits for the disk.
var least = elector.Bounds{
	Reserve: 1, Ahead: 2, Leap: 3, Climb: 6, Near: 1, ClimbFor: 4 * time.Millisecond,
}

// scenes are what is searched. Each is about a few faults, so that its search comes to an end.
func scenes() []scene {
	base := scene{nodes: 2, timing: quanta(1, 2, 0), bounds: least, terms: 1, life: 1}
	with := func(name string, change func(*scene)) scene {
		s := base
		s.name = name
		change(&s)
		return s
	}
	orders := []elector.Input{
		elector.Transfer{}, elector.Resign{}, elector.Stop{}, elector.Stop{Abrupt: true},
		elector.Pause{For: 4 * time.Millisecond}, elector.Eligible{}, elector.Eligible{Able: true},
	}
	return []scene{
		with("two voters", func(s *scene) {}),
		with("a crash", func(s *scene) { s.crashes = 1 }),
		with("a crash of a leader's cluster", func(s *scene) { s.crashes, s.warm, s.terms = 1, true, 2 }),
		with("a cut", func(s *scene) { s.cuts, s.warm, s.terms = 1, true, 2 }),
		with("a twin", func(s *scene) { s.twins, s.warm, s.terms = 1, true, 2 }),
		with("a stall", func(s *scene) { s.stalls, s.warm, s.terms = 1, true, 2 }),
		with("orders and work", func(s *scene) {
			s.orders, s.ordered, s.guard, s.warm = orders, 1, true, true
		}),
		with("a pause, and a crash", func(s *scene) {
			s.orders, s.ordered, s.crashes = orders[4:5], 2, 1
		}),
		with("the fast clock votes", func(s *scene) {
			s.timing, s.rates = quanta(1, 2, 250_000), []elector.Time{unit * 4 / 5, unit}
			s.timing.HeartbeatMissCount = 2 // silence comes before the promise ends
			s.stands, s.terms = []int{0}, 2
		}),
		with("the fast clock leads", func(s *scene) {
			s.timing, s.rates = quanta(1, 2, 250_000), []elector.Time{unit, unit * 4 / 5}
			s.stands, s.terms = []int{0}, 2
		}),
		with("a voter far above", func(s *scene) { s.disks = []lsn.Term{1, 6} }),
		with("a voter far above does not stand", func(s *scene) {
			s.disks, s.stands = []lsn.Term{1, 6}, []int{0}
		}),
		with("in turn", func(s *scene) {
			s.timing.MinRandomWait, s.timing.MaxRandomWait = time.Millisecond, time.Millisecond
			s.timing.HeartbeatMissCount = 3
		}),
		with("three voters", func(s *scene) { s.nodes, s.stands = 3, []int{0} }),
		with("three voters, one above", func(s *scene) {
			s.nodes, s.stands, s.disks, s.terms = 3, []int{0}, []lsn.Term{1, 1, 4}, 2
		}),
		with("three voters, two have crashed", func(s *scene) {
			s.nodes, s.stands = 3, []int{1, 2}
			s.past = []past{0: {3, 2, 0}, 2: {3, 2, 0}}
		}),
		with("three voters, a crash", func(s *scene) {
			s.nodes, s.stands, s.crashes, s.warm, s.life = 3, []int{0, 1}, 1, true, 0
		}),
		with("three voters, a crash, two do not hear each other", func(s *scene) {
			s.nodes, s.stands, s.crashes, s.apart, s.terms = 3, []int{0, 1}, 1, true, 2
		}),
		with("three voters, a cut", func(s *scene) {
			s.nodes, s.stands, s.cuts, s.warm, s.life = 3, []int{0, 1}, 1, true, 0
		}),
		with("three voters, a stall", func(s *scene) {
			s.nodes, s.stands, s.stalls, s.warm, s.life = 3, []int{0, 1}, 1, true, 0
		}),
		with("three voters, one stands, a crash", func(s *scene) {
			s.nodes, s.stands, s.crashes, s.warm = 3, []int{0}, 1, true
		}),
		with("three voters, one stands, two cuts", func(s *scene) {
			s.nodes, s.stands, s.cuts, s.warm = 3, []int{0}, 2, true
		}),
		with("four voters, one stands", func(s *scene) { s.nodes, s.stands = 4, []int{0} }),
		with("four voters, one stands, a crash", func(s *scene) {
			s.nodes, s.stands, s.crashes, s.life = 4, []int{0}, 1, 0
		}),
		with("five voters, one stands", func(s *scene) {
			s.nodes, s.stands, s.life = 5, []int{0}, 0
		}),
		with("five voters, two have crashed", func(s *scene) {
			s.nodes, s.stands, s.warm, s.life = 5, []int{0, 1}, true, 0
			s.past = []past{1: {3, 3, 1}, 2: {3, 3, 1}} // while the others follow a in term 2
		}),
		with("five voters, a crash and a cut", func(s *scene) {
			s.nodes, s.stands, s.crashes, s.cuts, s.warm, s.life = 5, []int{0, 1}, 1, 1, true, 0
		}),
		with("pairs", func(s *scene) { pairUp(s, 2); s.terms = 2 }),
		with("pairs, a crash", func(s *scene) { pairUp(s, 2); s.crashes, s.terms = 1, 2 }),
		with("pairs, a stall", func(s *scene) { pairUp(s, 2); s.stalls = 1 }),
		with("pairs, a cut", func(s *scene) { pairUp(s, 2); s.cuts = 1 }),
		with("pairs, a crash and a cut", func(s *scene) { pairUp(s, 2); s.crashes, s.cuts = 1, 1 }),
		with("pairs, a twin", func(s *scene) { pairUp(s, 2); s.twins = 1 }),
		with("pairs, a change is lost", func(s *scene) { pairUp(s, 2); s.misses = 1 }),
		with("pairs, another election", func(s *scene) { pairUp(s, 2); s.others = 1 }),
		with("pairs, another election twice", func(s *scene) { pairUp(s, 2); s.others = 2 }),
		with("pairs, orders", func(s *scene) { pairUp(s, 2); s.orders, s.ordered = orders[:4], 1 }),
		with("pairs, messages take a quantum", func(s *scene) {
			pairUp(s, 2)
			s.timing, s.life = quanta(1, 3, 0), 1
		}),
		with("pairs of three voters, one stands", func(s *scene) {
			pairUp(s, 3)
			s.stands = s.stands[:1]
		}),
		with("pairs of three voters", func(s *scene) { pairUp(s, 3) }),
		with("pairs of three voters, a crash", func(s *scene) { pairUp(s, 3); s.crashes = 1 }),
		with("pairs of three voters, a stall", func(s *scene) { pairUp(s, 3); s.stalls = 1 }),
		with("pairs of three voters, a cut", func(s *scene) { pairUp(s, 3); s.cuts = 1 }),
		with("a first record", func(s *scene) { s.asks, s.life = ask("publish"), 0 }),
		with("a first record, a crash", func(s *scene) {
			s.asks, s.life, s.warm, s.crashes = ask("publish"), 0, true, 1
		}),
		with("a first record of three", func(s *scene) {
			s.nodes, s.asks, s.life, s.stands, s.warm, s.cuts = 3, ask("publish"), 0, []int{0, 1}, true, 1
		}),
		with("a record", func(s *scene) {
			s.asks, s.warm, s.recorded, s.terms, s.life = ask("publish"), true, true, 2, 0
		}),
		with("a record, a crash", func(s *scene) {
			s.asks, s.warm, s.recorded, s.crashes, s.life = ask("publish"), true, true, 1, 0
		}),
		with("a record, a crash of those with reserved terms", func(s *scene) {
			s.asks, s.warm, s.recorded, s.crashes, s.life = ask("publish"), true, true, 1, 0
			s.bounds.Reserve = 4
		}),
		with("a record, a cut", func(s *scene) {
			s.asks, s.warm, s.recorded, s.cuts, s.life = ask("publish"), true, true, 1, 0
		}),
		with("a record, a stall", func(s *scene) {
			s.asks, s.warm, s.recorded, s.stalls, s.life = ask("publish"), true, true, 1, 0
		}),
		with("a record, handed over", func(s *scene) {
			s.asks, s.warm, s.recorded, s.life = ask("publish"), true, true, 0
			s.orders, s.ordered = []elector.Input{elector.Transfer{}}, 1
		}),
		with("one voter more", func(s *scene) {
			s.nodes, s.configured, s.stands, s.warm, s.life = 2, 1, []int{0}, true, 0
			s.asks, s.crashes = ask("+b", "-b"), 1
		}),
		with("from one voter to two to one", func(s *scene) {
			s.nodes, s.configured, s.warm, s.recorded, s.life = 2, 1, true, true, 0
			s.asks, s.crashes = ask("+b", "-a", "-b"), 2
		}),
		with("from two voters to three", func(s *scene) {
			s.nodes, s.configured, s.warm, s.recorded, s.life = 3, 2, true, true, 0
			s.asks, s.crashes, s.stands = ask("+c"), 1, []int{0}
		}),
		with("from two voters to one, clocks differ", func(s *scene) {
			s.nodes, s.warm, s.recorded, s.life = 2, true, true, 0
			s.timing, s.rates = quanta(1, 2, 250_000), []elector.Time{unit, unit * 4 / 5}
			s.asks, s.crashes = ask("-b", "+b"), 1
		}),
		with("three voters, a record, a crash", func(s *scene) {
			s.nodes, s.stands, s.warm, s.recorded, s.life = 3, []int{0, 1}, true, true, 0
			s.asks, s.crashes = ask("publish"), 1
		}),
		with("three voters, a record, a cut", func(s *scene) {
			s.nodes, s.stands, s.warm, s.recorded, s.life = 3, []int{0, 1}, true, true, 0
			s.asks, s.cuts = ask("publish"), 1
		}),
		with("three voters, a record, a disk is lost", func(s *scene) {
			s.nodes, s.stands, s.warm, s.recorded, s.life = 3, []int{0, 1}, true, true, 0
			s.asks, s.losses = ask("publish"), 1
		}),
		with("five voters, a record, two have crashed", func(s *scene) {
			s.nodes, s.stands, s.warm, s.recorded, s.life = 5, []int{0, 1}, true, true, 0
			s.asks = ask("publish")
			s.past = []past{1: {3, 3, 1}, 2: {3, 3, 1}} // while the others follow a in term 2
		}),
		with("from three voters to two", func(s *scene) {
			s.nodes, s.stands, s.warm, s.recorded, s.life = 3, []int{0, 1}, true, true, 0
			s.asks, s.cuts = ask("-c"), 1
		}),
		with("from three voters to four to three", func(s *scene) {
			changed(s, []int{0})
		}),
		with("from three voters to four to three, in order", func(s *scene) {
			changed(s, []int{0})
			s.inOrder, s.terms = true, 0
		}),
		with("from three voters to four to three, in order, two messages are lost", func(s *scene) {
			changed(s, []int{0})
			s.inOrder, s.reliable, s.misses = true, true, 2
		}),
		with("from three voters to four to three, reliable links, a crash", func(s *scene) {
			changed(s, []int{0})
			s.inOrder, s.reliable, s.crashes = true, true, 1
		}),
		with("from three voters to four to three, two stand, reliable links, a crash", func(s *scene) {
			changed(s, []int{0, 1})
			s.inOrder, s.reliable, s.crashes = true, true, 1
		}),
		with("from three voters to four to three, a crash", func(s *scene) {
			changed(s, []int{0, 1})
			s.crashes = 1
		}),
		with("from three voters to four to three, a cut", func(s *scene) {
			changed(s, []int{0, 1})
			s.cuts = 1
		}),
	}
}

// paired is a scene of two voters with pairs, of whom one leads.
var paired = scene{
	nodes: 2, timing: quanta(1, 2, 0), bounds: least, terms: 1, pairs: true, warm: true,
}

// pairUp makes a scene one of voters with pairs. Of three the last one does not stand: it is in
// order.
func pairUp(s *scene, voters int) {
	s.nodes, s.pairs, s.warm, s.life = voters, true, true, 0
	if voters == 3 {
		s.stands, s.inOrder = []int{0, 1}, true
	}
}

// changed makes a scene one of three voters that become four and three again.
func changed(s *scene, stands []int) {
	s.nodes, s.configured, s.stands, s.warm, s.recorded = 4, 3, stands, true, true
	s.asks, s.life = ask("+d", "-c"), 0
}

// ask is what a leader is asked for: to publish, or to change the voters.
func ask(what ...string) (asks []elector.Input) {
	for n, w := range what {
		node := elector.NodeID(w[1:])
		switch w[0] {
		case '+':
			id := identity(int(node[0]-'a'), 0)
			asks = append(asks, elector.ChangeVoters{Add: elector.Voter{Node: node, Identity: id}})
		case '-':
			asks = append(asks, elector.ChangeVoters{Remove: node})
		default:
			asks = append(asks, elector.Publish{Value: value(byte(n + 1))})
		}
	}
	return asks
}

// TestSearch visits SEARCH_STATES states of each scene at most, or all of them.
func TestSearch(t *testing.T) {
	limit, recorded := 40_000, 5_000
	if v, ok := os.LookupEnv("SEARCH_STATES"); ok {
		n, err := strconv.Atoi(v)
		require.NoError(t, err, "SEARCH_STATES is a number of states, 0 for all")
		limit, recorded = n, n
	}
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			s.limit = limit
			if len(s.asks) > 0 || s.pairs {
				s.limit = recorded
			}
			(&search{scene: s, t: t}).run()
		})
	}
}

// TestWhatIsOver makes sure that the messages which a search removes as over change nothing: if
// they stay, the cluster has the same number of states, apart from the messages in flight. So it
// has if nothing is overtaken, where that makes no difference.
func TestWhatIsOver(t *testing.T) {
	for _, s := range scenes() {
		if slices.Contains([]string{"two voters", "the fast clock leads", "a voter far above"}, s.name) {
			x := search{scene: s, t: t, bare: map[uint64]bool{}}
			y := search{scene: s, t: t, bare: map[uint64]bool{}, keeps: true}
			require.True(t, x.run() && y.run())
			require.Len(t, x.bare, len(y.bare))
		}
		if s.name == "two voters" {
			s.life, s.stands = 0, []int{0}
			x := search{scene: s, t: t, bare: map[uint64]bool{}}
			s.inOrder = true
			y := search{scene: s, t: t, bare: map[uint64]bool{}}
			require.True(t, x.run() && y.run())
			require.Len(t, x.bare, len(y.bare))
		}
	}
}
