package ask

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve is the admin side of a node that says what status is then. It notes what it is told, with
// step and key of a rotation or the links to cut, and refuses what the first note says.
func serve(t *testing.T, status *cluster.Status, told *[]string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && told != nil {
			var req struct {
				admin.GossipKeyRequest
				Cut []string
			}
			_ = json.NewDecoder(r.Body).Decode(&req)
			note := fmt.Sprintln(status.Node, r.URL.Path, req.Step, req.Key, strings.Join(req.Cut, " "))
			note = strings.Join(strings.Fields(note), " ")
			if len(*told) > 0 && strings.HasPrefix("refuse "+note, (*told)[0]) {
				http.Error(w, "no", http.StatusConflict)
				return
			}
			*told = append(*told, note)
		}
		shown := *status
		if shown.Elections != nil { // it lists only what is asked for
			only := r.URL.Query().Get("group")
			shown.Groups = slices.DeleteFunc(slices.Clone(shown.Groups), func(g cluster.GroupStatus) bool {
				return g.Group != cmp.Or(only, cluster.DefaultGroup)
			})
		}
		_ = json.NewEncoder(w).Encode(shown)
	}))
	t.Cleanup(server.Close)
	status.AdminAddr = strings.TrimPrefix(server.URL, "http://")
}

// trio are three nodes that know each other; n1 leads.
func trio(t *testing.T, told *[]string) (nodes []*cluster.Status) {
	t.Helper()
	voters := []cluster.NodeID{"n1", "n2", "n3"}
	for _, id := range voters {
		nodes = append(nodes, &cluster.Status{
			Node: id, Identity: "identity of " + string(id),
			Groups: []cluster.GroupStatus{{
				Group: cluster.DefaultGroup, Role: "FOLLOWER", Leader: "n1", Leading: id == "n1",
				Voters: voters, Term: 7, Explanation: "follows n1", Candidate: true,
			}},
		})
		serve(t, nodes[len(nodes)-1], told)
	}
	for _, n := range nodes {
		for _, m := range nodes {
			if m != n {
				n.Members = append(n.Members, cluster.MemberStatus{
					Node: m.Node, Voter: true, Link: linkUp, Identity: m.Identity,
					AdminAddr: m.AdminAddr, GossipAddr: "known", RTT: 0.001,
				})
			}
		}
	}
	return nodes
}

// loses lets a node have no link to another.
func loses(n *cluster.Status, id cluster.NodeID) *cluster.MemberStatus {
	for i := range n.Members {
		if n.Members[i].Node == id {
			n.Members[i].Link = "down UNAVAILABLE"
			return &n.Members[i]
		}
	}
	return nil
}

func at(addrs ...string) *Cluster { return &Cluster{Addrs: addrs} }

func TestOneAddressFindsEveryNode(t *testing.T) {
	nodes := trio(t, nil)
	answers, err := at(nodes[1].AdminAddr, nodes[1].AdminAddr, "127.0.0.1:1").All(t.Context())
	require.NoError(t, err, "silence at one address is no error")
	require.Len(t, answers, 3, "and nobody is listed twice")
	for _, a := range answers {
		require.NotNil(t, a.Status, a.Node)
	}
	_, err = at("127.0.0.1:1").All(t.Context())
	require.ErrorContains(t, err, "no node answers; name one that runs with --admin:\n127.0.0.1:1")
}

func TestAnAddressThatIsNoneIsNamed(t *testing.T) {
	for addr, right := range map[string]bool{
		"127.0.0.1:1": true, "localhost:1": true, ":1": true, "[::1]:1": true, "unix:/nowhere": true,
		"127.0.0.1": false, "localhost": false, "127.0.0.1:": false, "::1": false, "h:65536": false,
		"h:http": false, "http://h:7402": false, "http://h": false, "/nowhere": false, "unix:": false,
	} {
		_, err := at("127.0.0.1:1", addr).All(t.Context())
		if right {
			require.ErrorContains(t, err, "no node answers")
			continue
		}
		require.ErrorAs(t, err, new(config.UsageError), addr)
		require.EqualError(t, err, fmt.Sprintf("the admin address is %q, but must be host:port or "+
			"unix:PATH, such as 192.0.2.1:7402 or [2001:db8::1]:7402", addr))
	}
}

// TestOfTheDefaultAddressesOneGetsSecrets: on the others any user of the machine may listen.
func TestOfTheDefaultAddressesOneGetsSecrets(t *testing.T) {
	all := strings.Join(DefaultAddrs, ",")
	for args, want := range map[string][]string{
		"":                  DefaultAddrs[:1],
		"--admin=" + all:    DefaultAddrs,
		"--admin=[::1]:123": {"[::1]:123"},
	} {
		var c Cluster
		flags := pflag.NewFlagSet("status", pflag.ContinueOnError)
		c.Register(flags)
		require.NoError(t, flags.Parse(strings.Fields(args)))
		var got []string
		for _, addr := range append([]string{"[::1]:123"}, DefaultAddrs...) {
			if c.client(Answer{via: addr, given: true}).TakesKeys() == nil {
				got = append(got, addr)
			}
		}
		require.Equal(t, want, got, args)
	}
}

func TestTheLeaderIsFoundOrItIsSaidWhyNot(t *testing.T) {
	nodes := trio(t, nil)
	led, _, err := at(nodes[2].AdminAddr).AtLeader(t.Context(), cluster.DefaultGroup, false)
	require.NoError(t, err)
	require.EqualValues(t, "n1", led)

	nodes[0].Groups[0].Leading = false
	_, _, err = at(nodes[2].AdminAddr).AtLeader(t.Context(), cluster.DefaultGroup, false)
	require.ErrorContains(t, err, "no node leads now; n3 says: follows n1")
	silent(nodes, "n1")
	_, _, err = at(nodes[2].AdminAddr).AtLeader(t.Context(), cluster.DefaultGroup, false)
	require.ErrorContains(t, err, "n1 leads, as n")
	require.ErrorContains(t, err, "its admin side cannot be asked (127.0.0.1:1: connect: connection refused): name it with --admin")
	require.False(t, errors.As(err, new(NoLeaderError)), "there is a leader")
	_, _, err = at(nodes[2].AdminAddr).AtLeader(t.Context(), "jobs", false)
	require.ErrorAs(t, err, new(config.UsageError))
	require.ErrorContains(t, err, `n3 takes part in no election "jobs"`)
}

// A frozen node is one that takes the question and says nothing.
func frozen(t *testing.T) (addr string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

func TestTheLeaderIsToldWithoutWaitingForASilentNode(t *testing.T) {
	nodes := trio(t, nil)
	nodes[0].Groups[0].LSN = lsn.LSN{Term: 7, Counter: 3}
	began := time.Now()
	l, err := at(frozen(t), "127.0.0.1:1", nodes[2].AdminAddr).Leader(t.Context(), "default")
	require.NoError(t, err)
	require.Equal(t, admin.Leader{Group: "default", Leader: "n1", AdminAddr: nodes[0].AdminAddr,
		Term: 7, LSN: lsn.LSN{Term: 7, Counter: 3}}, l)
	require.Less(t, time.Since(began), askTimeout)
}

func TestALeaderThatCannotBeAskedIsTheOneThatOthersFollow(t *testing.T) {
	nodes := trio(t, nil)
	silent(nodes, "n1")
	nodes[1].Groups[0].Leader, nodes[1].Groups[0].Term = "n3", 6 // old news, and n3 denies it
	l, err := at(nodes[1].AdminAddr).Leader(t.Context(), "default")
	require.NoError(t, err)
	require.EqualValues(t, "n1", l.Leader)
	require.Equal(t, "127.0.0.1:1", l.AdminAddr)

	var none NoLeaderError
	nodes[2].Groups[0].Leader = ""
	_, err = at(nodes[1].AdminAddr).Leader(t.Context(), "default")
	require.ErrorAs(t, err, &none)
	_, err = at(nodes[1].AdminAddr).Leader(t.Context(), "jobs")
	require.ErrorAs(t, err, new(config.UsageError))
	_, err = at("127.0.0.1:1").Leader(t.Context(), "default")
	require.ErrorContains(t, err, "no node answers")
}

func TestOneElectionOfManyIsShown(t *testing.T) {
	nodes := trio(t, nil)
	nodes[0].Groups = append(nodes[0].Groups, cluster.GroupStatus{
		Group: "jobs", Role: "LEADER", Leader: "n1", Leading: true, Term: 9,
		Voters: nodes[0].Groups[0].Voters,
	})
	for _, n := range nodes { // too many to be listed
		n.Elections = &cluster.Sums{Open: 40}
	}
	c := at(nodes[1].AdminAddr)
	leader, err := c.Leader(t.Context(), "jobs")
	require.NoError(t, err)
	require.EqualValues(t, 9, leader.Term)
	id, _, err := c.AtLeader(t.Context(), "jobs", false)
	require.NoError(t, err)
	require.EqualValues(t, "n1", id)
	all, err := c.All(t.Context())
	require.NoError(t, err)
	require.Equal(t, cluster.DefaultGroup, all[0].election().Group, "afterwards as ever")
	_, err = at(nodes[0].AdminAddr).Status(t.Context(), cluster.Selection{Group: "mail"})
	require.ErrorAs(t, err, new(config.UsageError))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = at(nodes[0].AdminAddr).Watch(ctx, io.Discard, admin.Stream{Group: "mail"})
	require.ErrorAs(t, err, new(config.UsageError))
	answers, err := at(nodes[0].AdminAddr).Status(t.Context(), cluster.Selection{Group: "jobs"})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, PrintStatus(&out, answers))
	require.Contains(t, out.String(), "n1    LEADER  n1      9 ")
	require.Contains(t, out.String(), `n2, n3: it takes part in no election "jobs"`)
	require.Equal(t, "takes no part in it", standings(cluster.Status{}))
}

// Two processes of one name can vote twice: a name is given away only if all that can be
// asked say that its process is gone.
func TestANameIsGivenAwayOnlyIfItsProcessIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(nodes []*cluster.Status)
		here   bool
		told   []string
		err    string
	}{
		"it answers": {func([]*cluster.Status) {}, false, nil, "there is nothing to forget"},
		"it answers one": {func(n []*cluster.Status) { loses(n[0], "n3") }, false, nil,
			"node n3 lives, "},
		"it answers, here": {func(n []*cluster.Status) { loses(n[0], "n3") }, true, nil,
			"node n3 lives, "},
		"one has a link": {func(n []*cluster.Status) { dead(n); loses(n[0], "n3") }, false, nil,
			"node n3 lives, node n2 has a link to it"},
		"it is gone":       {gone, false, []string{"n1 /v1/forget", "n2 /v1/forget"}, ""},
		"it is gone, here": {gone, true, []string{"n1 /v1/forget"}, ""},
		"another is silent": {func(n []*cluster.Status) { gone(n); silent(n, "n2") }, false, nil,
			"node n2 runs and cannot be asked"},
		"silent, but here": {func(n []*cluster.Status) { gone(n); silent(n, "n2") }, true,
			[]string{"n1 /v1/forget"}, ""},
		"its successor lives": {func(n []*cluster.Status) {
			gone(n)
			n[1].Members[1].Link, n[1].Members[1].Identity = linkUp, "identity of a new n3"
		}, false, []string{"n1 /v1/forget"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			nodes := trio(t, &told)
			c.change(nodes)
			answers, err := at(nodes[0].AdminAddr).Forget(t.Context(), "n3", c.here)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
			require.ElementsMatch(t, c.told, told)
			require.Len(t, answers, len(told))
		})
	}
}

// dead lets n3 answer no more, gone the others have no link to it either.
func dead(nodes []*cluster.Status) { silent(nodes, "n3") }

func gone(nodes []*cluster.Status) {
	dead(nodes)
	loses(nodes[0], "n3")
	loses(nodes[1], "n3")
}

// silent moves the address of a node to where nobody listens.
func silent(nodes []*cluster.Status, id cluster.NodeID) {
	for _, n := range nodes {
		for i := range n.Members {
			if n.Members[i].Node == id {
				n.Members[i].AdminAddr = "127.0.0.1:1"
			}
		}
	}
}

func TestLinksAreCutAtBothEndsAndIsolatedAtOne(t *testing.T) {
	var told []string
	nodes := trio(t, &told)
	c := at(nodes[0].AdminAddr)
	both, err := c.Cut(t.Context(), "n1", "n3")
	require.NoError(t, err)
	require.Len(t, both, 2)
	require.Equal(t, []string{"n1 /v1/faults n3", "n3 /v1/faults n1"}, told)
	told = nil
	_, err = c.Isolate(t.Context(), "n2")
	require.NoError(t, err)
	require.Equal(t, []string{"n2 /v1/faults n1 n3"}, told)
	told = nil
	_, err = c.Heal(t.Context())
	require.NoError(t, err)
	require.Len(t, told, 3)

	_, twice := c.Cut(t.Context(), "n1", "n1")
	_, unknown := c.Isolate(t.Context(), "n9")
	for want, err := range map[string]error{
		"a node has no link to itself: name two nodes, not n1 twice": twice,
		`there is no node "n9", but n1, n2, n3`:                      unknown,
	} {
		require.ErrorAs(t, err, new(config.UsageError))
		require.ErrorContains(t, err, want)
	}
	silent(nodes, "n3")
	told = []string{"refuse n1 /v1/faults"}
	_, err = c.Heal(t.Context())
	require.ErrorContains(t, err, "n3 does not answer: what is cut there stays cut")
	require.ErrorContains(t, err, nodes[0].AdminAddr+": HTTP 409 Conflict: no")
	require.Equal(t, "n2 /v1/faults", told[1], "one that refuses keeps no other from it")
}

func TestTheHistoryIsATable(t *testing.T) {
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	var out bytes.Buffer
	require.NoError(t, PrintHistory(&out, []recording.Leadership{
		{Leader: "n1", Term: 7, From: from, To: from.Add(time.Minute), Reason: "LEASE_EXPIRED",
			ReasonBy: "n1"},
		{Leader: "n2", Term: 8, From: from, To: from.Add(time.Second), Node: "n3"},
		{Leader: "n3", Term: 9, From: from},
	}))
	require.Equal(t, strings.TrimPrefix(`
LEADER  TERM  FROM                     TO                       LASTED  REASON                   SAID BY
n1      7     2026-01-02 03:04:05.000  2026-01-02 03:05:05.000  1m0s    LEASE_EXPIRED            n1
n2      8     2026-01-02 03:04:05.000  2026-01-02 03:04:06.000  1s      unknown: n3 did not run  -
n3      9     2026-01-02 03:04:05.000  now                      -       -                        -
`, "\n"), out.String())
}
