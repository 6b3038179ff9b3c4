package omega_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/omega"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// TestLateMessages lets b hear messages of a in an order in which no script can. Whom b follows
// afterwards shows what it made of them.
func TestLateMessages(t *testing.T) {
	const joined = algorithm.Time(10 * time.Second) // b; a joined earlier
	alive := func(epoch, number, acc, start algorithm.Time) omega.Alive {
		return omega.Alive{
			Epoch: epoch, Number: uint64(number), Acc: acc, Start: start,
			Scheduled: time.Duration(joined), Period: time.Second, Local: "a", LocalAcc: acc,
		}
	}
	const late = joined + 5
	earlier := alive(1, 1, 1, 1) // when a heard c, which joined before it and has crashed
	earlier.Local, earlier.LocalAcc = "c", 0
	reborn := earlier
	reborn.Epoch, reborn.Start = 2, 2
	for _, test := range []struct {
		name  string
		a     algorithm.Algorithm
		hears []omega.Alive
		want  algorithm.NodeID
	}{
		{"heard", omega.LC, []omega.Alive{alive(1, 1, 1, 1)}, "a"},
		{"accused", omega.LC, []omega.Alive{alive(1, 1, late, 1)}, "b"},
		{"before that", omega.LC, []omega.Alive{alive(1, 2, late, 1), alive(1, 1, 1, 1)}, "b"},
		{"before that", omega.L, []omega.Alive{alive(1, 2, late, 1), alive(1, 1, 1, 1)}, "b"},
		{"the next life", omega.LC, []omega.Alive{alive(1, 1, 1, 1), alive(late, 1, late, late)}, "b"},
		{"before that", omega.LC, []omega.Alive{alive(late, 1, late, late), alive(1, 1, 1, 1)}, "b"},
		{"of c", omega.LC, []omega.Alive{earlier}, "c"},
		{"before that", omega.LC, []omega.Alive{alive(1, 2, 1, 1), earlier}, "a"},
		{"of c, in the next life", omega.LC, []omega.Alive{alive(1, 9, 1, 1), reborn}, "c"},
		{"a former life", omega.ID, []omega.Alive{alive(2, 0, 2, 2), alive(1, 1, 1, 3)}, "b"},
		{"the next life", omega.ID, []omega.Alive{alive(1, 0, 1, 9), alive(2, 1, 2, 2)}, "a"},
		{"ceased", omega.L, []omega.Alive{alive(1, 1, 1, 1), alive(1, 0, 1, 2)}, "b"},
		{"before that", omega.L, []omega.Alive{alive(1, 0, 1, 2), alive(1, 1, 1, 1)}, "b"},
		{"began again", omega.L, []omega.Alive{alive(1, 0, 1, 2), alive(1, 2, 1, 3)}, "a"},
	} {
		cfg := elector.Config{Self: "b", Voters: []elector.NodeID{"a", "b", "c"}}
		cfg.Timing = elector.Article()
		m := test.a.New(algorithm.Config{Elector: cfg, Order: cfg.Voters})
		m.Step(joined, 0, algorithm.Start{Clock: joined})
		for _, message := range test.hears {
			m.Step(joined, 0, algorithm.Received{From: "a", Message: message})
		}
		require.Equal(t, test.want, m.View().Leader, "%s: %s", test.a.Name, test.name)
	}
}

// TestAccusedAtOnce accuses a process in the moment in which it joined, together with another: it
// loses its rank all the same.
func TestAccusedAtOnce(t *testing.T) {
	cfg := elector.Config{Self: "a", Voters: []elector.NodeID{"a", "b"}, Timing: elector.Article()}
	m := omega.LC.New(algorithm.Config{Elector: cfg, Order: cfg.Voters})
	m.Step(5, 0, algorithm.Start{Clock: 5})
	m.Step(5, 0, algorithm.Received{From: "b", Message: omega.Alive{Epoch: 5, Number: 1, Acc: 5,
		Start: 5, Scheduled: 5, Period: time.Second, Local: "b", LocalAcc: 5}})
	require.Equal(t, elector.NodeID("a"), m.View().Leader)
	m.Step(5, 0, algorithm.Received{From: "b", Message: omega.Accuse{}})
	require.Equal(t, elector.NodeID("b"), m.View().Leader)
}

// TestSlowerLink suspects a, whose ALIVEs were on their way for no time and take 2 s from now on,
// once. What was sent before does not restore trust; what comes next shows what is usual now.
func TestSlowerLink(t *testing.T) {
	cfg := elector.Config{Self: "b", Voters: []elector.NodeID{"a", "b"}, Timing: elector.Article()}
	m := omega.ID.New(algorithm.Config{Elector: cfg, Order: cfg.Voters})
	m.Step(0, 0, algorithm.Start{})
	eta := cfg.Timing.HeartbeatBroadcast
	hear := func(number int, late time.Duration) algorithm.NodeID {
		due := time.Duration(number) * eta
		m.Step(algorithm.Time(due+late), 0, algorithm.Received{From: "a", Message: omega.Alive{
			Number: uint64(number), Scheduled: due, Period: eta,
		}})
		return m.View().Leader
	}
	for number := 1; number <= 20; number++ {
		require.Equal(t, elector.NodeID("a"), hear(number, 0))
	}
	suspected := algorithm.Time(20*eta + cfg.Timing.Inactivity())
	require.Equal(t, suspected, m.Step(suspected-1, 0, elector.Tick{}).Wake)
	require.Equal(t, elector.NodeID("a"), m.View().Leader)
	m.Step(suspected, 0, elector.Tick{})
	require.Equal(t, elector.NodeID("b"), m.View().Leader)
	require.Equal(t, elector.NodeID("b"), hear(19, 4*eta), "sent before")
	require.Equal(t, elector.NodeID("a"), hear(21, 4*eta))
}

// sentTo is the newest ALIVE to a of a step at now.
func sentTo(m algorithm.Machine, now time.Duration, in algorithm.Input) (a omega.Alive) {
	for _, e := range m.Step(algorithm.Time(now), 0, in).Messages {
		if message, ok := e.Message.(omega.Alive); ok && e.To == "a" {
			a = message
		}
	}
	return a
}

// TestSchedules looks at when ALIVEs are due. A phase of sending has a schedule of its own: what
// lies between two is no delay. What a receiver wants counts from the newest ALIVE on.
func TestSchedules(t *testing.T) {
	const ms = time.Millisecond
	cfg := elector.Config{Self: "b", Voters: []elector.NodeID{"a", "b"}, Timing: elector.Article()}
	m := omega.L.New(algorithm.Config{Elector: cfg, Order: cfg.Voters})
	hear := func(number uint64, start algorithm.Time, wanted time.Duration) algorithm.Received {
		return algorithm.Received{From: "a", Message: omega.Alive{
			Number: number, Start: start, Period: time.Second, Wanted: wanted,
		}}
	}
	require.Zero(t, sentTo(m, 0, algorithm.Start{}).Scheduled)
	require.Zero(t, sentTo(m, 100*ms, hear(1, 1, 0)).Number, "a leads")
	require.Equal(t, 333*ms, sentTo(m, 333*ms, hear(0, 2, 0)).Scheduled, "a has ceased")
	require.Equal(t, 833*ms, sentTo(m, 840*ms, elector.Tick{}).Scheduled, "a late timer is delay")
	require.Equal(t, 2333*ms, sentTo(m, 2400*ms, elector.Tick{}).Scheduled, "two were missed")

	cfg.QoS = detector.QoS{
		Detect: time.Second, Mistakes: detector.Recurrence(time.Hour), Accuracy: 0.999,
	}
	cfg.Timing = elector.ForQoS(cfg.QoS)
	m = omega.LC.New(algorithm.Config{Elector: cfg, Order: cfg.Voters})
	sentTo(m, 0, algorithm.Start{})
	require.Equal(t, 300*ms, sentTo(m, 83340*time.Microsecond, hear(0, 1, 300*ms)).Period)
	require.Zero(t, sentTo(m, 200*ms, hear(0, 1, 150*ms)).Period, "not due yet")
	require.Equal(t, 150*ms, sentTo(m, 234*ms, elector.Tick{}).Period)
	require.Equal(t, 240*ms, sentTo(m, 240*ms, elector.LinkUp{Peer: "a"}).Scheduled)
}

// TestEachLinkHasItsPeriod gives one link a loss. Each receiver gets the period that its link
// needs: on the lossy one the configurator's for such a link, on the others the longest.
func TestEachLinkHasItsPeriod(t *testing.T) {
	t.Parallel()
	const span = 30 * time.Minute
	each := elector.Config{
		Voters: []elector.NodeID{"a", "b", "c"},
		QoS: detector.QoS{
			Detect: time.Second, Mistakes: detector.Recurrence(100 * 24 * time.Hour), Accuracy: 0.99999988,
		},
	}
	each.Timing = elector.ForQoS(each.QoS)
	for _, a := range []algorithm.Algorithm{omega.LC, omega.L} {
		sent, changes := map[[2]elector.NodeID]int{}, 0
		cfg := sim.Config{
			Seed: 1, Algorithm: a, Network: sim.Faults{Delay: time.Millisecond}, LinkTimeout: time.Hour,
			Observer: func(e *sim.Event) {
				switch e.Kind {
				case sim.EventSent:
					sent[[2]elector.NodeID{e.Node, e.Peer}]++
				case sim.EventTransition:
					changes++
				}
			},
		}
		for _, each.Self = range each.Voters {
			cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{Elector: each})
		}
		s, err := sim.New(cfg)
		require.NoError(t, err)
		lossy := sim.Faults{Tail: 10 * time.Millisecond, LossPPM: 100_000}
		require.NoError(t, s.SetFaults("a", "c", lossy))
		require.NoError(t, s.RunUntil(time.Minute))
		leader, _ := s.Leader()
		require.Equal(t, elector.NodeID("a"), leader)
		clear(sent)
		changes = 0
		require.NoError(t, s.RunUntil(time.Minute+span))
		period := func(to elector.NodeID) float64 {
			return span.Seconds() / float64(sent[[2]elector.NodeID{"a", to}])
		}
		require.InEpsilon(t, each.Timing.HeartbeatBroadcast.Seconds(), period("b"), 0.01, a.Name)
		require.InEpsilon(t, 0.118, period("c"), 0.1, a.Name)
		require.Zero(t, changes, a.Name)
		if a.Name == omega.L.Name { // to say what it wants, c needs no period of its own
			require.Less(t, sent[[2]elector.NodeID{"c", "a"}], 50)
		}
	}
}
