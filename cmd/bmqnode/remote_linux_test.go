package main_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// TestCommandsDoNotWaitForAFrozenNode freezes a follower. Commands that have less time
// than they give a node to answer (3 s) get the answer of those that live.
func TestCommandsDoNotWaitForAFrozenNode(t *testing.T) {
	t.Parallel()
	s, first := nodes.Elected(t, 3)
	leader := s.Named(first.Leader)
	frozen, other := s.Others(first.Leader)[0], s.Others(first.Leader)[1]
	require.NoError(t, frozen.Signal(syscall.SIGSTOP))
	s.Eventually("the leader has no link to it any more", func() bool {
		st, err := leader.Status(t.Context())
		return err == nil && admin.MemberIn(st, cluster.NodeID(frozen.Name)).Link != "up"
	})
	both := strings.Join([]string{frozen.AdminAddr, other.AdminAddr}, ",")
	for _, at := range []string{leader.AdminAddr, other.AdminAddr, both} {
		nodes.Fails(t, 1, "it is not connected", "transfer", "--timeout", "2s", "--to", frozen.Name,
			"--admin", at)
	}
	began := time.Now()
	stdout := nodes.Does(t, "status", "--admin", both)
	require.Contains(t, stdout, frozen.Name+": "+frozen.AdminAddr+": does not answer within 3s")
	require.Less(t, time.Since(began), testkit.Limit(6*time.Second),
		"addresses are asked at the same time")

	found, _ := examine(t, "--admin", both)
	require.Equal(t, frozen.Name, found["no-answer"][0].Where)
	require.Len(t, found["no-answer"], 1)

	stdout = nodes.Does(t, "step-down", "--timeout", "2s", "--admin", both)
	require.Contains(t, stdout, leader.Name+" leads no more; "+other.Name+" leads in term ")
}

// TestTheTokenGoesOnlyWhereTheOperatorSays lets a node tell the others the address of a
// stranger as that of its admin side.
func TestTheTokenGoesOnlyWhereTheOperatorSays(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked, tokens := 0, []string(nil)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		tokens = append(tokens, r.Header["Authorization"]...)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(elsewhere.Close)
	options, _, token := alone(t)
	delete(options, "admin-socket")
	options["voters"] = []string{"n1"}
	s := nodes.Play(t, 1, options)
	s.Agree(s.Nodes(), nil)
	stranger(s, "evil", map[string]any{"voters": []string{"n1"},
		"advertise-admin": strings.TrimPrefix(elsewhere.URL, "http://")})
	at := []string{"--admin", s.Nodes()[0].AdminAddr, "--admin-token-file", token}
	s.Eventually("the stranger is asked", func() bool {
		stdout, _, _ := nodes.Run(t, append([]string{"status"}, at...)...)
		return strings.Contains(stdout, "only a node named this address: name it with --admin")
	})
	nodes.Run(t, append([]string{"doctor"}, at...)...)
	_, stderr, code := nodes.Run(t, append([]string{"transfer"}, at...)...)
	require.Equal(t, 1, code)
	require.NotContains(t, stderr, "token", "the named one has got it")
	mu.Lock()
	defer mu.Unlock()
	require.Positive(t, asked)
	require.Empty(t, tokens)
}
