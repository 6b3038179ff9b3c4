package deploy

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
	"github.com/bmqelect/bmqelect/netmesh"
)

// atRunTime is the prefix of elections that are opened while nodes run.
const atRunTime = "run/"

// beforeBeats is the last revision whose nodes know no beats.
const beforeBeats = "bc88e41fc4c62f8920c461cfa19e539e6b173936"

// An older build becomes this one node by node, as docs/operations.md says, and this one becomes
// the older one. Meanwhile leaders are killed and elections are opened.
func TestARollingUpgradeAndBack(t *testing.T) {
	from, asked := os.LookupEnv("UPGRADE_FROM")
	if !asked {
		t.Skip("builds an older revision; set UPGRADE_FROM to one, or to nothing for " + beforeBeats)
	}
	if from == "" {
		from = beforeBeats
	}
	old := buildRelease(t, from)
	for name, play := range map[string]func(*upgrade){
		"nobody notices":        nodeByNode,
		"leaders are killed":    leadersAreKilled,
		"elections at run time": electionsAtRunTime,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := oldCluster(t, old)
			require.NoError(t, u.Start())
			u.settled()
			play(u)
		})
	}
}

// upgrade is three nodes with TLS in 21 elections, each of the old build or of this one.
type upgrade struct {
	*nodes.Scene
	t   *testing.T
	old string // the old build's binary
}

func oldCluster(t *testing.T, old string) *upgrade {
	groups := make([]string, 20)
	for i := range groups {
		groups[i] = fmt.Sprint("jobs-", i)
	}
	options := map[string]any{
		"profile": "article", "groups": groups, "realtime": nodes.MayBeRealTime(),
		"log-level": "debug", // otherwise the transitions of many elections are summed up
	}
	u := &upgrade{nodes.LayOut(t, options, procs.Numbered(3)...), t, old}
	pki := t.TempDir()
	nodes.Does(t, "certs", "--dir", pki, "n1", "n2", "n3")
	for _, n := range u.Nodes() {
		n.Binary = old
		nodes.Encrypt(t, n, pki)
	}
	return u
}

// nodeByNode replaces the followers, hands over and replaces the last one; then the same back.
// No other leadership ends.
func nodeByNode(u *upgrade) {
	for _, build := range []string{nodes.Binary, u.old} {
		last := u.Named(u.settled()[cluster.DefaultGroup].Leader)
		for _, n := range u.Others(cluster.NodeID(last.Name)) {
			u.moves(n, func() { u.replace(n, build) })
		}
		u.moves(last, func() { nodes.Does(u.t, "transfer", "--admin", u.Admins()) })
		require.NotEqual(u.t, last.Name, string(u.settled()[cluster.DefaultGroup].Leader))
		u.moves(last, func() { u.replace(last, build) })
	}
}

// leadersAreKilled makes each node of each mixture of builds the leader, and kills it.
func leadersAreKilled(u *upgrade) {
	for _, n := range u.Nodes()[:2] {
		u.replace(n, nodes.Binary)
		for _, leader := range u.Nodes() {
			if g := u.settled()[cluster.DefaultGroup]; g.Leader != cluster.NodeID(leader.Name) {
				nodes.Does(u.t, "transfer", leader.Name, "--admin", u.Admins())
			}
			before := u.settled()
			require.NoError(u.t, leader.Kill())
			after := u.settled()
			for group, was := range before {
				now := after[group]
				if was.Leader == cluster.NodeID(leader.Name) {
					require.Greater(u.t, now.Term, was.Term, group)
				} else {
					require.True(u.t, nodes.Same(was)(now), "%s: %v, then %v", group, was, now)
				}
			}
			u.writes("after " + leader.Name + " was killed")
			require.NoError(u.t, leader.Start())
			for group, now := range u.settled() { // in a higher term, if that node had reserved some
				require.Equal(u.t, after[group].Leader, now.Leader, group)
			}
		}
	}
}

// electionsAtRunTime opens elections that nodes of the old build can neither open nor vote in. They
// are led while two nodes are of this build, and disturb the others in no case.
func electionsAtRunTime(u *upgrade) {
	const option = "prefixes: [" + atRunTime + "]\n"
	for i, n := range u.Nodes() {
		nodes.Configure(u.t, n, strings.TrimSpace(option))
		u.moves(n, func() {
			u.replace(n, nodes.Binary)
			u.settled()
			for k := range 100 {
				name := fmt.Sprintf("%s%d-%d", atRunTime, i, k)
				_, err := n.Client().Tell(u.t.Context(), admin.OpenRequest{Name: name})
				require.NoError(u.t, err)
			}
		})
	}
	for _, n := range u.Nodes() {
		nodes.Edit(u.t, n, func(text string) string { return strings.Replace(text, option, "", 1) })
		u.moves(n, func() { u.replace(n, u.old) })
	}
}

// running are the nodes that run.
func (u *upgrade) running() []*procs.Node {
	return slices.DeleteFunc(slices.Clone(u.Nodes()), func(n *procs.Node) bool { return n.Pid() == 0 })
}

// replace restarts a node with another build.
func (u *upgrade) replace(n *procs.Node, build string) {
	u.Halt(n)
	n.Binary = build
	require.NoError(u.t, n.Start())
}

// moves does something to a node, after which all is settled. Of the elections that the node led,
// each gets another leader at most once, by a handover, in the next term. In the others nothing
// happens to the other nodes. The record is kept.
func (u *upgrade) moves(n *procs.Node, do func()) {
	u.t.Helper()
	before, since := u.settled(), len(u.Lines())
	u.writes(fmt.Sprint("before line ", since))
	do()
	after, became := u.settled(), map[string]int{}
	for _, l := range u.Lines()[since:] {
		e, ok := l.Transition()
		if !ok || l.Node == n.Name || strings.HasPrefix(e.Group, atRunTime) {
			continue
		}
		require.Equal(u.t, n.Name, string(before[e.Group].Leader), "%s", l.Text)
		of := []string{"TRANSFERRED", "PROPOSED", "ELECTED", "LEADER_FOUND"} // a handover
		require.Contains(u.t, of, e.Reason, l.Text)
		if nodes.BecameLeader(e) {
			became[e.Group]++
		}
	}
	for group, was := range before {
		moved := became[group]
		require.LessOrEqual(u.t, moved, 1, group)
		require.Equal(u.t, int(was.Term)+moved, int(after[group].Term), group)
		require.Equal(u.t, moved == 0, after[group].Leader == was.Leader, group)
	}
}

// writes writes the record of the default election, and waits until all nodes have it.
func (u *upgrade) writes(value string) {
	u.t.Helper()
	nodes.Does(u.t, "record", "put", writeIn(u.t, u.Dir, "value", value), "--admin", u.Admins())
	for _, n := range u.running() {
		u.Eventually(n.Name+" has the value", func() bool {
			rec, err := n.Client().Record(u.t.Context(), "", false)
			return err == nil && string(rec.Value) == value
		})
	}
}

// settled waits until the nodes that run have been there for two leases, all of them back the
// leader of each election, and beats go as they must. It returns what the leaders say.
func (u *upgrade) settled() (leads map[string]cluster.GroupStatus) {
	u.t.Helper()
	var unsettled string
	defer func() {
		if u.t.Failed() {
			u.t.Log("not settled: " + unsettled)
		}
	}()
	u.Eventually("all elections are led and backed", func() bool {
		leads, unsettled = u.look()
		return unsettled == ""
	})
	return leads
}

func (u *upgrade) look() (leads map[string]cluster.GroupStatus, unsettled string) {
	all, views := map[string]cluster.Status{}, map[string][]cluster.GroupStatus{}
	leads = map[string]cluster.GroupStatus{}
	know := 0 // elections that are opened at run time
	for _, n := range u.running() {
		st, err := n.Client().StatusOf(u.t.Context(), cluster.Selection{Limit: 1000})
		if err != nil || st.Uptime.Duration() < 2*elector.Article().Lease {
			return nil, fmt.Sprint(n.Name, " has just started ", err)
		}
		all[n.Name] = st
		if n.Binary != u.old {
			know++
		}
		for _, g := range st.Groups {
			views[g.Group] = append(views[g.Group], g)
			if g.Leading {
				leads[g.Group] = g
			}
		}
	}
	for _, st := range all {
		if why := u.wrongLinks(st, all); why != "" {
			return nil, why
		}
	}
	for group, views := range views {
		led, members := leads[group], len(all)
		if strings.HasPrefix(group, atRunTime) {
			if members = know; members == 1 && !led.Leading {
				continue
			}
			delete(leads, group)
		}
		for _, g := range views {
			if len(views) != members || len(led.Supporters) != members || !nodes.Same(led)(g) {
				return nil, fmt.Sprint(group, ": ", led.Supporters, len(views), g.Explanation)
			}
		}
	}
	return leads, ""
}

// wrongLinks says what is wrong with a node's links to others that run. A leader of this build
// sends beats as datagrams to who knows beats, and says that who does not gets none.
func (u *upgrade) wrongLinks(st cluster.Status, all map[string]cluster.Status) string {
	beats := func(st cluster.Status) bool {
		return slices.ContainsFunc(st.Members, func(m cluster.MemberStatus) bool { return m.Beats != "" })
	}
	if u.Named(st.Node).Binary == nodes.Binary && !beats(st) {
		return "this build does not say how beats go"
	}
	leading := func(g cluster.GroupStatus) bool { return g.Leading }
	for _, m := range st.Members {
		peer, up := all[string(m.Node)]
		want := netmesh.BeatsDatagrams
		if !beats(peer) {
			want = netmesh.BeatsNone
		}
		wrong := beats(st) && m.Beats != want && slices.ContainsFunc(st.Groups, leading)
		if up && (m.Link != "up" || !m.LinkTLS || wrong) {
			return fmt.Sprint(st.Node, " to ", m.Node, ": ", m.Link, m.LinkTLS, m.Beats, m.BeatsWhy)
		}
	}
	return ""
}
