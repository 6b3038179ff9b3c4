package netmesh

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// Forget lets any process take the name of node from now on, also one with another
// data directory: it is for a machine that is gone for good, of which the network
// showed no proof. It fails if a link to it stands, or if the loss of the last one,
// or this mesh, is younger than quiet: until then the process may hold what peers
// promised to it. To forget what is not known is no error.
func (m *Mesh) Forget(node elector.NodeID, quiet time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.peers[node]
	if p == nil {
		return nil
	}
	if p.link != nil {
		return fmt.Errorf("the process of node %q lives: there is a link to it%s", node, p.whereabouts())
	}
	if since := time.Since(p.status.since); since < quiet {
		return fmt.Errorf("the link to node %q is down for %s only; after %s nothing that was promised to it is left",
			node, since.Round(time.Millisecond), quiet)
	}
	if p.known {
		m.log.Info("member forgotten: the next process of its name is taken in",
			"peer", node, "identity", p.identity, "boot", p.boot)
	}
	p.known, p.departed, p.copy, p.forgotten = false, false, 0, true
	m.findings.forget(node, false, true)
	return nil
}
