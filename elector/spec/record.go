package spec

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// keeps is what a node has of its election's record: §15.
type keeps struct {
	accepted elector.Record // the newest, on its disk or on its way there
	before   elector.Record // the one that was accepted before this step
	answers  bool           // this step lets messages go that were kept back for the disk
	stored   lsn.LSN        // of the newest on its disk
	reads    bool           // it leads, and a read as leader would return something
	started  bool           // it has started since its disk is known
}

// version is a record as a leader wrote it.
type version struct {
	elector.Record
	from      lsn.LSN                             // the one that its writer had accepted
	stored    map[elector.NodeID]elector.Identity // who said in its term that it is on disk
	committed bool
}

// Emergency notes that data directories were declared lost: they are voters of no record.
func (c *Cluster) Emergency(lost ...elector.Voter) { c.lost = append(c.lost, lost...) }

// counted returns who counts by a record, and how many are a quorum: §15.7. A voter is its data
// directory, not its name: §15.13.
func (c *Cluster) counted(r *elector.Record) (counts func(v *node) bool, quorum int) {
	if r.LSN.IsZero() {
		return func(v *node) bool { return v.voter }, c.quorum
	}
	voters := slices.DeleteFunc(r.Voters.Voters(), func(v elector.Voter) bool {
		return slices.Contains(c.lost, v)
	})
	return func(v *node) bool {
		return v.identity != (elector.Identity{}) &&
			slices.Contains(voters, elector.Voter{Node: v.id, Identity: v.identity})
	}, elector.Majority(len(voters))
}

// disk follows the record on the disk of a node, which never becomes an older one.
func (n *node) disk(c *Cluster, in elector.Input) *Violation {
	n.before = n.accepted
	_, n.answers = in.(elector.Persisted)
	switch in := in.(type) {
	case elector.Start:
		r, k := in.Record, &n.keeps
		if !k.started { // nothing is known of it
			if _, ok := c.written[r.LSN]; !ok && !r.LSN.IsZero() {
				c.written[r.LSN] = &version{Record: r}
			}
		} else if r.LSN.Less(k.stored) || k.accepted.LSN.Less(r.LSN) {
			return Broken("V1", "%s starts with record %s, but its disk had %s and was to get %s",
				n.id, r.LSN, k.stored, k.accepted.LSN)
		}
		*k = keeps{accepted: r, stored: r.LSN, started: true}
	case elector.Persisted:
		if n.stored.Less(in.Record) {
			n.stored = in.Record
		}
	}
	return nil
}

// accepts checks a record that a node accepts: it is newer, and what the leader of its term wrote.
func (c *Cluster) accepts(s *Step, n *node) *Violation {
	r, old := s.Effects.Accept, n.accepted.LSN
	if r.LSN.IsZero() {
		return nil
	}
	known, ok := c.written[r.LSN]
	switch {
	case !old.Less(r.LSN):
		return Broken("V1", "%s accepted record %s after %s", n.id, r.LSN, old)
	case s.State.Term < r.LSN.Term:
		return Broken("V1", "%s accepted record %s in term %d", n.id, r.LSN, s.State.Term)
	case n.accepted.Founded && r.Lineage != n.accepted.Lineage:
		return Broken("V1", "%s accepted %q of another lineage than %q", n.id, r, n.accepted)
	case !ok && r.Founded && !n.accepted.Founded && !c.stores(n, c.written[old]):
		return Broken("V1", "%s founds %q on %q, which is not committed", n.id, r, n.accepted)
	case ok && known.Record != r:
		return Broken("V1", "%s accepted %q, but %q was written", n.id, r, known.Record)
	case !ok && (s.State.Role != elector.Leader || s.State.Leader.Term != r.LSN.Term):
		return Broken("V1", "%s accepted %q, which nobody wrote", n.id, r)
	case !ok:
		c.written[r.LSN] = &version{Record: r, from: old}
	}
	n.accepted = r
	return nil
}

// tells checks what a message says of records when it leaves a node.
func (c *Cluster) tells(s *Step, n *node, e *elector.Envelope) *Violation {
	m := &e.Message
	known, ok := c.written[m.Record]
	switch {
	case m.Kind == elector.LeaderHeartbeat && !m.Committed.IsZero():
		return c.commits(s.Now, n, m)
	case m.Kind == elector.RecordOffer && (!ok || known.Record != *m.Offer):
		return Broken("V1", "%s offers %q, which nobody wrote", n.id, *m.Offer)
	case m.WillVote && m.Record.Less(n.accepted.LSN) && !n.answers: // it was true when it was said
		return Broken("V1", "%s says yes to %s, which has record %s, but accepted %s",
			n.id, e.To, m.Record, n.accepted.LSN)
	case m.Kind != elector.HeartbeatAck && m.Kind != elector.RecordAck || m.Record.IsZero():
		return nil
	case n.stored.Less(m.Record):
		return Broken("V1", "%s acknowledged record %s, but has %s on its disk",
			n.id, m.Record, n.stored)
	case m.Entered > m.Term || !ok || m.Record.Term != m.Term:
		return nil // it does not count for commit
	case n.voteTerm > m.Term && n.vote != e.To:
		return Broken("V1", "%s acknowledged record %s in term %d, but voted for %s in term %d",
			n.id, m.Record, m.Term, n.vote, n.voteTerm)
	case known.stored == nil:
		known.stored = map[elector.NodeID]elector.Identity{}
	}
	known.stored[n.id] = n.identity
	return nil
}

// commits checks that a record which a leader calls committed is: a quorum of its voters has it on
// disk, and said so in its term (V1b). Of this and any other committed record the newer one
// descends from the older one (V1a). And no other leader reads the older one from now on (V3).
func (c *Cluster) commits(now time.Duration, n *node, m *elector.Message) *Violation {
	v, ok := c.written[m.Committed]
	switch {
	case ok && v.committed:
		return nil
	case !ok || n.accepted.LSN.Less(m.Committed) || m.Committed.Term != m.Term:
		return Broken("V1", "%s of term %d says that record %s is committed, which it did not write",
			n.id, m.Term, m.Committed)
	}
	if !c.stores(n, v) {
		return Broken("V1", "%s commits %q, which no quorum has on disk", n.id, v.Record)
	}
	low, high := c.committed, v.LSN
	if high.Less(low) {
		low, high = high, low
	}
	if !c.descends(high, low) {
		return Broken("V1", "records %s and %s are committed, and neither descends from the other",
			low, high)
	}
	v.committed, c.committed = true, high
	for _, o := range c.order {
		if o != n && o.reads && o.leaseUntil > now && !c.checks.NoLeases {
			return Broken("V3", "%s commits record %s, while %s reads an older one until %s",
				n.id, v.LSN, o.id, o.leaseUntil)
		}
	}
	return nil
}

// stores reports whether a quorum of its voters has a record on disk, and said so.
func (c *Cluster) stores(writer *node, v *version) bool {
	have := 0
	counts, quorum := c.counted(&v.Record)
	for _, o := range c.order { // the writer may have written the next one in the same step
		if counts(o) && (o == writer && !o.stored.Less(v.LSN) || v.stored[o.id] == o.identity) {
			have++
		}
	}
	return have >= quorum
}

// descends reports whether a record descends from an older one.
func (c *Cluster) descends(from, old lsn.LSN) bool {
	for old.Less(from) && c.written[from] != nil {
		from = c.written[from].from
	}
	return from == old
}

// shows checks that a node shows committed records only, and as leader in sync, under a valid
// lease, the newest (V3).
func (c *Cluster) shows(s *Step, n *node) *Violation {
	shown := s.State.Record.Shown.LSN
	if v := c.written[shown]; !shown.IsZero() && (v == nil || !v.committed) {
		return Broken("V3", "%s shows record %s, which is not committed", n.id, shown)
	}
	n.reads = s.State.Role == elector.Leader &&
		(s.State.Leader.Writing.InSync || n.accepted.LSN.IsZero())
	if n.reads && n.leaseUntil > s.Now && shown != c.committed && !c.checks.NoLeases {
		return Broken("V3", "%s reads record %s, but %s is committed", n.id, shown, c.committed)
	}
	return nil
}
