package replay

import (
	"errors"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// Options say how a scenario is simulated.
type Options struct {
	Seed   uint64
	Arrows bool // keep messages one by one, for pictures
}

// Limits of a simulated disk: a write takes this long.
const fsyncMin, fsyncMax = 200 * time.Microsecond, 2 * time.Millisecond

// Simulate plays a scenario in virtual time. The same scenario and seed give the
// same history on every machine. The error is about a scenario that cannot be
// begun; what goes wrong later is in the run.
func Simulate(sc *scenario.Scenario, o Options) (report.Run, error) {
	p := &player{sc: sc, rec: newRecorder(sc, "simulated", o.Seed), arrows: o.Arrows}
	if err := p.play(); err != nil {
		return report.Run{}, err
	}
	h := p.rec.h
	return report.Run{History: h, Verdicts: Judge(sc, h), About: sc.About}, nil
}

// player is one simulated run.
type player struct {
	sc     *scenario.Scenario
	rec    *recorder
	sim    *sim.Sim
	arrows bool
	flying map[scenario.Pair][]int // arrows that have not arrived, by index, oldest first
	leads  map[elector.NodeID]bool
}

func (p *player) play() error {
	p.flying, p.leads = map[scenario.Pair][]int{}, map[elector.NodeID]bool{}
	s, err := sim.New(p.config())
	if s == nil {
		return err
	}
	p.sim = s
	for i := range p.sc.Timeline {
		step := &p.sc.Timeline[i]
		s.At(step.At, func(*sim.Sim) error { return p.act(step) })
	}
	if err == nil {
		err = s.RunUntil(p.sc.Duration)
	}
	p.noteLeases()
	p.rec.finish(s.Now()) // a violation ends the run early
	var broken *sim.Violation
	switch {
	case errors.As(err, &broken):
		p.rec.h.Broken = append(p.rec.h.Broken, broken.Error())
	case err != nil:
		p.rec.h.Problems = append(p.rec.h.Problems, err.Error())
	}
	return nil
}

func (p *player) config() sim.Config {
	c := sim.Config{
		Seed: p.rec.h.Seed, Network: faults(p.sc.Network), FsyncMin: fsyncMin, FsyncMax: fsyncMax,
		Begin:    sim.Begin{Leader: p.sc.Begin.Leader, Term: p.sc.Begin.Term},
		Observer: p.observe,
	}
	for _, n := range p.sc.Nodes {
		c.Nodes = append(c.Nodes, sim.NodeConfig{Elector: p.sc.Config(n), ClockRatePPM: n.ClockRatePPM, Term: n.Term, Absent: n.Absent})
	}
	return c
}

func faults(l scenario.Link) sim.Faults {
	return sim.Faults{
		Delay: l.Delay, Jitter: l.Jitter,
		LossPPM: l.Loss, DuplicatePPM: l.Duplicate, ReorderPPM: l.Reorder,
	}
}

// observe records an event.
func (p *player) observe(e *sim.Event) {
	p.noteLeases()
	at, pair := e.At, scenario.Pair{From: e.Node, To: e.Peer}
	switch e.Kind {
	case sim.EventStarted:
		p.rec.started(at, e.Node, e.Term)
	case sim.EventCrashed, sim.EventStopped:
		p.rec.gone(at, e.Node)
		delete(p.leads, e.Node)
	case sim.EventWiped:
		p.rec.become(at, e.Node, func(s *history.Span) { *s = history.Span{} })
	case sim.EventPaused:
		p.rec.process(at, e.Node, history.Paused)
	case sim.EventResumed:
		p.rec.process(at, e.Node, history.Up)
	case sim.EventCut:
		p.rec.cut(at, pair)
	case sim.EventHealed:
		p.rec.heal(at, pair)
	case sim.EventDurable:
		p.rec.term(at, e.Node, e.Term)
	case sim.EventTransition:
		p.rec.transition(at, e.Node, e.Transition)
		p.leads[e.Node] = e.Transition.To == elector.Leader
	case sim.EventSent:
		p.rec.sent(at)
		p.launch(e)
	case sim.EventDelivered:
		p.land(e)
	}
}

// noteLeases looks how long the leaders' leases run by now. It runs before every
// event, which may be the end of a leader whose lease was renewed just before.
func (p *player) noteLeases() {
	if p.sim == nil || p.rec.h.NoLease {
		return
	}
	for id, leads := range p.leads {
		if leads {
			p.rec.lease(id, p.sim.LeaseUntil(id))
		}
	}
}

// launch and land keep messages one by one.
func (p *player) launch(e *sim.Event) {
	if !p.arrows || len(p.rec.h.Arrows) >= history.MaxArrows || e.At < 0 {
		return
	}
	pair := scenario.Pair{From: e.Node, To: e.Peer}
	p.flying[pair] = append(p.flying[pair], len(p.rec.h.Arrows))
	p.rec.h.Arrows = append(p.rec.h.Arrows, history.Arrow{
		From: e.Node, To: e.Peer, Sent: e.At, Received: history.Forever, Kind: e.Message.Kind, Text: e.Message.String(),
	})
}

func (p *player) land(e *sim.Event) {
	if !p.arrows {
		return
	}
	pair := scenario.Pair{From: e.Peer, To: e.Node}
	text := e.Message.String()
	for i, arrow := range p.flying[pair] {
		if a := &p.rec.h.Arrows[arrow]; a.Text == text {
			a.Received = e.At
			p.flying[pair] = append(p.flying[pair][:i:i], p.flying[pair][i+1:]...)
			return
		}
	}
}
