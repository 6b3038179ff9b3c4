package sim

import "fmt"

// begin elects the leader that time 0 is to find, by the protocol's own means:
// the disks of all nodes that are there have the term before, and the leader
// starts an initial wait ahead of the others, so that they vote before they would
// stand. The network has no faults but its delay before time 0.
func (s *Sim) begin() error {
	b, t := s.cfg.Begin, s.byName[s.cfg.Begin.Leader].Elector.Timing
	s.now = -(t.InitialWait + t.MaxRandomWait + t.ScoutingResult + t.ElectionResult + s.cfg.Redial)
	s.setAllFaults(Faults{Delay: s.cfg.Network.Delay})
	for _, n := range s.nodes {
		if n.Absent {
			continue
		}
		n.disk.term = b.Term - 1
		start := s.now
		if n.id != b.Leader {
			start += t.InitialWait - s.cfg.Redial
		}
		s.At(start, func(s *Sim) error { return s.Restart(n.id) })
	}
	if err := s.RunUntil(0); err != nil {
		return fmt.Errorf("before time 0: %w", err)
	}
	s.setAllFaults(s.cfg.Network)
	if v, _ := s.View(b.Leader); !v.LeaseValid || v.Status.Term != b.Term {
		return fmt.Errorf("begin: %s cannot be made leader in term %d: at time 0 it is %s in term %d",
			b.Leader, b.Term, v.Status.Role, v.Status.Term)
	}
	return nil
}

func (s *Sim) setAllFaults(f Faults) {
	for _, l := range s.links {
		l.dirs[0].Faults, l.dirs[1].Faults = f, f
	}
}
