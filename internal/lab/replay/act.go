package replay

import (
	"errors"
	"fmt"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// act does one step of the timeline to the simulated cluster.
func (p *player) act(step *scenario.Step) error {
	note := ""
	err := p.do(step.Action, &note)
	p.rec.mark(step.At, step.Text, note)
	var broken *sim.Violation
	if err != nil && !errors.As(err, &broken) {
		return fmt.Errorf("%s:%d: %s: %w", p.sc.File, step.Pos.Line, step.Text, err)
	}
	return err
}

func (p *player) do(a scenario.Action, note *string) error {
	s := p.sim
	switch a := a.(type) {
	case scenario.Cut:
		return eachPair(a.Pairs, s.Cut)
	case scenario.Reset:
		return errors.Join(eachPair(a.Pairs, s.Reset), eachPair(a.Pairs, s.Cut), eachPair(reversed(a.Pairs), s.Cut))
	case scenario.Partition:
		return s.Partition(a.Groups...)
	case scenario.Heal:
		if a.All {
			s.HealAll()
			return nil
		}
		return eachPair(a.Pairs, s.Heal)
	case scenario.SetLink:
		return eachPair(a.Pairs, func(from, to elector.NodeID) error { return s.SetFaults(from, to, faults(a.Link)) })
	case scenario.Transfer:
		*note = p.transfer(a.To)
		return s.Err()
	}
	return p.doProcess(a)
}

func (p *player) doProcess(a scenario.Action) error {
	s := p.sim
	switch a := a.(type) {
	case scenario.Crash:
		return eachNode(a.Nodes, func(id elector.NodeID) error { return s.Crash(id, sim.Crash{Unsynced: unsynced(a)}) })
	case scenario.Restart:
		return eachNode(a.Nodes, func(id elector.NodeID) error {
			if a.Wipe {
				if err := s.Wipe(id); err != nil {
					return err
				}
			}
			return s.Restart(id)
		})
	case scenario.Pause:
		return eachNode(a.Nodes, s.Pause)
	case scenario.Resume:
		return eachNode(a.Nodes, s.Resume)
	case scenario.Stop:
		return eachNode(a.Nodes, s.Stop)
	case scenario.StepDown:
		return eachNode(a.Nodes, func(id elector.NodeID) error { return s.Resign(id, a.Rest) })
	case scenario.Fitness:
		return eachNode(a.Nodes, func(id elector.NodeID) error { return s.SetFit(id, a.Fit) })
	}
	return fmt.Errorf("the simulator cannot do %T", a)
}

// transfer returns why it had no effect, "" if it had one.
func (p *player) transfer(to elector.NodeID) string {
	leader, ok := p.sim.Leader()
	if !ok {
		return "nobody leads"
	}
	if err := p.sim.Transfer(leader, to); err != nil {
		return err.Error()
	}
	return ""
}

func unsynced(c scenario.Crash) sim.Unsynced {
	switch {
	case c.Lose:
		return sim.UnsyncedLost
	case c.Keep:
		return sim.UnsyncedKept
	}
	return sim.UnsyncedByChance
}

func eachPair(pairs []scenario.Pair, f func(from, to elector.NodeID) error) error {
	for _, p := range pairs {
		if err := f(p.From, p.To); err != nil {
			return err
		}
	}
	return nil
}

func reversed(pairs []scenario.Pair) []scenario.Pair {
	var back []scenario.Pair
	for _, p := range pairs {
		back = append(back, scenario.Pair{From: p.To, To: p.From})
	}
	return back
}

func eachNode(ids []elector.NodeID, f func(elector.NodeID) error) error {
	for _, id := range ids {
		if err := f(id); err != nil {
			return err
		}
	}
	return nil
}
