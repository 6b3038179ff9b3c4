package sim

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/lsn"
)

// These methods are for tests alone; scenarios do not need them.

// RunFor is RunUntil d from now.
func (s *Sim) RunFor(d time.Duration) error { return s.RunUntil(s.now + d) }

// SetFsync replaces the bounds of how long a write takes, for writes that begin
// from now on.
func (s *Sim) SetFsync(least, most time.Duration) { s.cfg.FsyncMin, s.cfg.FsyncMax = least, most }

// StopAbruptly is Stop without waiting for guarded work, which goes on without
// the elector until it has stopped or its deadline ends it.
func (s *Sim) StopAbruptly(id elector.NodeID) error {
	return s.stop(id, elector.Stop{Abrupt: true})
}

// Tell hands an input to a running node.
func (s *Sim) Tell(id elector.NodeID, in elector.Input) error {
	n, err := s.process("tell", id, true)
	if err == nil {
		s.hear(n, in)
		err = s.err
	}
	return err
}

// Partition cuts every link between nodes that are not in the same group, and
// heals the others. Nodes in no group are alone.
func (s *Sim) Partition(groups ...[]elector.NodeID) error {
	of := make([]int, len(s.nodes)) // by node: the number of its group
	for i := range of {
		of[i] = -1 - i
	}
	for g, ids := range groups {
		for _, id := range ids {
			of[s.byName[id].index] = g
		}
	}
	for _, l := range s.links {
		if isStore(l.nodes[1].NodeConfig) {
			continue // it is on no side; settleStore sees to it
		}
		apart := of[l.nodes[0].index] != of[l.nodes[1].index]
		s.setCut(l, 0, apart)
		s.setCut(l, 1, apart)
	}
	return nil
}

// Nodes returns the names of all nodes in the order of Config.Nodes.
func (s *Sim) Nodes() []elector.NodeID { return s.ids() }

// View is one node as an omniscient onlooker sees it.
type View struct {
	Node       elector.NodeID
	Running    bool // a process is there; the fields below Disk mean something
	Paused     bool
	Disk       elector.Terms
	OnDisk     elector.Record
	Identity   elector.Identity
	Votes      bool // in an election without a record
	Record     elector.RecordStatus
	Voters     []elector.NodeID // that count for it
	Status     elector.Status   // times are the node's own
	Now        elector.Time     // the node's clock
	LeaseValid bool             // it is the leader, and would say so if asked now
	LeaseUntil time.Duration    // the end of its lease in simulated time
}

// View returns how a node stands now; it panics if there is no node of that name.
func (s *Sim) View(id elector.NodeID) View {
	n := s.byName[id]
	v := View{Node: id, Running: n.running(), Paused: n.paused, Disk: n.disk.terms(),
		Identity: n.identity(), Votes: !n.Elector.Observer()}
	if has, ok := n.disk.state.(ours.Disk); ok {
		v.OnDisk = has.Record
	}
	if n.running() {
		v.Record, v.Voters = n.elector.Record(), n.voters()
		v.Status, v.Now = n.elector.Status(), n.clock.at(s.now)
		v.LeaseValid, v.LeaseUntil = s.leads(n), n.leaseUntil
	}
	return v
}

// IssueAll lets the application at each node whose lease is valid issue the next LSN.
func (s *Sim) IssueAll() error {
	for _, n := range s.nodes {
		if n.awake() && s.now < n.leaseUntil {
			issued := n.elector.State().SeenLSN
			issued.Counter++
			s.step(n, elector.Issued{LSN: issued})
			s.check(s.spec.Issued(n.id, issued))
		}
	}
	return s.err
}

// Confirm asks a node for a proof that it leads. It returns the term that the node leads in, 0 if
// it does not lead, and what its clock shows.
func (s *Sim) Confirm(id elector.NodeID) (lsn.Term, elector.Time) {
	n := s.byName[id]
	if !n.awake() || n.elector.Confirmable() != nil {
		return 0, 0
	}
	at := n.clock.at(s.now)
	s.step(n, elector.Confirm{})
	return n.elector.State().Leader.Term, at
}

// Confirmed is the term that a node leads in, 0 if it does not lead, and what it has proven.
func (s *Sim) Confirmed(id elector.NodeID) (lsn.Term, elector.Time) {
	n := s.byName[id]
	if !n.awake() {
		return 0, 0
	}
	return n.elector.State().Leader.Term, n.elector.Confirmed()
}

// Inject delivers a message that no node sent, whoever it says it is from. What
// is paused or does not run hears nothing.
func (s *Sim) Inject(from, to elector.NodeID, m elector.Message) error {
	if n := s.byName[to]; n.awake() {
		in := algorithm.Received{From: from, Message: ours.Message{Message: m}}
		if peer := s.byName[from]; peer != nil {
			in.Identity = peer.identity()
		}
		s.observeMessage(EventDelivered, n.id, from, &happening{in: in})
		s.hear(n, in)
	}
	return s.err
}

// Tuning is what a running node measures of the link to its leader, and needs there.
func (s *Sim) Tuning(id elector.NodeID) detector.Tuning {
	tuning, _, _, _ := s.byName[id].elector.Quality()
	return tuning
}

// StoreAt is where the store's leader is, "" for nowhere, and who reaches it.
func (s *Sim) StoreAt() (leader elector.NodeID, reach []elector.NodeID) {
	if s.store.leader == nil {
		return "", nil
	}
	for _, n := range s.nodes {
		if n != s.store.node && n.link(s.store.node).open() {
			reach = append(reach, n.id)
		}
	}
	return s.store.leader.id, reach
}
