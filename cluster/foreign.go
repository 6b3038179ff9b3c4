package cluster

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/foreign"
	"github.com/bmqelect/bmqelect/netmesh"
)

// machine is what decides an election: package elector's, but in a demonstration.
type machine interface {
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

// decide steps the machine. The elector's is called directly: an input that goes to whatever
// machine would be on the heap, and a heartbeat takes no memory.
func (g *group) decide(now elector.Time, entropy uint64, in elector.Input) elector.Effects {
	if s, ok := g.elector.(stranger); ok {
		return s.other.Step(now, entropy, strangersInput(in))
	}
	return g.elector.(*elector.Machine).Step(now, entropy, in)
}

// strangersInput is a copy of an input that other algorithms know, or a Tick.
func strangersInput(in elector.Input) elector.Input {
	switch in := in.(type) {
	case elector.Start:
		return in
	case elector.Stop:
		return in
	case elector.LinkUp:
		return in
	case elector.LinkDown:
		return in
	case elector.Died:
		return in
	case elector.Measured:
		return in
	case elector.Eligible:
		return in
	case elector.Guard:
		return in
	case elector.Transfer:
		return in
	case elector.Resign:
		return in
	case elector.Pause:
		return in
	}
	return elector.Tick{}
}

func (s stranger) Status() elector.Status { return s.other.Status() }

// noLeases is what everybody must know of a demonstration.
const noLeases = "there are no leases, so nobody may act on who leads"

// newMachine makes what decides an election: the default one may be a demonstration.
func (n *Node) newMachine(name string, cfg elector.Config) (machine, error) {
	m, err := elector.New(cfg)
	if err != nil || name != DefaultGroup || n.foreign.New == nil {
		return m, err
	}
	other, err := n.foreign.New(foreign.Setup{Election: cfg, Dir: n.cfg.DataDir,
		Send: func(to NodeID, body []byte) { n.mesh.SendForeign(to, body) },
		Fail: func(err error) { go n.call(func() { n.fail(err) }) }, // the driver itself asks
	})
	return stranger{m, other}, err
}

// meshHandler is the mesh's handler. A node of the elector is not
// woken for what is not the elector's.
func (n *Node) meshHandler() netmesh.Handler {
	if n.foreign.New == nil {
		return meshHandler{n}
	}
	return foreignHandler{meshHandler{n}}
}

// foreignHandler is the handler of a node that runs another algorithm.
type foreignHandler struct{ meshHandler }

// ReceivedForeign hands a message to the other algorithm.
func (h foreignHandler) ReceivedForeign(peer NodeID, body []byte) {
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
