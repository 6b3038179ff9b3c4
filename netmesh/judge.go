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
	process  uint64 // random number of the process; 0 if it tells none
	dialer   elector.NodeID
	dial     uint64 // counts the dials of the dialer's process
}

// standing is what becomes of a new connection.
type standing uint8

const (
	wins    standing = iota // it becomes the link
	loses                   // the link that is up is kept
	barred                  // it breaks a rule
	doubted                 // the process that is linked can be asked whether it is gone
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
	case c.identity != p.identity: // §6.9
		// A second process under one name, or a data directory that was lost:
		// a misconfiguration, and no proof that the first one is gone.
		return barred, refuse(ReasonDuplicateName, "node %q has identity %s, and identity %s is known by that name%s",
			c.node, c.identity, p.identity, p.whereabouts())
	case c.boot < p.boot || c.boot == p.boot && c.twin(p.process) || c.process != 0 && c.process == p.copy:
		return barred, p.copied(c)
	case c.boot > p.boot && p.link != nil:
		// A start on the same directory ends the old process first. If that one
		// lives, the newcomer has a copy, and its word must not count.
		return doubted, refuse(ReasonAlreadyConnected, "node %q is connected at boot %d%s, and boot %d must wait until that ends",
			c.node, p.boot, p.whereabouts(), c.boot)
	case c.boot > p.boot, p.link == nil, p.link.ending():
		return wins, nil
	}
	return c.against(&p.link.connection)
}

// twin reports whether c surely leads to another process than the one of that
// number. Old builds tell no number.
func (c *connection) twin(process uint64) bool {
	return c.process != 0 && process != 0 && c.process != process
}

// copied refuses c because its data directory cannot be the one that the known
// process runs on: each start on a directory raises its boot counter.
func (p *peer) copied(c *connection) *refusal {
	return refuse(ReasonCopied, "node %q comes at boot %d of identity %s, and another process was seen at boot %d of it%s: "+
		"the data directory was copied, or restored from a copy", c.node, c.boot, c.identity, p.boot, p.whereabouts())
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
