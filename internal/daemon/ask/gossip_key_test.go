package ask

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/certs"
)

// TestRotationGoesRound step by step: no node takes one before all have taken the one
// before, and it stops where one does not.
func TestRotationGoesRound(t *testing.T) {
	const key = " /v1/gossip-key "
	add := []string{"n1" + key + "add", "n2" + key + "add", "n3" + key + "add"}
	use := []string{"n1" + key + "use", "n2" + key + "use", "n3" + key + "use"}
	remove := []string{"n1" + key + "remove", "n2" + key + "remove", "n3" + key + "remove"}
	n4 := cluster.MemberStatus{Node: "n4", AdminAddr: "127.0.0.1:1", GossipAddr: "127.0.0.1:1"}
	like := func(voter bool, gossip, link string) *cluster.MemberStatus {
		m := n4
		m.Voter, m.Gossip, m.Link = voter, gossip, link
		return &m
	}
	for name, c := range map[string]struct {
		refuse  string
		silent  *cluster.MemberStatus // as the others see a node that does not answer
		unnamed bool                  // only nodes name the address of n3
		want    [][]string            // the steps that are taken
		skipped bool
		err     string
	}{
		"all well": {want: [][]string{add, use, remove}},
		"one refuses to use it": {refuse: "n2" + key + "use",
			want: [][]string{add, {use[0], use[2]}}, err: `stopped at the step "use": node n2: `},
		"one refuses to remove": {refuse: "n3" + key + "remove",
			want: [][]string{add, use, remove[:2]}, err: `stopped at the step "remove": node n3: `},
		"a voter is down": {silent: like(true, "", ""),
			err: `stopped at the step "add": node n4 cannot be asked: `},
		"an observer is down": {silent: like(false, "dead", "down (eof)"), skipped: true,
			want: [][]string{add, use, remove}},
		"gossip has an invented member": {silent: like(false, "alive", ""), skipped: true,
			want: [][]string{add, use, remove}},
		"an observer that runs is silent": {silent: like(false, "alive", linkUp),
			err: `stopped at the step "add": node n4 cannot be asked: `},
		"only nodes name an address": {unnamed: true, err: "a key is not sent there"},
	} {
		t.Run(name, func(t *testing.T) {
			pki := t.TempDir()
			_, err := certs.Issue(pki, "bees", []string{"n1"}, time.Hour)
			require.NoError(t, err)
			before, err := certs.GossipKeys(pki + "/n1")
			require.NoError(t, err)
			told := []string{"refuse " + cmp.Or(c.refuse, "nothing")}
			cl := Cluster{}
			for _, st := range trio(t, &told) {
				if c.silent != nil {
					st.Members = append(st.Members, *c.silent)
				}
				if c.silent != nil && c.silent.Voter {
					st.Groups[0].Voters = append(st.Groups[0].Voters, c.silent.Node)
				}
				if st.Node != "n3" || !c.unnamed {
					cl.Addrs = append(cl.Addrs, st.AdminAddr)
				}
			}
			key, skipped := certs.NewGossipKey(), false
			var shown []string
			err = cl.RotateGossipKey(t.Context(), pki, key, func(step certs.GossipStep, a Answer) {
				if skipped = skipped || a.Error != ""; a.Error == "" {
					shown = append(shown, string(a.Node)+" /v1/gossip-key "+string(step))
				}
			})
			require.Equal(t, c.skipped, skipped)
			require.Len(t, told[1:], len(shown))
			for i, step := range shown {
				require.Equal(t, step+" "+key.Text(), told[1+i])
			}
			for _, step := range c.want {
				require.ElementsMatch(t, step, shown[:len(step)])
				shown = shown[len(step):]
			}
			require.Empty(t, shown)
			now, failed := certs.GossipKeys(pki + "/n1")
			require.NoError(t, failed)
			if c.err == "" {
				require.NoError(t, err)
				require.Equal(t, []certs.GossipKey{key}, now)
				return
			}
			require.ErrorContains(t, err, c.err)
			require.ErrorContains(t, err, "repeat the command")
			require.NotContains(t, err.Error(), key.Text())
			if len(c.want) == 0 {
				require.Equal(t, before, now, "all are asked before anything changes")
			}
		})
	}
}
