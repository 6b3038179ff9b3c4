package main_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
	"github.com/bmqelect/bmqelect/scouting"
)

// canvasser is a voter played by the test: it asks a real process for its vote,
// over a real link.
type canvasser struct {
	name cluster.NodeID
	mesh *netmesh.Mesh
	mu   sync.Mutex
	yes  map[lsn.Term]bool
	no   map[lsn.Term]scouting.Cause
	over lsn.Term // the highest that a refusal told: no term up to it gets a vote
}

func (c *canvasser) LinkUp(netmesh.PeerInfo)                   {}
func (c *canvasser) LinkDown(elector.NodeID, elector.Evidence) {}
func (c *canvasser) Died(elector.NodeID, elector.Proof)        {}
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

func (c *canvasser) ask(term lsn.Term) {
	c.mesh.Send("n1", cluster.DefaultGroup, elector.Message{Kind: elector.ElectionProposal,
		Term: term, SentAt: 1})
}

// got returns the vote for term and the cause of the newest refusal.
func (c *canvasser) got(term lsn.Term) (yes bool, no scouting.Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.yes[term], c.no[term]
}

func newCanvasser(t *testing.T, name cluster.NodeID, voter *procs.Node) *canvasser {
	c := &canvasser{name: name, yes: map[lsn.Term]bool{}, no: map[lsn.Term]scouting.Cause{}}
	var err error
	c.mesh, err = netmesh.Listen(netmesh.Config{
		Cluster: cluster.DefaultCluster, Node: name, Identity: uuid.New(), Boot: 1, Bind: "127.0.0.1:0",
	}, c)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, c.mesh.Close(ctx))
	})
	c.mesh.AddPeer("n1", voter.MeshAddr)
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
	s := play(t, 1, map[string]any{
		"voters": []string{"n1", "n2", "n3"}, "initial-wait": "1h", // it never stands itself
		"heartbeat-broadcast": "100ms", "heartbeat-miss-count": 5, "lease": "200ms",
	})
	voter := s.Nodes()[0]
	first, second := newCanvasser(t, "n2", voter), newCanvasser(t, "n3", voter)
	votes := 0
	for kill := range 20 {
		term := max(first.above(), second.above())
		if kill%2 == 1 {
			s.eventually("the first candidate gets the vote", func() bool {
				first.ask(term)
				yes, _ := first.got(term)
				return yes
			})
		} else {
			first.ask(term)
			time.Sleep(rand.N(5 * time.Millisecond)) // the moment of the kill is what varies
		}
		require.NoError(t, voter.Kill())
		require.NoError(t, voter.Start())
		s.eventually("the second candidate gets its answer", func() bool {
			second.ask(term)
			yes, no := second.got(term)
			return yes || no == scouting.CauseTerm
		})
		a, _ := first.got(term)
		b, _ := second.got(term)
		require.False(t, a && b, "two votes in term %d", term)
		if a || b {
			votes++
		}
		first, second = second, first
	}
	require.GreaterOrEqual(t, votes, 10, "terms in which somebody got the vote")
}
