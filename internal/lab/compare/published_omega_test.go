package compare_test

import (
	"encoding/csv"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/omega"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

var omegaStudy = flag.Bool("omega", false, "play the whole study of Omega, and write its files")

// An omegaService is one setting of Schiper and Toueg (DSN 2008): twelve machines, each of which
// crashes every ten minutes on the mean and is up again after 5 s, on links of which each message
// is lost or delayed by itself, exponentially. The link from one machine to another may crash
// too, for 3 s.
type omegaService struct {
	detect  time.Duration // T_D^U
	delay   time.Duration // the mean
	loss    float64
	crashes time.Duration // of a link, from one to the next on the mean; 0: it does not crash
}

const (
	omegaMachines    = 12
	omegaMachineUp   = 10 * time.Minute
	omegaMachineDown = 5 * time.Second
	omegaLinkDown    = 3 * time.Second
	omegaWarmUp      = 20 * time.Second
)

// omegaRun is a service that runs, and what is measured of it.
type omegaRun struct {
	*sim.Sim
	rng     *rand.Rand
	lives   map[elector.NodeID]int            // which life each machine is in
	follows map[elector.NodeID]elector.NodeID // of those that are up

	agree   bool           // all follow one that is up
	since   time.Duration  // that is so, or is not
	leader  elector.NodeID // whom they followed last
	life    int            // in which of its lives
	crashed time.Duration  // when it crashed; 0: it is up

	begun, available time.Duration // since when is measured; how long of it they agreed
	recoveries       []time.Duration
	demotions        int // of a leader that was up
	sent             int
}

func (v omegaService) start(t *testing.T, a algorithm.Algorithm, seed uint64) *omegaRun {
	ask := detector.QoS{
		Detect: v.detect, Mistakes: detector.Recurrence(100 * 24 * time.Hour), Accuracy: 0.99999988,
	}
	p := &omegaRun{
		rng:   rand.New(rand.NewPCG(seed, 1)),
		lives: map[elector.NodeID]int{}, follows: map[elector.NodeID]elector.NodeID{},
	}
	cfg := sim.Config{
		Seed: seed, Algorithm: a, Observer: p.observe,
		Network:     sim.Faults{Tail: v.delay, LossPPM: int(v.loss * 1e6)},
		LinkTimeout: 24 * time.Hour, Redial: 1, // as of datagrams: a link has no connection
	}
	var ids []elector.NodeID
	for i := range omegaMachines {
		ids = append(ids, elector.NodeID('a'+rune(i)))
	}
	for _, id := range ids {
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{Elector: elector.Config{
			Self: id, Voters: ids, QoS: ask, Timing: elector.ForQoS(ask),
		}})
	}
	var err error
	p.Sim, err = sim.New(cfg)
	require.NoError(t, err)
	require.NoError(t, p.RunUntil(omegaWarmUp))
	p.begun, p.since, p.available, p.sent, p.demotions = p.Now(), p.Now(), 0, 0, 0
	return p
}

// observe follows who agrees with whom. Agreement on another one while the last leader is up is
// a demotion that nothing justifies; after its crash, it ends the recovery.
func (p *omegaRun) observe(e *sim.Event) {
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
	p.account(e.At)
	leader := p.agreement()
	p.agree = leader != ""
	switch {
	case !p.agree || leader == p.leader && p.life == p.lives[leader]:
		return
	case p.crashed != 0:
		p.recoveries = append(p.recoveries, e.At-p.crashed)
	case p.leader != "":
		p.demotions++
	}
	p.leader, p.life, p.crashed = leader, p.lives[leader], 0
}

// account adds the time up to now to what it was.
func (p *omegaRun) account(now time.Duration) {
	if p.agree {
		p.available += now - p.since
	}
	p.since = now
}

// agreement returns whom all that are up follow, if it is one of them; "" if not.
func (p *omegaRun) agreement() (leader elector.NodeID) {
	for _, of := range p.follows {
		if _, up := p.follows[of]; !up || leader != "" && of != leader {
			return ""
		}
		leader = of
	}
	return leader
}

// run is their experiment. Of one seed, machines and links crash at the same moments whatever
// the algorithm.
func (v omegaService) run(
	t *testing.T, a algorithm.Algorithm, seed uint64, span time.Duration,
) *omegaRun {
	p := v.start(t, a, seed)
	ids := slices.Sorted(maps.Keys(p.lives))
	for _, id := range ids {
		p.fail(rand.New(rand.NewPCG(seed, p.rng.Uint64())), omegaMachineUp, omegaMachineDown,
			func(s *sim.Sim) error { return s.Crash(id, sim.Crash{Silent: true}) },
			func(s *sim.Sim) error { return s.Restart(id) })
		for _, to := range ids {
			if to != id && v.crashes != 0 {
				p.fail(rand.New(rand.NewPCG(seed, p.rng.Uint64())), v.crashes, omegaLinkDown,
					func(s *sim.Sim) error { return s.Cut(id, to) },
					func(s *sim.Sim) error { return s.Heal(id, to) })
			}
		}
	}
	require.NoError(t, p.RunUntil(p.Now()+span))
	p.account(p.Now())
	return p
}

// fail lets something go down and come up, again and again.
func (p *omegaRun) fail(rng *rand.Rand, up, down time.Duration, goDown, comeUp sim.Action) {
	at := p.Now() + time.Duration(rng.ExpFloat64()*float64(up))
	p.At(at, goDown)
	p.At(at+down, func(s *sim.Sim) error {
		p.fail(rng, up, down, goDown, comeUp)
		return comeUp(s)
	})
}

// crashLeaders is the experiment for T_r alone: the leader crashes again and again, once the
// links from it are known.
func (v omegaService) crashLeaders(
	t *testing.T, a algorithm.Algorithm, seed uint64, count int,
) *omegaRun {
	p := v.start(t, a, seed)
	for range count {
		known := time.Duration(p.rng.Float64() * float64(v.detect)) // at any point of a period
		require.NoError(t, p.RunUntil(p.Now()+10*time.Second+15*v.detect+known))
		require.True(t, p.agree, "%s, %+v: at %s", a.Name, v, p.Now())
		leader := p.leader
		p.At(p.Now(), func(s *sim.Sim) error { return s.Crash(leader, sim.Crash{Silent: true}) })
		p.At(p.Now()+omegaMachineDown, func(s *sim.Sim) error { return s.Restart(leader) })
	}
	require.NoError(t, p.RunUntil(p.Now()+10*time.Second))
	p.account(p.Now())
	return p
}

// An omegaCell is one line of the study. The rows of their figures are five links that lose and
// delay, three that crash, and four T_D^U.
type omegaCell struct {
	omegaService
	leaders bool // crashLeaders
}

func omegaCells() (cells []omegaCell) {
	const ms = time.Millisecond
	for _, v := range []omegaService{
		{delay: 25 * time.Microsecond}, {delay: 10 * ms, loss: .01}, {delay: 10 * ms, loss: .1},
		{delay: 100 * ms, loss: .01}, {delay: 100 * ms, loss: .1},
		{delay: 25 * time.Microsecond, crashes: 600 * time.Second},
		{delay: 25 * time.Microsecond, crashes: 300 * time.Second},
		{delay: 25 * time.Microsecond, crashes: 60 * time.Second},
	} {
		v.detect = time.Second
		cells = append(cells, omegaCell{omegaService: v})
	}
	for _, detect := range []time.Duration{100 * ms, 250 * ms, 500 * ms, 1000 * ms} {
		v := omegaService{detect: detect, delay: 10 * ms, loss: .01}
		cells = append(cells, omegaCell{v, true})
	}
	return cells
}

var omegaColumns = []string{"seed", "delay_ms", "loss_percent", "link_crashes_every_s",
	"detect_ms", "leader_crashes", "recovery_ms", "demotions_per_hour", "availability_percent",
	"messages_per_second"}

const (
	omegaSeeds = 2 // from 1 on
	omegaSpan  = 2 * time.Hour
)

// line plays a cell and returns its line of the file.
func (c omegaCell) line(t *testing.T, a algorithm.Algorithm, seed uint64) []string {
	var p *omegaRun
	if c.leaders {
		p = c.crashLeaders(t, a, seed, 15)
	} else {
		p = c.run(t, a, seed, omegaSpan)
	}
	f := p.figures()
	return []string{
		fmt.Sprint(seed),
		fmt.Sprint(float64(c.delay) / float64(time.Millisecond)), fmt.Sprint(100 * c.loss),
		fmt.Sprint(c.crashes.Seconds()), fmt.Sprint(c.detect.Milliseconds()),
		fmt.Sprint(f.crashes), fmt.Sprintf("%.0f", 1000*f.recovery), fmt.Sprintf("%.1f", f.demotions),
		fmt.Sprintf("%.3f", 100*f.availability), fmt.Sprintf("%.1f", f.messages),
	}
}

// omegaFigures are what they publish of a setting.
type omegaFigures struct {
	crashes      int     // of leaders
	recovery     float64 // T_r, s: from a leader's crash until all agree on another
	demotions    float64 // lambda_u, an hour
	availability float64 // of the time in which all that are up agree on one of them
	messages     float64 // a second
}

func (p *omegaRun) figures() (f omegaFigures) {
	span := p.Now() - p.begun
	f.crashes = len(p.recoveries)
	for _, r := range p.recoveries {
		f.recovery += r.Seconds() / float64(f.crashes)
	}
	f.demotions = float64(p.demotions) / span.Hours()
	f.availability = p.available.Seconds() / span.Seconds()
	f.messages = float64(p.sent) / span.Seconds()
	return f
}

var omegas = []algorithm.Algorithm{omega.ID, omega.LC, omega.L}

func omegaFile(a algorithm.Algorithm) string { return "testdata/" + a.Name + ".csv" }

// TestOmegaStudy writes the files of the study, if it is asked to: it takes some minutes. Otherwise
// it plays the last cell, and requires that it is as in the file.
func TestOmegaStudy(t *testing.T) {
	for _, a := range omegas {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			cells := omegaCells()
			last := len(cells) - 1
			if !*omegaStudy {
				require.Equal(t, cells[last].line(t, a, 1), readOmega(t, a)[last])
				return
			}
			lines := [][]string{omegaColumns}
			for seed := range uint64(omegaSeeds) {
				for _, c := range cells {
					lines = append(lines, c.line(t, a, seed+1))
				}
			}
			file, err := os.Create(omegaFile(a))
			require.NoError(t, err)
			require.NoError(t, csv.NewWriter(file).WriteAll(lines))
			require.NoError(t, file.Close())
		})
	}
}

// readOmega returns the lines of an algorithm, in the order of omegaCells.
func readOmega(t *testing.T, a algorithm.Algorithm) [][]string {
	file, err := os.Open(omegaFile(a))
	require.NoError(t, err)
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	require.Equal(t, omegaColumns, lines[0])
	return lines[1:]
}

// TestOmegaAsPublished requires of the study what the article found.
//
// T_r is T_D^U, whatever the links lose and delay, and is so in proportion. What is beyond it: all
// agree when the last of eleven detectors has suspected, on the mean a twelfth of a period before
// T_D^U + E(D). In Omega_lc each of them tells each other one; on lossy links some of that is
// lost, and the next ALIVE says it.
// On lossy links no stable leader is demoted while it is up; Omega_id demotes one at each return
// of the smallest, six an hour, as often as it crashes. Where links crash, Omega_lc is available
// longest, Omega_id least. Omega_l sends a twelfth of the messages.
func TestOmegaAsPublished(t *testing.T) {
	study := map[string][]omegaFigures{}
	for _, a := range omegas {
		for _, line := range readOmega(t, a) {
			study[a.Name] = append(study[a.Name], parseOmega(t, line))
		}
	}
	id, lc, l := study[omega.ID.Name], study[omega.LC.Name], study[omega.L.Name]
	cells, hourly := omegaCells(), 0.
	for i := range id {
		c := cells[i%len(cells)]
		for name, of := range study {
			f, detect := of[i], c.detect.Seconds()
			if c.crashes == 0 {
				most := 1.1*detect + 2*c.delay.Seconds()
				if name == omega.LC.Name && c.loss > 0 {
					most += detect / 6
				}
				require.Less(t, f.recovery, most, "%s: %+v", name, c)
				require.Greater(t, f.recovery, 0.8*detect, "%s: %+v", name, c)
			}
			switch {
			case c.leaders || c.crashes != 0:
			case name == omega.ID.Name:
				require.InDelta(t, float64(f.crashes)/omegaSpan.Hours(), f.demotions, 0.5, "%+v", c)
				hourly += f.demotions / 5 / omegaSeeds
				require.Greater(t, f.availability, 0.994, "%+v", c)
			default:
				require.Zero(t, f.demotions, "%s: %+v", name, c)
				require.Greater(t, f.availability, id[i].availability, "%s: %+v", name, c)
			}
		}
		if c.crashes != 0 {
			require.Greater(t, lc[i].availability, l[i].availability, "%+v", c)
			require.Greater(t, l[i].availability, id[i].availability, "%+v", c)
		} else if !c.leaders { // there, the links from each leader are new
			require.InDelta(t, omegaMachines, lc[i].messages/l[i].messages, 3, "%+v", c)
		}
	}
	require.InDelta(t, 6, hourly, 1.5, "Omega_id on lossy links")
}

func parseOmega(t *testing.T, line []string) (f omegaFigures) {
	figure := func(column string) float64 {
		x, err := strconv.ParseFloat(line[slices.Index(omegaColumns, column)], 64)
		require.NoError(t, err)
		return x
	}
	return omegaFigures{
		crashes: int(figure("leader_crashes")), recovery: figure("recovery_ms") / 1000,
		demotions: figure("demotions_per_hour"), availability: figure("availability_percent") / 100,
		messages: figure("messages_per_second"),
	}
}

// TestOmegaWhereLinksCrash plays the worst of their settings for a few minutes: Omega_lc is led far
// longer than Omega_l, which is led longer than Omega_id; all demote leaders that are up.
func TestOmegaWhereLinksCrash(t *testing.T) {
	var available []float64
	for _, a := range omegas {
		v := omegaService{time.Second, 25 * time.Microsecond, 0, time.Minute}
		f := v.run(t, a, 2, 5*time.Minute).figures()
		t.Logf("%s: %+v", a.Name, f)
		available = append(available, f.availability)
	}
	require.Greater(t, available[1], 0.94)
	require.Greater(t, available[1]-available[2], 0.04, "Omega_lc, Omega_l")
	require.Greater(t, available[2]-available[0], 0.1, "Omega_l, Omega_id")
}

// TestOmegaIsStable plays one of their lossy settings for half an hour.
func TestOmegaIsStable(t *testing.T) {
	for _, a := range omegas[1:] {
		v := omegaService{time.Second, 10 * time.Millisecond, 0.01, 0}
		f := v.run(t, a, 3, 15*time.Minute).figures()
		t.Logf("%s: %+v", a.Name, f)
		require.NotZero(t, f.crashes, a.Name)
		require.Zero(t, f.demotions, a.Name)
	}
}
