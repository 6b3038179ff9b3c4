// Package replay plays scenarios in the simulator, and shrinks those that break
// an invariant. Its Recorder makes the history of a run; package live, which
// plays scenarios on real processes, uses it too, so that expectations, figures
// and pictures do not know how a run was played.
package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// Options say how a scenario is simulated.
type Options struct {
	Seed   uint64
	Arrows bool     // keep messages one by one, for pictures
	Work   sim.Work // that every node does whenever it leads; none by default
	// Algorithm is what the nodes run; the zero Algorithm is this project's own. Where it goes
	// by identifiers it prefers the leader of the scenario's beginning.
	Algorithm algorithm.Algorithm
	// Store says where the store is of an algorithm that has one.
	Store sim.Store
	// Direct, if not nil, may arrange with At what happens besides the timeline.
	Direct func(*sim.Sim)
	// Observer, if not nil, gets every event, as that of sim.Config does.
	Observer func(*sim.Event)
}

// Limits of a simulated disk: a write takes this long.
const fsyncMin, fsyncMax = 200 * time.Microsecond, 2 * time.Millisecond

// player is one simulated run.
type player struct {
	sc     *scenario.Scenario
	rec    *Recorder
	sim    *sim.Sim
	arrows bool
	before int // messages sent before the first arrow
}

// Simulate plays a scenario in virtual time. The same scenario and seed give the
// same history on every machine. The error is about a scenario that cannot be
// begun; what goes wrong later is in the run.
func Simulate(sc *scenario.Scenario, o Options) (verdict.Run, error) {
	if err := playable(sc, o.Algorithm); err != nil {
		return verdict.Run{}, err
	}
	p := &player{sc: sc, rec: NewRecorder(sc, "simulated", o.Seed), arrows: o.Arrows}
	if o.Algorithm.New == nil {
		o.Algorithm = ours.Elector
	}
	p.rec.History.NoLease = p.rec.History.NoLease || !o.Algorithm.Leased
	if o.Algorithm.Store != nil {
		p.rec.AddStore(algorithm.StoreNode)
	}
	config := sim.Config{
		Algorithm: o.Algorithm, Order: order(sc), Store: o.Store,
		Seed: o.Seed, Network: faults(sc.Network), FsyncMin: fsyncMin, FsyncMax: fsyncMax,
		Begin:    sim.Begin{Leader: sc.Begin.Leader, Term: sc.Begin.Term},
		Observer: p.observe,
	}
	if o.Observer != nil {
		config.Observer = func(e *sim.Event) { p.observe(e); o.Observer(e) }
	}
	for _, n := range sc.Nodes {
		config.Nodes = append(config.Nodes, sim.NodeConfig{
			Elector: sc.Config(n), ClockRatePPM: n.ClockRatePPM, Term: n.Term, Absent: n.Absent,
			Work: o.Work,
		})
	}
	s, err := sim.New(config)
	if s == nil {
		return verdict.Run{}, fmt.Errorf("%s: %w", sc.File, err)
	}
	p.sim = s
	if o.Direct != nil {
		o.Direct(s)
	}
	for i := range sc.Timeline {
		step := &sc.Timeline[i]
		s.At(step.At, func(*sim.Sim) error { return p.act(step) })
	}
	if err == nil {
		err = s.RunUntil(sc.Duration)
	}
	for _, n := range sc.Nodes {
		p.noteLease(n.ID)
	}
	h := p.rec.Finish(s.Now()) // a violation ends the run early
	var broken *spec.Violation
	switch {
	case errors.As(err, &broken):
		h.Broken = append(h.Broken, broken.Error())
	case err != nil:
		h.Problems = append(h.Problems, err.Error())
	}
	if o.Algorithm.Name != ours.Elector.Name {
		sc = withTermsOf(sc, h)
	}
	return verdict.New(sc, h), nil
}

// playable says why an algorithm cannot play a scenario; nil if it can.
func playable(sc *scenario.Scenario, a algorithm.Algorithm) error {
	if a.New == nil || a.Name == ours.Elector.Name {
		return nil
	}
	for _, step := range sc.Timeline {
		if slices.Contains(scenario.RecordActions, step.Action.Do) || step.Action.Join ||
			step.Action.Lost != nil {
			return fmt.Errorf("%s:%d: %s: %s keeps no record and does not change its voters: "+
				"play this file with %s", sc.File, step.Pos.Line, step.Text, a.Name, ours.Elector.Name)
		}
	}
	return nil
}

// withTermsOf is the scenario with the terms that it expects counted from the term in which the
// run began: other algorithms cannot begin in that of the file, and some have none. What the
// file is about is true of this elector only.
func withTermsOf(sc *scenario.Scenario, h *history.History) *scenario.Scenario {
	shifted := *sc
	shifted.About = ""
	begun := h.Lane(sc.Begin.Leader)
	if begun == nil {
		return &shifted
	}
	shifted.Expect = slices.Clone(sc.Expect)
	for i := range shifted.Expect {
		if e := &shifted.Expect[i]; e.Want.Term >= sc.Begin.Term {
			e.Want.Term = e.Want.Term - sc.Begin.Term + begun.At(0).Term
			here := " (here are no terms)"
			if e.Want.Term > 0 {
				here = fmt.Sprintf(" (here term %d)", e.Want.Term)
			}
			e.Text += here
		}
	}
	return &shifted
}

// order has the voters of a scenario, the leader of its beginning first.
func order(sc *scenario.Scenario) []elector.NodeID {
	first := func(id elector.NodeID) bool { return id == sc.Begin.Leader }
	voters := slices.DeleteFunc(slices.Clone(sc.Election.Voters), first)
	if sc.Begin.Leader == "" {
		return voters
	}
	return append([]elector.NodeID{sc.Begin.Leader}, voters...)
}

func faults(l scenario.Link) sim.Faults {
	return sim.Faults{
		Delay: l.Delay, Jitter: l.Jitter,
		LossPPM: l.Loss, DuplicatePPM: l.Duplicate, ReorderPPM: l.Reorder,
	}
}

// observe records an event.
func (p *player) observe(e *sim.Event) {
	at, pair := e.At, scenario.Pair{From: e.Node, To: e.Peer}
	switch e.Kind {
	case sim.EventSent:
		p.rec.Sent(at)
		p.noteSent(e)
		return
	case sim.EventDelivered:
		p.noteDelivered(e)
		return
	}
	p.noteLease(e.Node)
	switch e.Kind {
	case sim.EventStarted:
		p.rec.Start(at, e.Node, e.Term)
	case sim.EventCrashed, sim.EventStopped:
		p.rec.End(at, e.Node)
	case sim.EventWiped:
		p.rec.Wipe(at, e.Node)
	case sim.EventPaused:
		p.rec.Change(at, e.Node, func(s *history.Span) { s.Process = history.Paused })
	case sim.EventResumed:
		p.rec.Change(at, e.Node, func(s *history.Span) { s.Process = history.Up })
	case sim.EventCut:
		p.rec.Cut(at, pair)
	case sim.EventHealed:
		p.rec.Heal(at, pair)
	case sim.EventTerm:
		if e.Term > p.rec.Now(e.Node).MaxTerm {
			p.rec.Change(at, e.Node, func(s *history.Span) { s.MaxTerm = e.Term })
		}
	case sim.EventAccepted:
		p.rec.Accepted(at, e.Node, p.record(e.Detail))
	case sim.EventShown:
		p.rec.Shown(at, e.Node, p.record(e.Detail))
	case sim.EventTransition:
		p.rec.Transition(at, e.Node, e.Transition, e.Why)
	}
}

// record is a record in the words of the scenario.
func (p *player) record(detail any) history.Record {
	r := detail.(elector.Record)
	rec := history.Record{LSN: r.LSN}
	for _, v := range r.Voters.Voters() {
		rec.Voters = append(rec.Voters, v.Node)
	}
	for _, step := range p.sc.Timeline {
		if text := step.Action.Value; text != "" && sim.ValueOf(text).Hash == r.Value.Hash {
			rec.Value = text
		}
	}
	return rec
}

// noteLease looks how long a leader's lease runs by now. It runs before what may end its
// leadership, since the lease may have been renewed just before.
func (p *player) noteLease(id elector.NodeID) {
	if p.sim != nil && !p.rec.History.NoLease {
		p.rec.Lease(id, p.sim.LeaseUntil(id))
	}
}

func (p *player) noteSent(e *sim.Event) {
	h := p.rec.History
	if !p.arrows || len(h.Arrows) >= history.MaxArrows || e.At < 0 {
		return
	}
	if len(h.Arrows) == 0 {
		p.before = e.Number - 1
	}
	h.Arrows = append(h.Arrows, history.Arrow{
		From: e.Node, To: e.Peer, Sent: e.At, Received: history.Forever,
		Kind: algorithm.Name(e.Message), Text: algorithm.Text(e.Message),
	})
}

// noteDelivered ends the arrow of a message, where it came first if it was doubled.
func (p *player) noteDelivered(e *sim.Event) {
	arrows := p.rec.History.Arrows
	if i := e.Number - p.before - 1; i >= 0 && i < len(arrows) {
		arrows[i].Received = min(arrows[i].Received, e.At)
	}
}

// act does one step of the timeline to the simulated cluster.
func (p *player) act(step *scenario.Step) error {
	later := p.rec.Mark(step.At, step.Text, "")
	note, err := p.do(step.Action, later)
	if note != "" {
		later(note)
	}
	var broken *spec.Violation
	if err != nil && !errors.As(err, &broken) {
		return fmt.Errorf("%s:%d: %s: %w", p.sc.File, step.Pos.Line, step.Text, err)
	}
	return err
}

// do does an action. The note says why it had no effect, and later says it later.
func (p *player) do(a scenario.Action, later func(string)) (note string, err error) {
	s := p.sim
	switch a.Do {
	case "cut", "reset", "heal", "partition", "link":
		return "", errors.Join(
			each(a.Reset, func(p scenario.Pair) error { return s.Reset(p.From, p.To) }),
			each(a.Cut, func(p scenario.Pair) error { return s.Cut(p.From, p.To) }),
			each(a.Heal, func(p scenario.Pair) error { return s.Heal(p.From, p.To) }),
			each(a.Linked, func(p scenario.Pair) error {
				return s.SetFaults(p.From, p.To, faults(a.Link))
			}),
		)
	case "transfer":
		leader, ok := s.Leader()
		if !ok {
			return "nobody leads", s.Err()
		}
		if err := s.Transfer(leader, a.To); err != nil {
			note = err.Error()
		}
		return note, s.Err()
	case "publish", "add-voter", "remove-voter", "replace-voter":
		ask := sim.Ask{Via: a.Via, Value: a.Value, Add: a.Add, Remove: a.Remove}
		return "", s.Ask(ask, func(err error) {
			if err != nil {
				later(err.Error())
			}
		})
	case "crash":
		how := sim.Crash{Unsynced: sim.Unsynced(a.Unsynced)}
		return "", each(a.Nodes, func(id elector.NodeID) error { return s.Crash(id, how) })
	case "restart":
		return "", each(a.Nodes, func(id elector.NodeID) error {
			err := error(nil)
			if a.Wipe {
				err = s.Wipe(id)
			}
			if a.Join {
				err = errors.Join(err, s.Join(id))
			}
			if a.Lost != nil {
				err = errors.Join(err, s.Declare(id, a.Lost))
			}
			return errors.Join(err, s.Restart(id))
		})
	case "pause":
		return "", each(a.Nodes, s.Pause)
	case "resume":
		return "", each(a.Nodes, s.Resume)
	case "stop":
		return "", each(a.Nodes, s.Stop)
	case "step-down":
		return "", each(a.Nodes, func(id elector.NodeID) error { return s.Resign(id, a.Rest) })
	case "unfit", "fit":
		return "", each(a.Nodes, func(id elector.NodeID) error { return s.SetFit(id, a.Do == "fit") })
	}
	return "", fmt.Errorf("the simulator cannot %s", a.Do)
}

// each calls f for all items until one fails.
func each[T any](items []T, f func(T) error) error {
	for _, item := range items {
		if err := f(item); err != nil {
			return err
		}
	}
	return nil
}
