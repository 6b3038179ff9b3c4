package main_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
	"github.com/bmqelect/bmqelect/scouting"
)

// canvasser is a voter played by the test: it asks a real process for its vote,
// over a real link.
type canvasser struct {
	nodes.Silent
	mesh *netmesh.Mesh
	mu   sync.Mutex
	yes  map[lsn.Term]bool
	no   map[lsn.Term]scouting.Cause
	over lsn.Term // the highest that a refusal told: no term up to it gets a vote
}

func (c *canvasser) Received(_ elector.NodeID, _ string, m elector.Message) {
	if m.Kind != elector.ElectionProposalResponse {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.WillVote {
		c.yes[m.ProposedTerm] = true
	} else {
		c.no[m.ProposedTerm] = m.Cause
		c.over = max(c.over, m.Term)
	}
}

// ask asks for a vote, and reports whether there is a link.
func (c *canvasser) ask(term lsn.Term) bool {
	return c.mesh.Send("n1", cluster.DefaultGroup, elector.Message{Kind: elector.ElectionProposal,
		Term: term, SentAt: 1})
}

// got returns whether term got a vote, and the cause of its newest refusal.
func (c *canvasser) got(term lsn.Term) (yes bool, no scouting.Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.yes[term], c.no[term]
}

func newCanvasser(t *testing.T, name cluster.NodeID, voter *procs.Node) *canvasser {
	c := &canvasser{yes: map[lsn.Term]bool{}, no: map[lsn.Term]scouting.Cause{}}
	as := netmesh.Config{Cluster: cluster.DefaultCluster, Node: name}
	c.mesh = nodes.Intrude(t, voter, as, c)
	return c
}

// above returns a term above all that the voter told.
func (c *canvasser) above() lsn.Term {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over + 1
}

// A process that is killed twenty times, at once after its vote or at a random
// moment around it, never votes for two candidates in one term. It votes again as soon as
// somebody asks above the term that one refusal told.
func TestProcessRestartedTwentyTimesVotesOnceInATerm(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"after its vote", "around it"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			s := nodes.Play(t, 1, map[string]any{
				"voters": []string{"n1", "n2", "n3"}, "initial-wait": "1h", // it never stands itself
				"heartbeat-broadcast": "100ms", "heartbeat-miss-count": 5, "lease": "200ms",
			})
			voter := s.Nodes()[0]
			first, second := newCanvasser(t, "n2", voter), newCanvasser(t, "n3", voter)
			for range 10 {
				term := max(first.above(), second.above())
				s.Eventually("it has links", func() bool { return first.ask(term) })
				if when == "around it" {
					time.Sleep(rand.N(5 * time.Millisecond)) // the moment of the kill is what varies
				} else {
					s.Eventually("the first candidate gets the vote", func() bool {
						first.ask(term)
						yes, _ := first.got(term)
						return yes
					})
				}
				require.NoError(t, voter.Kill())
				require.NoError(t, voter.Start())
				s.Eventually("the second candidate gets its answer", func() bool {
					second.ask(term)
					yes, no := second.got(term)
					return yes || no == scouting.CauseTerm
				})
				a, _ := first.got(term)
				b, _ := second.got(term)
				require.False(t, a && b, "two votes in term %d", term)
				first, second = second, first
			}
		})
	}
}
