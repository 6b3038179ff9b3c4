package netmesh

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/google/uuid"
)

// connection is what decides between two connections to one peer.
type connection struct {
	node     elector.NodeID
	identity uuid.UUID
	boot     uint64
	dialer   elector.NodeID
	dial     uint64 // counts the dials of the dialer's process
}

// standing is what becomes of a new connection.
type standing uint8

const (
	wins   standing = iota // it becomes the link
	loses                  // the link that is up is kept
	barred                 // it breaks a rule
)

// judge decides about a connection to p, the record of its node or nil. It is the
// one place where identities, boots and connections are compared. Called with
// Mesh.mu held.
func (p *peer) judge(c *connection) (standing, *refusal) {
	if p == nil || !p.known {
		return wins, nil
	}
	switch {
	case c.identity != p.identity && p.departed:
		return wins, nil // a new data directory, and nobody runs on the old one
	case c.identity != p.identity:
		// A second process under one name, or a data directory that was lost:
		// a misconfiguration, and no proof that the first one is gone.
		return barred, refuse(ReasonDuplicateName, "node %q has identity %s, and identity %s is known by that name%s",
			c.node, c.identity, p.identity, p.whereabouts())
	case c.boot < p.boot:
		return barred, refuse(ReasonStale, "node %q is at boot %d, and boot %d was seen already", c.node, c.boot, p.boot)
	case c.boot > p.boot, p.link == nil, p.link.ending():
		return wins, nil
	}
	return c.against(&p.link.connection)
}

// whereabouts is for the text of a refusal: where the process is that is known.
func (p *peer) whereabouts() string {
	if p.link == nil {
		return ""
	}
	return ", connected at " + p.link.info.Remote
}

// against decides between c and the link that is up, of the same two processes.
// Both ends come to the same result.
func (c *connection) against(kept *connection) (standing, *refusal) {
	if c.dialer == kept.dialer {
		if c.dial > kept.dial {
			return wins, nil
		}
		return loses, refuse(ReasonStale, "dial %d of node %q, and dial %d is connected", c.dial, c.dialer, kept.dial)
	}
	if c.dialer < kept.dialer {
		return wins, nil
	}
	return loses, refuse(ReasonAlreadyConnected, "the connection that node %q dialed is kept, not that of node %q",
		kept.dialer, c.dialer)
}
