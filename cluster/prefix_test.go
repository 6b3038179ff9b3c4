package cluster_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// idle is PrefixIdle of these tests; an election is surely closed after twice that.
const idle = time.Minute

// jobs lets elections whose names begin with job/ open by themselves, and close again.
var jobs = clustertest.Configure(func(cfg *cluster.Config) {
	cfg.Prefixes = map[string]cluster.ElectionConfig{
		"job/": {AwaitCampaign: true}, "job/vote/": {NotCandidate: true},
	}
	cfg.PrefixIdle = idle
})

// has returns the nodes on which an election is open.
func (c *testCluster) has(group string) (ids []cluster.NodeID) {
	for _, id := range c.Running() {
		if _, err := c.Node(id).Lookup(group); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func (c *testCluster) openOn(id cluster.NodeID, group string) *cluster.Election {
	c.t.Helper()
	e, err := c.Node(id).Open(group)
	require.NoError(c.t, err)
	return e
}

func TestAnElectionOpensOnFirstUseAndClosesWhenNobodyUsesIt(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		e := c.openOn("a", "job/1")
		time.Sleep(election)
		require.Equal(t, []cluster.NodeID{"a"}, c.has("job/1"), "nobody campaigns")
		l, err := e.Campaign(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Equal(t, three, c.has("job/1"))
		require.Equal(t, cluster.NodeID("a"), c.Leader("job/1"))
		follower, err := c.Node("b").Lookup("job/1")
		require.NoError(t, err)
		time.Sleep(10 * idle)
		require.Equal(t, three, c.has("job/1"), "somebody leads")
		require.Equal(t, "FOLLOWER", follower.Status().Role, "it was not closed meanwhile")
		require.NoError(t, l.Context().Err())

		l.Release()
		require.NoError(t, e.Close(t.Context()))
		time.Sleep(idle / 2)
		require.Equal(t, []cluster.NodeID{"b", "c"}, c.has("job/1"), "they may be needed again soon")
		time.Sleep(2 * idle)
		require.Empty(t, c.has("job/1"))

		again, err := c.openOn("b", "job/1").Campaign(t.Context())
		require.NoError(t, err)
		require.Greater(t, again.Term(), l.Term(), "terms go on above those that were forgotten")
		require.Equal(t, cluster.NodeID("b"), c.Leader("job/1"))
	}, jobs)
}

func TestWhatNodesHoldOrCampaignInIsNotIdle(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		l, err := c.openOn("a", "job/1").Campaign(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		c.openOn("b", "job/1") // which another opened before
		onC, err := c.Node("c").Lookup("job/1")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		waits := make(chan error, 1)
		go func() { _, err := onC.Campaign(ctx); waits <- err }()
		c.Partition([]cluster.NodeID{"a"}, []cluster.NodeID{"b"}, []cluster.NodeID{"c"})
		time.Sleep(3 * idle)
		require.Error(t, l.Context().Err())
		require.Equal(t, three, c.has("job/1"))
		cancel()
		require.ErrorIs(t, <-waits, context.Canceled)
		l.Release()
		time.Sleep(3 * idle)
		require.Equal(t, []cluster.NodeID{"a", "b"}, c.has("job/1"))
		_, err = onC.Campaign(t.Context())
		require.ErrorIs(t, err, cluster.ErrClosed)
		require.EqualError(t, err,
			`campaign of node c in election "job/1": the election is closed on this node`)
	}, jobs)
}

// Whoever leads says so as long as it leads, and nodes hand over when they close: messages must not
// open what is being closed everywhere.
func TestAnElectionThatIsClosedEverywhereStaysClosed(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		elections := map[cluster.NodeID]*cluster.Election{}
		for _, id := range three {
			elections[id] = c.openOn(id, "job/1")
			go elections[id].Campaign(t.Context())
		}
		time.Sleep(election)
		leader := c.leader("job/1").ID()
		for _, id := range append([]cluster.NodeID{leader}, c.others(c.Node(leader))...) {
			require.NoError(t, elections[id].Close(t.Context()))
			time.Sleep(5 * time.Second)
		}
		require.Empty(t, c.has("job/1"))
		uninvited := func() (all []map[string]uint64) {
			for _, id := range three {
				all = append(all, c.Node(id).Stats().Uninvited)
			}
			return all
		}
		before := uninvited()
		require.NotZero(t, c.Node(leader).Stats().Uninvited["shut"], "its successor has led meanwhile")
		time.Sleep(2 * idle)
		require.Empty(t, c.has("job/1"))
		require.Equal(t, before, uninvited(), "no more messages came")
	}, jobs)
}

func TestAnElectionOfWhichMessagesComeIsNotIdle(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		for range 5 {
			c.Node("a").Hear("b", "job/1", elector.Message{Kind: elector.NodeUnavailable})
			require.Empty(t, c.has("job/1"))
			stands := elector.Message{Kind: elector.ElectionScouting, Term: 1, SentAt: 1}
			c.Node("a").Hear("b", "job/1", stands)
			for range 5 {
				time.Sleep(idle / 2)
				require.NotEmpty(t, c.has("job/1"))
				c.Node("a").Hear("b", "job/1", elector.Message{Kind: elector.NodeUnavailable})
			}
			time.Sleep(2 * idle)
			require.Empty(t, c.has("job/1"))
		}
	}, jobs, clustertest.Down("b", "c"))
}

func TestMessagesOpenOnlyWhatTheyMay(t *testing.T) {
	scouting := elector.Message{Kind: elector.ElectionScouting, Term: 1, SentAt: 1, Sequence: 1}
	goodbye := elector.Message{Kind: elector.NodeUnavailable, Term: 1}
	for _, test := range []struct {
		name, group string
		from        cluster.NodeID
		message     elector.Message
		why         string // "": nothing is counted
		opens       bool
	}{
		{"a voter stands", "job/1", "b", scouting, "", true},
		{"a voter stands, longer prefix", "job/vote/1", "b", scouting, "", true},
		{"a voter says goodbye", "job/1", "b", goodbye, "", false},
		{"another name", "other", "b", scouting, "no-prefix", false},
		{"no voter", "job/1", "x", scouting, "observer", false},
		{"closed a moment ago", "job/closed", "b", scouting, "shut", false},
		{"closed before it opened", "job/shut", "b", scouting, "shut", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			withCluster(t, three, func(t *testing.T, c *testCluster) {
				n := c.Node("a")
				require.NoError(t, c.openOn("a", "job/closed").Close(t.Context()))
				n.Shut("job/shut")
				n.Hear(test.from, test.group, test.message)
				e, err := n.Lookup(test.group)
				require.Equal(t, test.opens, err == nil)
				if test.opens {
					require.Equal(t, test.group == "job/1", e.Status().Candidate)
				}
				for why, count := range n.Stats().Uninvited {
					require.Equal(t, why == test.why, count == 1, why)
				}
				if test.opens {
					n.Hear(test.from, "job/2", scouting)
					require.EqualValues(t, 1, n.Stats().Uninvited["full"])
					c.openOn("a", test.group)
					n.Hear(test.from, "job/2", scouting)
					require.Contains(t, c.has("job/2"), cluster.NodeID("a"), "what is held does not count")
				}
			}, jobs, clustertest.Down("b", "c"),
				clustertest.Configure(func(cfg *cluster.Config) { cfg.PrefixLimit = 1 }))
		})
	}
}

func TestANameWithoutAPrefixIsNotOpened(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		_, err := c.Node("a").Open("other")
		require.ErrorIs(t, err, cluster.ErrNotOpen)
		require.EqualError(t, err, `open election "other": the name must begin with one of `+
			`the configured prefixes (job/, job/vote/): no election of that name is open`)
		found, err := c.Node("a").Open(cluster.DefaultGroup)
		require.NoError(t, err, "it is open")
		require.Equal(t, cluster.DefaultGroup, found.Group())
	}, jobs)
}

// A voter that closes an election as idle, and opens it again because of a message, has not
// forgotten its vote.
func TestAnIdleElectionKeepsItsVote(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		n := c.Node("a")
		votes := func(candidate cluster.NodeID, term lsn.Term) bool {
			ask := elector.Message{Kind: elector.ElectionProposal, Term: term, SentAt: 1}
			n.Hear(candidate, "job/1", ask)
			time.Sleep(election) // past the embargo
			before := n.Stats().VotesGiven.Yes
			n.Hear(candidate, "job/1", ask)
			time.Sleep(time.Millisecond) // until it is on disk
			return n.Stats().VotesGiven.Yes > before
		}
		require.True(t, votes("b", 7))
		time.Sleep(3 * idle)
		require.Empty(t, c.has("job/1"))
		require.False(t, votes("c", 7), "it went to b")
		require.True(t, votes("c", 8))
	}, jobs, clustertest.Down("b", "c"))
}

// A quorum counts on a record: nobody forgets it because the election is closed.
func TestAClosedElectionKeepsItsRecord(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		l, err := c.openOn("a", "job/1").Campaign(t.Context())
		require.NoError(t, err)
		_, err = l.Publish(t.Context(), []byte("kept"))
		require.NoError(t, err)
		l.Release()
		found, err := c.Node("a").Lookup("job/1")
		require.NoError(t, err)
		require.NoError(t, found.Close(t.Context()))
		time.Sleep(3 * idle)
		require.Empty(t, c.has("job/1"))
		again, err := c.openOn("b", "job/1").Campaign(t.Context())
		require.NoError(t, err)
		r, err := again.Record(within(t, time.Minute))
		require.NoError(t, err)
		require.Equal(t, "kept", string(r.Value))
		found, err = c.Node("b").Lookup("job/1")
		require.NoError(t, err)
		require.NotEmpty(t, c.Leader("job/1"))

		again.Release()
		require.NoError(t, found.Close(t.Context()))
		c.Stop("b")
		s, err := store.OpenExisting(c.DataDir("b"))
		require.NoError(t, err)
		kept, err := s.Group("job/1")
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.Equal(t, "kept", string(kept.Value))
		require.Equal(t, kept.Terms.Entered, kept.Terms.Reserved, "unused terms were given back")
	}, jobs)
}

// A thousand elections, led and closed, leave no memory behind.
func TestClosedElectionsLeaveNoMemory(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		next := 0
		cycle := func(count int) {
			for range count / 100 {
				var open []*cluster.Election
				for range 100 {
					next++
					e := c.openOn("a", fmt.Sprint("job/", next))
					go func() {
						if l, err := e.Campaign(t.Context()); err == nil {
							<-l.Context().Done()
							l.Release()
						}
					}()
					open = append(open, e)
				}
				time.Sleep(election)
				for _, e := range open {
					require.Equal(t, three, c.has(e.Group()))
					require.Equal(t, cluster.NodeID("a"), e.Status().Leader)
					require.NoError(t, e.Close(t.Context()))
				}
			}
			time.Sleep(3 * idle)
			for _, n := range c.nodes() {
				require.Len(t, n.Elections(cluster.Selection{}), 1)
			}
		}
		heap := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		cycle(500)
		before := heap()
		if raceDetector { // which takes long, and memory of its own
			return
		}
		cycle(1000)
		grown := heap() - before
		// An election takes more than 10 kB on three nodes. Buffers with a bound grow, too.
		require.Less(t, grown, int64(3_000_000), "bytes that are left of 1000 elections on three nodes")
	}, jobs)
}

// The leaders of many elections are spread, and those of a node that dies over all that are left,
// although with these timers each leader names who comes after it.
func TestLeadersOfAPrefixAreSpread(t *testing.T) {
	many := clustertest.Configure(func(cfg *cluster.Config) {
		cfg.Prefixes = map[string]cluster.ElectionConfig{"many/": {Timing: elector.LAN()}}
	})
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		const count = 90
		for _, id := range three {
			for i := range count {
				c.openOn(id, fmt.Sprintf("many/%d", i))
			}
		}
		led := func() map[cluster.NodeID]int {
			by := map[cluster.NodeID]int{}
			for i := range count {
				by[c.Leader(fmt.Sprintf("many/%d", i))]++
			}
			return by
		}
		time.Sleep(20 * time.Second)
		before := led()
		require.Zero(t, before[""])
		dead := three[0]
		for _, id := range three {
			if before[id] > before[dead] {
				dead = id
			}
		}
		c.Crash(dead)
		time.Sleep(20 * time.Second)
		after := led()
		for _, id := range c.Running() {
			require.GreaterOrEqual(t, after[id]-before[id], before[dead]/4,
				"before %v, after %v", before, after)
		}
	}, many)
}
