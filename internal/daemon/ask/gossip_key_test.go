package ask

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// TestRotationGoesRound step by step: no node takes one before all have taken the one
// before, and it stops where one does not.
func TestRotationGoesRound(t *testing.T) {
	for name, c := range map[string]struct {
		refuses string // a node and the step that it refuses
		silent  string // a node that has an answer no more
		voter   bool   // that one has a vote
		gossip  string // what the others hear of that one
		link    string // to that one
		unnamed bool   // only nodes name the address of n3
		want    []string
		skipped bool
		err     string
	}{
		"all well": {want: []string{"add n1 n2 n3", "use n1 n2 n3", "remove n1 n2 n3"}},
		"one refuses to use it": {refuses: "n2 use", want: []string{"add n1 n2 n3", "use n1 n3"},
			err: `stopped at the step "use": node n2: `},
		"one refuses to remove": {refuses: "n3 remove",
			want: []string{"add n1 n2 n3", "use n1 n2 n3", "remove n1 n2"},
			err:  `stopped at the step "remove": node n3: `},
		"a voter is down": {silent: "n4", voter: true, want: nil,
			err: `stopped at the step "add": node n4 cannot be asked: `},
		"an observer is down": {silent: "n4", gossip: "dead", link: "down (eof)", skipped: true,
			want: []string{"add n1 n2 n3", "use n1 n2 n3", "remove n1 n2 n3"}},
		"gossip has an invented member": {silent: "n4", gossip: "alive", skipped: true,
			want: []string{"add n1 n2 n3", "use n1 n2 n3", "remove n1 n2 n3"}},
		"an observer that runs is silent": {silent: "n4", gossip: "alive", link: linkUp,
			err: `stopped at the step "add": node n4 cannot be asked: `},
		"only nodes name an address": {unnamed: true, err: "a key is not sent there"},
	} {
		t.Run(name, func(t *testing.T) {
			pki := t.TempDir()
			_, err := certs.Issue(pki, "bees", []string{"n1"}, time.Hour)
			require.NoError(t, err)
			before, err := certs.GossipKeys(pki)
			require.NoError(t, err)
			var mu sync.Mutex
			got := map[string]string{}
			nodes := trio(t, nil)
			cl := Cluster{}
			for _, st := range nodes {
				if c.silent != "" {
					m := cluster.MemberStatus{Node: cluster.NodeID(c.silent), Voter: c.voter,
						AdminAddr: "127.0.0.1:1", GossipAddr: "127.0.0.1:1", Link: c.link, Gossip: c.gossip}
					st.Members = append(st.Members, m)
				}
				if c.voter {
					st.Groups[0].Voters = append(st.Groups[0].Voters, cluster.NodeID(c.silent))
				}
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					var req admin.GossipKeyRequest
					if r.Method == http.MethodPost {
						_ = json.NewDecoder(r.Body).Decode(&req)
						if fmt.Sprint(st.Node, " ", req.Step) == c.refuses {
							http.Error(w, "no", http.StatusConflict)
							return
						}
						mu.Lock()
						defer mu.Unlock()
						got[req.Key] += fmt.Sprintf("%s %s\n", st.Node, req.Step)
					}
					_ = json.NewEncoder(w).Encode(st)
				}))
				t.Cleanup(server.Close)
				cl.Addrs = append(cl.Addrs, strings.TrimPrefix(server.URL, "http://"))
			}
			for _, st := range nodes {
				for i := range st.Members {
					if st.Members[i].Node <= "n3" {
						st.Members[i].AdminAddr = cl.Addrs[st.Members[i].Node[1]-'1']
					}
				}
				st.AdminAddr = cl.Addrs[st.Node[1]-'1']
			}
			if c.unnamed {
				cl.Addrs = cl.Addrs[:2]
			}
			key, steps := certs.NewGossipKey(), map[certs.GossipStep][]string{}
			var order []certs.GossipStep
			skipped := map[cluster.NodeID]string{}
			err = cl.RotateGossipKey(t.Context(), pki, key, func(step certs.GossipStep, a Answer) {
				if a.Error != "" {
					skipped[a.Node] = a.Error
					return
				}
				if len(steps[step]) == 0 {
					order = append(order, step)
				}
				steps[step] = append(steps[step], string(a.Node))
			})
			if c.err == "" {
				require.NoError(t, err)
				keys, err := certs.GossipKeys(pki + "/n1")
				require.NoError(t, err)
				require.Equal(t, []certs.GossipKey{key}, keys)
			} else {
				require.ErrorContains(t, err, c.err)
				require.ErrorContains(t, err, "repeat the command")
				require.NotContains(t, err.Error(), key.Text())
			}
			var all []string
			for _, step := range order {
				told := steps[step]
				require.Subset(t, []string{"n1", "n2", "n3"}, told)
				all = append(all, string(step)+" "+strings.Join(slices.Sorted(slices.Values(told)), " "))
			}
			require.Equal(t, c.want, all)
			require.Equal(t, c.skipped, skipped["n4"] != "", skipped)
			if len(c.want) == 0 {
				now, err := certs.GossipKeys(pki)
				require.NoError(t, err)
				require.Equal(t, before, now, "all are asked before anything changes")
			}
			require.Equal(t, len(c.want) > 0, got[key.Text()] != "", "the nodes got the key")
		})
	}
}
