package compare_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/omega"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

const ms = time.Millisecond

// A service is one experiment of Schiper and Toueg (DSN 2008): twelve machines, each of which
// crashes every ten minutes on average and is up again after 5 s, on links of which each message
// is lost or delayed by itself, exponentially. The link from one machine to another may crash too,
// for 3 s.
type service struct {
	algorithm.Algorithm
	detect  time.Duration // T_D^U
	delay   time.Duration // on the mean
	loss    float64
	crashes time.Duration // of a link: one in this time on the mean; 0 for none
}

const (
	machines    = 12
	machineUp   = 10 * time.Minute // on the mean
	machineDown = 5 * time.Second
	linkDown    = 3 * time.Second
	warmUp      = 20 * time.Second
)

// served is what is measured of an experiment.
type served struct {
	*sim.Sim
	rng     *rand.Rand
	lives   map[elector.NodeID]int
	follows map[elector.NodeID]elector.NodeID // of the machines that are up

	span       time.Duration // that was looked at
	available  time.Duration // in which all that were up agreed on one of them
	recoveries []time.Duration
	demotions  int // of a leader that was up
	sent       int

	since   time.Duration  // of the present agreement, or of none
	agreed  bool           // now
	leader  elector.NodeID // whom they agreed on last
	life    int            // which of its lives that was
	crashed time.Duration  // when it crashed; 0 if it did not
}

func (v service) start(t testing.TB, seed uint64) *served {
	cfg := sim.Config{
		Seed: seed, Algorithm: v.Algorithm, Network: sim.Faults{Tail: v.delay, LossPPM: int(v.loss * 1e6)},
		LinkTimeout: 24 * time.Hour, Redial: 1, // datagrams: there are no connections
	}
	var names []elector.NodeID
	for i := range machines {
		names = append(names, elector.NodeID('a'+rune(i)))
	}
	ask := detector.QoS{
		Detect: v.detect, Mistakes: detector.Recurrence(100 * 24 * time.Hour), Accuracy: 0.99999988,
	}
	for _, id := range names {
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{Elector: elector.Config{
			Self: id, Voters: names, QoS: ask, Timing: elector.ForQoS(ask),
		}})
	}
	p := &served{
		rng:   rand.New(rand.NewPCG(seed, 1)),
		lives: map[elector.NodeID]int{}, follows: map[elector.NodeID]elector.NodeID{},
	}
	cfg.Observer = p.observe
	s, err := sim.New(cfg)
	require.NoError(t, err)
	p.Sim = s
	return p
}

func (p *served) observe(e *sim.Event) {
	switch e.Kind {
	case sim.EventSent:
		p.sent++
		return
	case sim.EventStarted:
		p.lives[e.Node]++
		p.follows[e.Node] = ""
	case sim.EventCrashed:
		delete(p.follows, e.Node)
		if e.Node == p.leader && p.crashed == 0 {
			p.crashed = e.At
		}
	case sim.EventTransition:
		p.follows[e.Node] = e.Transition.Leader
	default:
		return
	}
	leader, agreed := p.agreement()
	if p.agreed {
		p.available += e.At - p.since
	}
	p.since, p.agreed = e.At, agreed
	if !agreed || leader == p.leader && p.lives[leader] == p.life {
		return
	}
	switch {
	case p.crashed != 0:
		p.recoveries = append(p.recoveries, e.At-p.crashed)
	case p.leader != "":
		p.demotions++
	}
	p.leader, p.life, p.crashed = leader, p.lives[leader], 0
}

// agreement returns whom all that are up follow, if that is one of them.
func (p *served) agreement() (leader elector.NodeID, agreed bool) {
	for _, of := range p.follows {
		if _, up := p.follows[of]; !up || leader != "" && of != leader {
			return "", false
		}
		leader = of
	}
	return leader, leader != ""
}

func (v service) run(t testing.TB, seed uint64, span time.Duration) *served {
	p := v.start(t, seed)
	require.NoError(t, p.RunUntil(warmUp))
	*p = served{
		Sim: p.Sim, rng: p.rng, lives: p.lives, follows: p.follows,
		since: warmUp, agreed: p.agreed, leader: p.leader, life: p.life, span: span,
	}
	ids := slices.Sorted(maps.Keys(p.lives))
	for _, id := range ids {
		p.fail(machineUp, machineDown, func(s *sim.Sim) error {
			return s.Crash(id, sim.Crash{Silent: true})
		}, func(s *sim.Sim) error { return s.Restart(id) })
		for _, to := range ids {
			if to != id && v.crashes != 0 {
				p.fail(v.crashes, linkDown,
					func(s *sim.Sim) error { return s.Cut(id, to) },
					func(s *sim.Sim) error { return s.Heal(id, to) })
			}
		}
	}
	require.NoError(t, p.RunUntil(warmUp + span))
	if p.agreed {
		p.available += p.Now() - p.since
	}
	return p
}

// fail lets something go down, and come up again, from now on.
func (p *served) fail(up, down time.Duration, goDown, comeUp sim.Action) {
	at := p.Now() + time.Duration(p.rng.ExpFloat64()*float64(up))
	p.At(at, goDown)
	p.At(at+down, func(s *sim.Sim) error {
		err := comeUp(s)
		p.fail(up, down, goDown, comeUp)
		return err
	})
}

func TestTry(t *testing.T) {
	for _, a := range []algorithm.Algorithm{omega.ID, omega.LC, omega.L} {
		for _, v := range []service{
			{a, time.Second, 25 * time.Microsecond, 0, 0},
			{a, time.Second, 10 * ms, .01, 0},
			{a, time.Second, 100 * ms, .1, 0},
			{a, time.Second, 25 * time.Microsecond, 0, 60 * time.Second},
		} {
			began := time.Now()
			p := v.run(t, 1, 20*time.Minute)
			var sum time.Duration
			for _, r := range p.recoveries {
				sum += r
			}
			fmt.Printf("%s %s %.2f %s: avail %.4f, %d recoveries mean %s, %d demotions, %d sent, took %s\n",
				v.Name, v.delay, v.loss, v.crashes, p.available.Seconds()/p.span.Seconds(),
				len(p.recoveries), sum/time.Duration(max(len(p.recoveries), 1)), p.demotions, p.sent, time.Since(began))
		}
	}
}
