package loop

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
)

// The kinds of notes.
const (
	noteWanted uint8 = iota + 1 // a part of a value is wanted
	notePart                    // a part of a value
	noteCall                    // a request for the leader
	noteAnswer                  // its answer
)

// noted acts on a note of a peer about an election.
func (d *Driver) noted(g *group, from elector.NodeID, n *netmesh.Note) {
	switch n.Kind {
	case noteWanted:
		if p, ok := parsePart(n.Body); ok {
			d.sendPart(g, from, p.hash, p.at)
		}
	case notePart:
		if p, ok := parsePart(n.Body); ok {
			d.arrived(g, from, &p)
		}
	}
}
