package main_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// voterChange follows docs/operations.md#changing-the-voters on a mesh.
type voterChange struct {
	*scene
	running []*procs.Node
}

// configure gives a node's file other voters.
func (c *voterChange) configure(n *procs.Node, voters []string) {
	text, err := os.ReadFile(n.ConfigFile)
	require.NoError(c.t, err)
	var all map[string]any
	require.NoError(c.t, yaml.Unmarshal(text, &all))
	all["voters"] = voters
	text, err = yaml.Marshal(all)
	require.NoError(c.t, err)
	require.NoError(c.t, os.WriteFile(n.ConfigFile, text, 0o600))
}

// whole waits until all that run are linked with each other and follow one leader.
func (c *voterChange) whole() cluster.GroupStatus {
	c.t.Helper()
	c.eventually("every link is up", func() bool {
		return !slices.ContainsFunc(c.running, func(n *procs.Node) bool {
			st, err := n.Status(c.t.Context())
			return err != nil || slices.ContainsFunc(c.running, func(o *procs.Node) bool {
				return o != n && linkTo(st, o.Name) != "up"
			})
		})
	})
	return c.agree(c.running, nil)
}

// restart gives a node the new list, and comes back when its vote counts again. down is
// how long it is away.
func (c *voterChange) restart(n *procs.Node, voters []string, down time.Duration) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(c.t, n.Stop(ctx))
	c.configure(n, voters)
	time.Sleep(down)
	require.NoError(c.t, n.Start())
	c.whole()
	time.Sleep(2 * time.Second) // as the page says: its lease, in which it votes for nobody
}

// all restarts every node except those with the list already, the leader last: it hands
// over to one that has it.
func (c *voterChange) all(voters []string, done ...*procs.Node) {
	c.t.Helper()
	leader := c.node(c.whole().Leader)
	for _, n := range c.running {
		if n != leader && !slices.Contains(done, n) {
			c.restart(n, voters, 0)
			done = append(done, n)
		}
	}
	to := done[len(done)-1]
	_, stderr, code := bmqnode(c.t, "transfer", "--to", to.Name, "--admin", leader.AdminAddr)
	require.Zero(c.t, code, stderr)
	c.restart(leader, voters, 2*time.Second) // longer than a lease: nothing may hang on it
	require.Equal(c.t, cluster.NodeID(to.Name), c.whole().Leader)
}

// healthy waits until the doctor, asked at the address of every node that ever was,
// finds no failure and no voters that differ.
func (c *voterChange) healthy() {
	c.t.Helper()
	var addrs []string
	for _, n := range c.Nodes() {
		addrs = append(addrs, n.AdminAddr)
	}
	var found diagnosis
	defer func() {
		if c.t.Failed() {
			c.t.Logf("the doctor found %v", found)
		}
	}()
	c.eventually("the doctor finds no failure", func() (well bool) {
		var code int
		found, code = examine(c.t, "--admin", strings.Join(addrs, ","))
		return code == 0 && len(found["voters-differ"]) == 0
	})
}

// TestVotersAreChangedWithoutALeaderlessMoment goes from three voters to four and to
// five, and takes one of the first three away: n4 replaces n3. Leadership moves by the
// handovers of the page alone, each of which ends within a few round trips.
func TestVotersAreChangedWithoutALeaderlessMoment(t *testing.T) {
	t.Parallel()
	options := quick()
	options["realtime"] = true // a node that gets no processor for long loses its lease
	options["voters"] = []string{"n1", "n2", "n3"}
	c := &voterChange{scene: layOut(t, 5, options)}
	c.running = slices.Clone(c.Nodes()[:3])
	for _, n := range c.running {
		require.NoError(t, n.Start())
	}
	c.whole()
	for _, n := range c.Nodes()[3:] {
		voters := append(namesOf(c.running), n.Name)
		c.configure(n, voters)
		require.NoError(t, n.Start(), "before the others learn of it")
		c.running = append(c.running, n)
		c.whole()
		found, _ := examine(t, "--admin", n.AdminAddr)
		require.Len(t, found["voters-differ"], 1, "%v", found)
		require.Equal(t, "WARN", found["voters-differ"][0].Level)
		c.all(voters, n)
	}
	gone := c.node("n3")
	if c.whole().Leader == "n3" {
		does(t, "transfer", "--to", "n4", "--admin", gone.AdminAddr)
	}
	c.running = slices.DeleteFunc(c.running, func(n *procs.Node) bool { return n == gone })
	c.all(namesOf(c.running))
	found, _ := examine(t, "--admin", gone.AdminAddr)
	require.Contains(t, found["voters-differ"][0].What, "nobody but n3 itself counts it")
	require.Equal(t, "WARN", found["voters-differ"][0].Level)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, gone.Stop(ctx))
	c.healthy()

	for _, e := range c.transitions(func(e admin.Event) bool {
		return lostLeadership(e) ||
			e.To == "CANDIDATE"
	}) {
		require.Contains(t, []string{"TRANSFERRED", "PROPOSED", "ELECTED"}, e.Reason, "%+v", e)
	}
	led := c.transitions(becameLeader)
	lost := c.transitions(lostLeadership)
	require.Len(t, led, len(lost)+1)
	for i, e := range lost {
		t.Logf("no leader for %s", led[i+1].Time.Sub(e.Time))
	}
}

func namesOf(nodes []*procs.Node) (all []string) {
	for _, n := range nodes {
		all = append(all, n.Name)
	}
	return all
}
