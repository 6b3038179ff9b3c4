package loop

import (
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/elector"
)

// IsVoter reports whether a node may vote or lead in some election, as far as this node knows: by
// the configuration, as a voter of the newest record that this node accepted, or because it was the
// last to lead. It is safe for concurrent use and returns at once.
func (c *common) IsVoter(node elector.NodeID) bool {
	return slices.Contains(c.Voters, node) || (*c.others.Load())[node]
}

// noteVoters takes up those who vote or lead in an election of late. Their processes count from
// then on: promises are made to them.
func (d *Driver) noteVoters(g *group) {
	isNew := func(id elector.NodeID) bool { return id != "" && !d.IsVoter(id) }
	if !isNew(g.machine.LastLeader()) && !slices.ContainsFunc(g.machine.Electorate(), isNew) {
		return
	}
	known, now := *d.others.Load(), map[elector.NodeID]bool{}
	for _, g := range d.groups {
		for _, id := range append(slices.Clone(g.machine.Electorate()), g.machine.LastLeader()) {
			if id != "" && !slices.Contains(d.Voters, id) {
				now[id] = true
			}
		}
	}
	d.others.Store(&now)
	for id := range now {
		if peer := d.up[id]; peer != nil && !known[id] {
			d.noteProcess(peer)
		}
	}
	maps.DeleteFunc(d.processes, func(id elector.NodeID, _ process) bool { return !d.IsVoter(id) })
}

// identity is that of the data directory of a linked peer.
func (d *Driver) identity(peer elector.NodeID) elector.Identity {
	if p := d.up[peer]; p != nil {
		return elector.Identity(p.Identity)
	}
	return elector.Identity(uuid.Nil)
}
