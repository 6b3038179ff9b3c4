package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector"
)

var (
	five = []cluster.NodeID{"a", "b", "c", "d", "e"}
	none cluster.VoterOptions
)

// firstThree lets the first three vote at first: the others only join.
func firstThree(cfg *cluster.Config) {
	cfg.Voters = three
	if !slices.Contains(three, cfg.Node) {
		cfg.Voters, cfg.Join = nil, []string{"a:7400"}
	}
}

// requireVoters waits until every node that runs counts these voters, in every election.
func (c *testCluster) requireVoters(want string) {
	c.t.Helper()
	c.Await("the voters "+want, func() bool {
		for _, n := range c.nodes() {
			for _, g := range n.Status().Groups {
				var names []string
				for _, v := range g.Voters {
					names = append(names, string(v))
				}
				if strings.Join(names, "") != want {
					return false
				}
			}
		}
		return true
	})
}

// steps collects the progress of a change.
func steps(dry bool, into *[]string) cluster.VoterOptions {
	return cluster.VoterOptions{DryRun: dry, Progress: func(s cluster.VoterStep) {
		*into = append(*into, s.Group+": "+s.Text)
	}}
}

// TestVotersChangeWhileTheClusterRuns grows from three voters to five, and shrinks again. No node
// restarts, and the leader changes only where it is removed itself.
func TestVotersChangeWhileTheClusterRuns(t *testing.T) {
	withCluster(t, five, func(t *testing.T, c *testCluster) {
		c.elect()
		c.open("other", nil)
		time.Sleep(election)
		at, err := c.Node("d").Default().Publish(t.Context(), []byte("x"), cluster.PublishOptions{})
		require.NoError(t, err)
		var events []*cluster.Subscription
		for _, n := range c.nodes() {
			events = append(events, n.Default().Subscribe(1000))
		}
		led := c.Leader()
		require.NoError(t, c.Node("e").AddVoter(t.Context(), "d", none))
		c.requireVoters("abcd")
		require.NoError(t, c.Node("a").AddVoter(t.Context(), "e", none))
		require.NoError(t, c.Node("b").AddVoter(t.Context(), "e", none), "it is one already")
		c.requireVoters("abcde")
		require.Equal(t, led, c.Leader())
		c.requireRecord("x", at)

		var dry, told []string
		require.NoError(t, c.Node(led).RemoveVoter(t.Context(), led, steps(true, &dry)))
		require.Regexp(t, "^default: leader "+string(led)+" hands over to [a-e] first\ndefault: "+
			string(led)+" is removed; the voters are then [a-e], [a-e], [a-e], [a-e]\nother: ",
			strings.Join(dry, "\n"))
		require.NoError(t, c.Node(led).RemoveVoter(t.Context(), led, steps(false, &told)), "%q", told)
		require.Contains(t, strings.Join(told, "\n"), "has handed over to")
		left := slices.DeleteFunc(slices.Clone(five),
			func(id cluster.NodeID) bool { return id == led || id == c.Leader() })
		require.NoError(t, c.Node(led).RemoveVoter(t.Context(), left[0], none), "asked outside")
		require.Len(t, c.leader().Status().Groups[0].Voters, 3)
		c.requireRecord("x", at)
		changes := 0
		for _, s := range events {
			s.Close()
			for e := range s.Events() {
				require.NotEqual(t, elector.LeaderNoHeartbeat, e.Reason)
				if e.From == elector.Leader {
					changes++
				}
			}
		}
		require.Equal(t, 1, changes, "of the leader")
	}, clustertest.Configure(firstThree))
}

// Each mistake gets its answer at once, in a dry run too, and changes nothing.
func TestMistakesWithVoters(t *testing.T) {
	type call = func(context.Context, *cluster.Node, cluster.VoterOptions) error
	add := func(id cluster.NodeID) call {
		return func(ctx context.Context, n *cluster.Node, o cluster.VoterOptions) error {
			return n.AddVoter(ctx, id, o)
		}
	}
	remove := func(id cluster.NodeID) call {
		return func(ctx context.Context, n *cluster.Node, o cluster.VoterOptions) error {
			return n.RemoveVoter(ctx, id, o)
		}
	}
	replace := func(old, by cluster.NodeID) call {
		return func(ctx context.Context, n *cluster.Node, o cluster.VoterOptions) error {
			return n.ReplaceVoter(ctx, old, by, o)
		}
	}
	for name, m := range map[string]struct {
		voters  int // of the first nodes
		edit    func(*cluster.Config)
		prepare func(*testCluster)
		call    call
		want    string
	}{
		"nobody":  {voters: 3, call: add("x"), want: "has no link to x: start it"},
		"no name": {voters: 3, call: add(""), want: "and names it"},
		"a long name": {voters: 3, call: add(cluster.NodeID(strings.Repeat("n", 255))),
			want: "255 bytes long, and the limit is 128"},
		"down": {voters: 3, prepare: func(c *testCluster) { c.Stop("d"); time.Sleep(time.Second) },
			call: add("d"), want: "has no link to d"},
		"the last": {voters: 1, call: remove("a"), want: "a is the only voter: add another one first"},
		"no quorum after": {voters: 3, prepare: func(c *testCluster) {
			c.Stop(c.others(c.leader())[0])
		}, call: func(ctx context.Context, n *cluster.Node, o cluster.VoterOptions) error {
			up := slices.DeleteFunc(n.Status().Members, func(m cluster.MemberStatus) bool {
				return !m.Voter || m.Link != "up"
			})
			return n.RemoveVoter(ctx, up[0].Node, o)
		}, want: "2 of them would be needed, and 1 are connected"},
		"nobody to hand over to": {voters: 3, prepare: func(c *testCluster) {
			for _, id := range c.others(c.leader()) {
				err := c.Node(id).Default().SetCandidate(false)
				require.NoError(c.t, err)
			}
			time.Sleep(5 * time.Second)
		}, call: func(ctx context.Context, n *cluster.Node, o cluster.VoterOptions) error {
			return n.ReplaceVoter(ctx, n.Default().Status().Leader, "d", o)
		}, want: `": it is not a candidate; cannot hand over to "`},
		"explicit quorum": {voters: 3, edit: func(cfg *cluster.Config) { cfg.Election.Quorum = 3 },
			call: add("d"), want: "Quorum is set to 3"},
		"unsafe": {voters: 3, edit: func(cfg *cluster.Config) {
			cfg.Election.Quorum, cfg.Election.UnsafeQuorum = 1, true
		}, call: add("d"), want: "it needs a safe election"},
		"other voters": {voters: 3, edit: func(cfg *cluster.Config) {
			if cfg.Node == "d" {
				cfg.Voters = append(slices.Clone(cfg.Voters), "d")
			}
		}, call: add("d"), want: `only node "d" counts "d"`},
		"unknown": {voters: 3, call: remove("x"), want: "x is not one of the voters a, b, c"},
		"replace an unknown": {voters: 3, call: replace("x", "d"),
			want: "x is not one of the voters a, b, c: add d"},
		"replace by a voter": {voters: 3, call: replace("b", "a"),
			want: "a is a voter already: remove b, or name a node that is not a voter"},
	} {
		t.Run(name, func(t *testing.T) {
			withCluster(t, five[:4], func(t *testing.T, c *testCluster) {
				c.elect()
				if m.prepare != nil {
					m.prepare(c)
				}
				before := c.leader().Status().Groups[0].Voters
				for _, dry := range []bool{true, false} {
					for _, id := range c.Running()[:1] {
						err := m.call(within(t, time.Minute), c.Node(id), cluster.VoterOptions{DryRun: dry})
						require.ErrorIs(t, err, cluster.ErrRefused)
						require.ErrorContains(t, err, m.want)
					}
				}
				require.Equal(t, before, c.leader().Status().Groups[0].Voters)
			}, clustertest.Configure(func(cfg *cluster.Config) {
				if cfg.Voters = five[:m.voters]; m.edit != nil {
					m.edit(cfg)
				}
			}))
		})
	}
}

// A node with an address to join and no voters observes, learns who votes, and restarts. Then it
// takes the place of voters that are dead, of one that lives, and of its own lost disk.
func TestVotersAreReplaced(t *testing.T) {
	withCluster(t, five[:4], func(t *testing.T, c *testCluster) {
		l := c.lead()
		d := c.Node("d").Default()
		_, err := d.Campaign(t.Context())
		require.ErrorIs(t, err, cluster.ErrNotCandidate)
		at, err := d.Publish(t.Context(), []byte("x"), cluster.PublishOptions{})
		require.NoError(t, err)
		c.Restart("d")
		c.requireRecord("x", at)
		own := c.Node("d").Status()
		require.Equal(t, three, own.Groups[0].Voters)
		require.False(t, own.Groups[0].Candidate)
		require.Nil(t, own.Groups[0].Record.Configured)

		dead := c.others(l.Node())[0]
		c.Crash(dead)
		time.Sleep(time.Second)
		var dry, told []string
		require.NoError(t, c.Node("d").ReplaceVoter(t.Context(), dead, "d",
			steps(true, &dry)))
		require.Equal(t, three, c.Node("d").Status().Groups[0].Voters)
		require.NoError(t, c.Node("d").ReplaceVoter(t.Context(), dead, "d", steps(false, &told)))
		require.Equal(t, []string{"default: " + string(dead) + " is removed; the voters are then " +
			strings.Join(namesWithout(three, dead), ", "), "default: d becomes a voter; the voters are then " +
			strings.Join(append(namesWithout(three, dead), "d"), ", ")}, dry)
		require.Contains(t, told, "default: d is a voter")
		require.True(t, c.Node("d").Status().Groups[0].Candidate)

		c.Start(dead) // it was removed while it was down
		time.Sleep(election)
		back := c.Node(dead).Status().Groups[0]
		require.Equal(t, c.Leader(), back.Leader)
		votes := c.Node(dead).Stats().VotesReceived
		for _, no := range votes.No {
			votes.Yes += no
		}
		require.Zero(t, votes.Yes, "it does not stand, whatever terms it had reserved")
		require.NotContains(t, back.Voters, dead)
		require.Equal(t, three, back.Record.Configured)

		require.NoError(t, c.Node(dead).ReplaceVoter(t.Context(), "d", dead, none), "one that lives")
		c.Stop("d")
		c.requireVoters("abc")
		c.Crash(dead)
		c.Replace(dead)
		c.Start(dead)
		time.Sleep(election)
		require.ErrorContains(t, c.Node(dead).AddVoter(within(t, time.Minute), dead, none), "replace it")
		require.NoError(t, c.Node(dead).ReplaceVoter(t.Context(), dead, dead, none))
		c.requireVoters("abc")
		c.requireRecord("x", at)
	}, clustertest.Configure(firstThree))
}

func namesWithout(ids []cluster.NodeID, id cluster.NodeID) (names []string) {
	for _, other := range ids {
		if other != id {
			names = append(names, string(other))
		}
	}
	return names
}

// TestAChangeOfVotersThatIsCutShortFails: an election that was left out is not one that is done.
func TestAChangeOfVotersThatIsCutShortFails(t *testing.T) {
	withCluster(t, five, func(t *testing.T, c *testCluster) {
		c.elect()
		for i := range 12 {
			c.open(fmt.Sprint("e", i), nil)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := 0
		progress := func(cluster.VoterStep) {
			if done++; done == 3 {
				cancel()
			}
		}
		a := c.Node("a")
		err := a.AddVoter(ctx, "d", cluster.VoterOptions{DryRun: true, Progress: progress})
		require.ErrorIs(t, err, context.Canceled)
		require.Less(t, done, 13)
		for _, dry := range []bool{true, false} {
			err := a.AddVoter(ctx, "d", cluster.VoterOptions{DryRun: dry})
			require.ErrorIs(t, err, context.Canceled)
		}
	}, clustertest.Configure(firstThree))
}

// TestARefusedChangeLeavesNoOtherHalfDone: one election refuses to replace a voter. Those that have
// begun are finished.
func TestARefusedChangeLeavesNoOtherHalfDone(t *testing.T) {
	withCluster(t, five, func(t *testing.T, c *testCluster) {
		c.elect()
		require.NoError(t, c.Node("a").AddVoter(t.Context(), "d", none)) // in the first election only
		for i := range 9 {
			c.open(fmt.Sprint("a", i), nil)
		}
		time.Sleep(election)
		err := c.Node("e").ReplaceVoter(t.Context(), "c", "d", none)
		require.ErrorContains(t, err, `change the voters of election "default": refused: `)
		time.Sleep(election) // observers learn of it with heartbeats
		for _, g := range c.Node("e").Status().Groups {
			half := len(g.Voters) == 4 // d, and still c
			require.Equal(t, g.Group == "default", half, "%s: %v", g.Group, g.Voters)
		}
	}, clustertest.Configure(firstThree))
}
