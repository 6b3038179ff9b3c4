package kerneltest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/lsn"
)

// unlawful returns the logged transitions that the protocol forbids.
func unlawful(records []record) (found []string) {
	check := spec.NewCluster(nil, 0, spec.Checks{})
	for _, rec := range records {
		if rec.Moved == nil {
			continue
		}
		m, id := rec.Moved, elector.NodeID(rec.Node)
		t := replay.Transition(m.From, m.To, m.Reason)
		t.Term, t.Leader, t.Peer = m.Term, elector.NodeID(m.Leader), elector.NodeID(m.Peer)
		note := func(v *spec.Violation) {
			if v != nil {
				found = append(found,
					fmt.Sprintf("%s violated at %.4f: %s", v.Rule, float64(rec.At)/1e9, v.Detail))
			}
		}
		if t.Reason == elector.Started {
			check.Gone(id)
			note(check.Booted(id, elector.Terms{Entered: t.Term, Reserved: t.Term})) // at least
		}
		note(check.Transition(id, t))
	}
	return found
}

func TestTheSpecificationFindsUnlawfulTransitions(t *testing.T) {
	move := func(node, from, to, reason string, term uint64) record {
		r := record{Node: node, Kind: moved, Moved: &transition{From: from, To: to, Reason: reason}}
		r.Moved.Term, r.Moved.Leader = lsn.Term(term), node
		return r
	}
	lead := func(node string, term uint64) []record {
		return []record{
			move(node, "DORMANT", "FOLLOWER", "STARTED", term-1),
			move(node, "FOLLOWER", "CANDIDATE", "PROPOSED", term),
			move(node, "CANDIDATE", "LEADER", "ELECTED", term),
		}
	}
	require.Empty(t, unlawful(append(lead("a", 5), lead("b", 6)...)))
	for name, c := range map[string]struct {
		history []record
		want    string
	}{
		"two leaders in a term": {append(lead("a", 5), lead("b", 5)...), "I1"},
		"a term that falls":     {append(lead("a", 5), lead("a", 4)...), "I3"},
		"no election": {append(lead("a", 5)[:1:1],
			move("a", "FOLLOWER", "LEADER", "ELECTED", 5)), "transition"},
	} {
		t.Run(name, func(t *testing.T) {
			found := unlawful(c.history)
			require.NotEmpty(t, found)
			require.Contains(t, found[0], c.want)
		})
	}
}
