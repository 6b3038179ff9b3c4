package admin

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// get asks for a document that must be there.
func get[T any](t *testing.T, c *Client, path string) (v T) {
	code, text := request(t, c, "GET", path, "")
	require.Equal(t, http.StatusOK, code, text)
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

func TestOtherElectionsAreFoundByName(t *testing.T) {
	node, c := serve(t, nil)
	_, err := node.Election("jobs/1", cluster.ElectionConfig{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		code, text := request(t, c, "GET", "/v1/elections/jobs%2F1/leader", "")
		return code == http.StatusOK && strings.Contains(text, `"group": "jobs/1"`)
	}, testkit.Limit(10*time.Second), time.Millisecond)
}

func TestTheLeaderSaysSo(t *testing.T) {
	node, c := serve(t, nil)
	leads(t, node)
	_, err := node.NextLSN()
	require.NoError(t, err)
	newest, err := node.NextLSN()
	require.NoError(t, err)
	for _, path := range []string{"/v1/leader", "/v1/elections/default/leader"} {
		l := get[Leader](t, c, path)
		require.Equal(t, Leader{Group: "default", Leader: "a", Meta: "http://a.example",
			AdminAddr: c.addr, Term: newest.Term, LSN: newest}, l)
		require.True(t, l.Term.Led())
		resp, body := exchange(t, c, "HEAD", path, "")
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Empty(t, body)
		require.Equal(t, []string{"a", c.addr, l.Term.String()},
			[]string{resp.Header.Get(leaderHeader), resp.Header.Get(adminHeader),
				resp.Header.Get(termHeader)})
	}
}

func TestAFollowerNamesTheLeader(t *testing.T) {
	st := cluster.Status{Node: "a", Members: []cluster.MemberStatus{
		{Node: "b", AdminAddr: "192.0.2.2:7402", GossipAddr: "192.0.2.2:7400"},
		{Node: "c", AdminAddr: "[::]:7402", GossipAddr: "192.0.2.3:7400"},
	}}
	for name, c := range map[string]struct {
		g    cluster.GroupStatus
		want NotLeader
	}{
		"follows": {
			cluster.GroupStatus{Leader: "b", LeaderMeta: "http://b", Term: 7},
			NotLeader{Problem{"Service Unavailable", 503, "node a does not lead g: node b does in term 7"},
				"g", "b", "http://b", "192.0.2.2:7402", 7},
		},
		"of one that listens everywhere": {
			cluster.GroupStatus{Leader: "c", Term: 7},
			NotLeader{Problem{"Service Unavailable", 503, "node a does not lead g: node c does in term 7"},
				"g", "c", "", "192.0.2.3:7402", 7},
		},
		"of one that it has not met": {
			cluster.GroupStatus{Leader: "d", Term: 7},
			NotLeader{Problem{"Service Unavailable", 503, "node a does not lead g: node d does in term 7"},
				"g", "d", "", "", 7},
		},
		"whose own lease ran out": {
			cluster.GroupStatus{Leader: "a", Role: "LEADER", Term: 7},
			NotLeader{Problem{"Service Unavailable", 503, "node a does not lead g: its lease has run out"},
				"g", "", "", "", 0},
		},
	} {
		c.g.Group = "g"
		require.Equal(t, c.want, notLeader(st, c.g), name)
	}
}

func TestAddressesOfThoseThatListenEverywhere(t *testing.T) {
	for admin, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1:80", "0.0.0.0:80": "192.0.2.9:80", "[::]:80": "192.0.2.9:80",
		":80":             "192.0.2.9:80",
		"node.example:80": "node.example:80", "": "",
	} {
		require.Equal(t, want,
			AddrOf(cluster.MemberStatus{AdminAddr: admin, GossipAddr: "192.0.2.9:7400"}), admin)
	}
	require.Equal(t, "0.0.0.0:80", AddrOf(cluster.MemberStatus{AdminAddr: "0.0.0.0:80"}),
		"nothing better is known")
}
