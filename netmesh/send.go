package netmesh

import "github.com/bmqelect/bmqelect/elector"

// Send queues msg for a peer, or for all that are connected if to is
// elector.AllMembers, and never blocks. All that waits for a peer leaves in as few frames
// as hold it. A message replaces an older one of its group and kind that still waits, and
// goes behind all others. The result is whether the message was queued, by at least one
// peer for AllMembers: false if there is no link, or if group or a name in msg is longer
// than MaxNameLength. True is no promise that it arrives.
func (m *Mesh) Send(to elector.NodeID, group string, msg elector.Message) bool {
	if badName(group) != "" || len(msg.Leader) > MaxNameLength || len(msg.Successor) > MaxNameLength {
		return false
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if to != elector.AllMembers {
		return m.peers[to].send(group, &msg)
	}
	sent := false
	for _, p := range m.peers {
		sent = p.send(group, &msg) || sent
	}
	return sent
}

// send is called with Mesh.mu held.
func (p *peer) send(group string, msg *elector.Message) bool {
	if p == nil || p.link == nil {
		return false
	}
	p.queue.push(group, msg)
	p.link.signal()
	return true
}
