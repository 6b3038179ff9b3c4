package cluster

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/foreign"
)

// machine is what decides an election: package elector's, but in a demonstration.
type machine interface {
	Step(now elector.Time, entropy uint64, in elector.Input) elector.Effects
	Status() elector.Status
	State() elector.State
	Lease() elector.Lease
	Handover() elector.Handover
	BestSuccessor() NodeID
	Transferable(to NodeID) error
	Quality() (detector.Tuning, detector.Plan, error, bool)
	Tune(*elector.Links) (elector.Tuned, bool)
}

// stranger runs another algorithm. The elector's machine in it never starts: it has no lease
// and nothing to hand over, and so has the node.
type stranger struct {
	*elector.Machine
	other foreign.Machine
}

func (s stranger) Step(now elector.Time, entropy uint64, in elector.Input) elector.Effects {
	return s.other.Step(now, entropy, in)
}

func (s stranger) Status() elector.Status { return s.other.Status() }

// newMachine makes what decides an election: the default one may be a demonstration.
func (n *Node) newMachine(name string, cfg elector.Config) (machine, error) {
	m, err := elector.New(cfg)
	if err != nil || name != DefaultGroup || n.foreign == nil {
		return m, err
	}
	other, err := n.foreign(foreign.Setup{Election: cfg, Dir: n.cfg.DataDir,
		Send: func(to NodeID, body []byte) { n.mesh.SendForeign(to, body) }})
	return stranger{m, other}, err
}

// ReceivedForeign hands a message to the other algorithm.
func (h meshHandler) ReceivedForeign(peer NodeID, body []byte) {
	n := h.n
	n.post(event{do: func() {
		g := n.groups[DefaultGroup]
		if g == nil {
			return
		}
		if s, ok := g.elector.(stranger); ok {
			s.other.Receive(peer, body)
			n.step(g, elector.Tick{})
		}
	}})
}
