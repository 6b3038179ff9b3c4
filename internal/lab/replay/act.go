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
	switch a.Do {
	case "cut":
		return eachPair(a.Pairs, s.Cut)
	case "reset":
		back := reversed(a.Pairs)
		return errors.Join(eachPair(a.Pairs, s.Reset), eachPair(a.Pairs, s.Cut), eachPair(back, s.Cut))
	case "partition":
		return s.Partition(a.Groups...)
	case "heal":
		if a.All {
			s.HealAll()
			return nil
		}
		return eachPair(a.Pairs, s.Heal)
	case "link":
		return eachPair(a.Pairs, func(from, to elector.NodeID) error {
			return s.SetFaults(from, to, faults(a.Link))
		})
	case "transfer":
		*note = p.transfer(a.To)
		return s.Err()
	}
	return eachNode(a.Nodes, func(id elector.NodeID) error { return p.doProcess(a, id) })
}

func (p *player) doProcess(a scenario.Action, id elector.NodeID) error {
	s := p.sim
	switch a.Do {
	case "crash":
		return s.Crash(id, sim.Crash{Unsynced: unsynced[a.Unsynced]})
	case "restart":
		if a.Wipe {
			if err := s.Wipe(id); err != nil {
				return err
			}
		}
		return s.Restart(id)
	case "pause":
		return s.Pause(id)
	case "resume":
		return s.Resume(id)
	case "stop":
		return s.Stop(id)
	case "step-down":
		return s.Resign(id, a.Rest)
	case "unfit", "fit":
		return s.SetFit(id, a.Do == "fit")
	}
	return fmt.Errorf("the simulator cannot %s", a.Do)
}

// unsynced are the ways to crash by their words in the format.
var unsynced = map[string]sim.Unsynced{
	"": sim.UnsyncedByChance, "lose": sim.UnsyncedLost, "keep": sim.UnsyncedKept,
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
