package loop

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
)

// The kinds of notes. Their bodies are msgpack arrays without names, as the mesh's frames.
const (
	noteWanted uint8 = iota + 1 // parts of a value are wanted
	notePart                    // part of a value
	noteCall                    // a request for the leader
	noteAnswer                  // its answer
)

// noted acts on a note of a peer about an election.
func (d *Driver) noted(g *group, from elector.NodeID, n *netmesh.Note) {
	switch n.Kind {
	case noteWanted, notePart:
	}
}
