package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// TestWorkNeverOverlaps: as long as work keeps to the time that it is given, guarded work of
// two nodes never goes on at the same time, whatever applications and operators ask for.
// Every property checks that; here the nodes mostly hand over to each other, by command, for
// fitness and by takeover.
func TestWorkNeverOverlaps(t *testing.T) {
	for range 5 {
		rapid.Check(t, func(t *rapid.T) {
			cfg := drawAbleCluster(t)
			takeover := pick(t, "takeover", 0, time.Second, 3*time.Second)
			for i := range cfg.Nodes {
				cfg.Nodes[i].Work.Does = true
				if takeover > 0 {
					e := &cfg.Nodes[i].Elector
					e.Takeover = max(takeover, e.Timing.HeartbeatBroadcast)
				}
			}
			s := start(t, cfg)
			require.NoError(t, s.RunFor(20*time.Second))
			schedule := rapid.SliceOfN(drawStep(targets(s), handovers), 1, 40).Draw(t, "schedule")
			require.NoError(t, play(s, schedule))
		})
	}
}

// handovers mostly make leaders hand over; some faults come between.
var handovers = []string{
	"wait", "transfer", "transfer", "transfer", "resign", "resign", "unfit", "fit", "fit", "stop",
	"abrupt", "restart", "restart",
	"pause", "resume", "isolate", "pair", "healAll", "crash", "bounce", "reset",
}

// worker is an established cluster of three whose nodes all do guarded work.
func worker(stops time.Duration) sim.Config {
	cfg := led(1, 3)
	for i := range cfg.Nodes {
		cfg.Nodes[i].Work = sim.Work{Does: true, Stops: stops}
	}
	return cfg
}

func TestWorkStopsBeforeTheSuccessorLeads(t *testing.T) {
	const stopped = "a work-told, a work-stopped, "
	const resigned = stopped + "a FOLLOWER RESIGNED, c LEADER ELECTED, c work"
	for do, want := range map[string]struct {
		act  sim.Action
		tale string // what the nodes did about work and leadership, in order
	}{
		"transfer": {
			func(s *sim.Sim) error { return s.Transfer("a", "b") },
			stopped + "a FOLLOWER TRANSFERRED, b LEADER ELECTED, b work",
		},
		"resign": {func(s *sim.Sim) error { return s.Resign("a", time.Minute) }, resigned},
		"unfit":  {func(s *sim.Sim) error { return s.SetFit("a", false) }, resigned},
		"stop": {
			func(s *sim.Sim) error { return s.Stop("a") },
			stopped + "a DORMANT STOPPED, a stopped, c LEADER ELECTED, c work",
		},
		"transfer to a node that is cut off then": {
			func(s *sim.Sim) error {
				s.At(s.Now()+100*ms, func(s *sim.Sim) error { return eachLink(s, "b", s.Cut) })
				s.At(s.Now()+100*ms, func(s *sim.Sim) error { return s.Reset("a", "b") })
				return s.Transfer("a", "b")
			},
			stopped + "a work",
		},
	} {
		t.Run(do, func(t *testing.T) {
			cfg := worker(200 * ms)
			var told []string
			cfg.Observer = func(e *sim.Event) {
				switch t := e.Transition; {
				case e.At <= 0:
				case e.Kind == sim.EventWork, e.Kind == sim.EventWorkTold, e.Kind == sim.EventWorkStopped,
					e.Kind == sim.EventStopped:
					told = append(told, string(e.Node)+" "+e.Kind.String())
				case e.Kind == sim.EventTransition && (t.From == elector.Leader || t.To == elector.Leader):
					told = append(told, string(e.Node)+" "+t.To.String()+" "+t.Reason.String())
				}
			}
			s := start(t, cfg)
			s.At(time.Second, want.act)
			require.NoError(t, s.RunUntil(3*time.Second))
			require.Equal(t, want.tale, strings.Join(told, ", "))
		})
	}
}

// TestWorkThatGoesOnEndsWithTheLease: work that does not stop ends with the lease that it was
// given, and no leader is elected before, whatever ended the old leadership.
func TestWorkThatGoesOnEndsWithTheLease(t *testing.T) {
	for do, act := range map[string]sim.Action{
		"stop":     func(s *sim.Sim) error { return s.Stop("a") },
		"abrupt":   func(s *sim.Sim) error { return s.StopAbruptly("a") },
		"isolate":  func(s *sim.Sim) error { return eachLink(s, "a", s.Cut) },
		"transfer": func(s *sim.Sim) error { return s.Transfer("a", "b") },
	} {
		t.Run(do, func(t *testing.T) {
			cfg := worker(time.Hour)
			var began time.Duration
			cfg.Observer = func(e *sim.Event) {
				if e.Kind == sim.EventWork && e.At > 0 {
					began = e.At
				}
			}
			s := start(t, cfg)
			require.NoError(t, s.RunFor(time.Second))
			given := s.LeaseUntil("a")
			require.NoError(t, act(s))
			require.NoError(t, s.RunFor(10*time.Second))
			require.GreaterOrEqual(t, began, given)
			require.Less(t, began, given+8*time.Second)
		})
	}
}
