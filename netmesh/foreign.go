package netmesh

import (
	"sync"

	"github.com/bmqelect/bmqelect/elector"
)

// ForeignHandler is a Handler that takes messages of another algorithm than the elector's,
// for demonstrations. Without it they are dropped: the link stays, over which each end is told what
// the other runs.
type ForeignHandler interface {
	// ReceivedForeign hands over what the peer gave to Mesh.SendForeign; body is the handler's.
	// It comes in turn with Handler's calls.
	ReceivedForeign(peer elector.NodeID, body []byte)
}

const (
	maxForeign        = 16 << 10 // bytes of one message
	maxForeignWaiting = 1024     // that wait for one peer
)

// foreignMessage is a message that the mesh does not look into.
type foreignMessage struct {
	Body []byte
}

// SendForeign is Send for a message that is not the elector's, in the caller's own encoding,
// of at most 16 KiB. Each one is delivered by itself, in order; of more than 1,024 that wait
// for a peer the oldest are dropped. Members of another build may end the link.
func (m *Mesh) SendForeign(to elector.NodeID, body []byte) bool {
	if len(body) > maxForeign {
		return false
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if to != elector.AllMembers {
		return m.peers[to].sendForeign(body)
	}
	sent := false
	for _, p := range m.peers {
		sent = p.sendForeign(body) || sent
	}
	return sent
}

// foreignQueue holds what waits for one peer.
type foreignQueue struct {
	mu     sync.Mutex
	bodies [][]byte
}

func (q *foreignQueue) push(body []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.bodies) == maxForeignWaiting {
		q.bodies = q.bodies[1:]
	}
	q.bodies = append(q.bodies, body)
}

func (q *foreignQueue) take() [][]byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	bodies := q.bodies
	q.bodies = nil
	return bodies
}

// sendForeign sends what waits for the peer beside the elector's messages.
func (l *link) sendForeign() error {
	for _, body := range l.p.foreign.take() {
		if err := l.send(frameForeign, &foreignMessage{body}); err != nil {
			return err
		}
	}
	return nil
}

// deliverForeign is deliver for a message that is not the elector's.
func (l *link) deliverForeign(body []byte) error {
	if len(body) > maxForeign {
		return refuse(ReasonGarbage, "a foreign message of %d bytes, more than %d", len(body), maxForeign)
	}
	if l.m.foreign == nil {
		return nil
	}
	l.p.callbacks.lock()
	defer l.p.callbacks.unlock()
	if l.p.sameProcess(l) && (!l.current() || !isClosed(l.stop)) {
		l.m.foreign.ReceivedForeign(l.p.node, body)
	}
	return nil
}
