package sim

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// View is one node as an omniscient onlooker sees it.
type View struct {
	Node       elector.NodeID
	Running    bool // a process is there; the fields below Durable mean something
	Paused     bool
	Durable    lsn.Term
	Status     elector.Status // times are the node's own
	Now        elector.Time   // the node's clock
	LeaseValid bool           // it is the leader, and would say so if asked now
	LeaseUntil time.Duration  // the end of its lease in simulated time
}

// View returns how a node stands now.
func (s *Sim) View(id elector.NodeID) (View, error) {
	n, err := s.find("view", id)
	if err != nil {
		return View{}, err
	}
	v := View{Node: id, Running: n.running(), Paused: n.paused, Durable: n.disk.term}
	if n.running() {
		v.Status, v.Now = n.machine.Status(), n.clock.at(s.now)
		v.LeaseValid, v.LeaseUntil = s.leads(n), n.leaseUntil
	}
	return v, nil
}

// leads reports whether n holds a valid lease.
func (s *Sim) leads(n *node) bool { return n.running() && s.now < n.leaseUntil }

// Leader returns the node that leads: it has the role, its lease is valid, and
// as many voters as it needs, itself included, follow it. ok is false if none
// does.
func (s *Sim) Leader() (id elector.NodeID, ok bool) {
	for _, n := range s.nodes {
		followers := 0
		for _, v := range s.nodes {
			if !v.running() || v.Elector.Observer() {
				continue
			}
			st := v.machine.State()
			if v == n || st.Role != elector.Leader && st.Follower.Leader == n.id {
				followers++
			}
		}
		if s.leads(n) && followers >= n.Elector.QuorumSize() {
			return n.id, true
		}
	}
	return "", false
}

// Nodes returns the names of all nodes in the order of Config.Nodes.
func (s *Sim) Nodes() []elector.NodeID {
	ids := make([]elector.NodeID, len(s.nodes))
	for i, n := range s.nodes {
		ids[i] = n.id
	}
	return ids
}

// LeaseUntil is the end of a node's lease in simulated time, without allocation;
// before time 0 began if it has none.
func (s *Sim) LeaseUntil(id elector.NodeID) time.Duration { return s.byName[id].leaseUntil }
