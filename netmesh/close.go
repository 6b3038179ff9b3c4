package netmesh

import (
	"context"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// Close says goodbye on all links, waits until their ends are reported, closes
// the listener last and returns when no goroutine is left. If ctx ends first, connections
// are reset and the error says so; what is left then ends as soon as the handler
// returns. Close may be called any number of times, also at the same time.
func (m *Mesh) Close(ctx context.Context) error {
	m.mu.Lock()
	first := !m.closing
	m.closing = true
	m.mu.Unlock()
	if first {
		go m.shutdown()
	}
	select {
	case <-m.done:
		return nil
	case <-ctx.Done():
		m.abandon()
		return fmt.Errorf("netmesh: node %s: close: %w", m.cfg.Node, ctx.Err())
	}
}

// shutdown closes everything, the listener last: as long as this process can
// be anybody's leader, nobody's dial is refused: a refusal is half of a proof of death.
func (m *Mesh) shutdown() {
	m.cancel()
	m.mu.RLock()
	for l := range m.live {
		l.end(elector.EvidenceLocal, refuse(ReasonClosing, "node %s is leaving", m.cfg.Node))
	}
	for conn := range m.pending {
		_ = conn.SetReadDeadline(time.Now().Add(farewellTime)) // fails on a dead connection, as the next read does
	}
	m.mu.RUnlock()
	m.links.Wait()
	m.dropEvidence()
	_ = m.listener.Close() // nothing to be done about a failure
	m.others.Wait()
	close(m.done)
}

func (m *Mesh) dropEvidence() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.peers {
		p.dropEvidence()
	}
}

// abandon resets what a graceful close is still waiting for.
func (m *Mesh) abandon() {
	m.dropEvidence()
	m.mu.RLock()
	defer m.mu.RUnlock()
	for l := range m.live {
		l.breakOff()
	}
	for conn := range m.pending {
		reset(conn)
	}
	_ = m.listener.Close()
}
