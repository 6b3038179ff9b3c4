package netmesh

import (
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/elector"
)

const (
	maxIdentities = 8  // that are remembered of a name
	maxNames      = 64 // whose identities are remembered
)

// outdated refuses a data directory that another one has replaced, since it lacks the votes of
// the other: §6.10. Called with mu held.
func (m *Mesh) outdated(c *connKey) *refusal {
	if m.disowner != "" && c.node != m.disowner {
		return m.disowned()
	}
	all := m.identities[c.node]
	i, last := slices.Index(all, c.identity), len(all)-1
	if i < 0 || i == last {
		return nil
	}
	return refuse(ReasonOutdated, "node %q comes with identity %s, and identity %s was used under "+
		"that name later: its data directory was replaced, and is put back", c.node, c.identity, all[last])
}

// remember adds the identity of a link to those that its name had, and returns them, or nil if
// nothing changed. Without TLS a stranger's identity must not make the next start of a living
// process outdated, so it counts only if the process before is known to be gone. Called with mu
// held.
func (m *Mesh) remember(p *peer, l *link) []uuid.UUID {
	all := m.identities[p.node]
	known := len(all) > 0
	if !m.cfg.isVoter(p.node) || known && all[len(all)-1] == l.identity ||
		known && !l.encrypted && !p.processGone && !p.forgotten ||
		!known && len(m.identities) >= maxNames {
		return nil
	}
	all = slices.Clone(all)
	if p.known && !slices.Contains(all, p.identity) {
		all = append(all, p.identity)
	}
	isIt := func(id uuid.UUID) bool { return id == l.identity }
	all = append(slices.DeleteFunc(all, isIt), l.identity)
	all = all[max(len(all)-maxIdentities, 0):]
	m.identities[p.node] = all
	return all
}

// obey ends all links if a voter says that the data directory of this process is outdated. Only
// TLS shows that it is a voter who says so. The process takes part again once that voter accepts a
// link.
func (m *Mesh) obey(voter elector.NodeID, h *handshake, err error) {
	var said *refusal
	if !errors.As(err, &said) || !said.byPeer || said.Reason != ReasonOutdated || h.shown == nil ||
		!m.cfg.isVoter(voter) || !m.cfg.TLS().Lists(string(voter)) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disowner = voter
	for l := range m.live {
		l.end(elector.EvidenceLocal, m.disowned())
	}
}

func (m *Mesh) disowned() *refusal {
	return refuse(reasonRequested, "node %s takes no part: its data directory is outdated, says node %s",
		m.cfg.Node, m.disowner)
}
