package main_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// TestScriptsLearnWhoLeads freezes and kills what a script asks, until there is no leader.
func TestScriptsLearnWhoLeads(t *testing.T) {
	t.Parallel()
	s, first := nodes.Elected(t, 3)
	leader, others := s.Named(first.Leader), s.Others(first.Leader)
	for _, n := range s.Nodes() {
		stdout := nodes.Does(t, "leader", "--admin", n.AdminAddr)
		require.Equal(t, leader.Name+"\n", stdout)
	}
	stdout := nodes.Does(t, "leader", "--json", "--admin", others[0].AdminAddr)
	var l admin.Leader
	require.NoError(t, json.Unmarshal([]byte(stdout), &l))
	require.Equal(t, first.Leader, l.Leader)
	require.Equal(t, first.Term, l.Term)
	require.Equal(t, leader.AdminAddr, l.AdminAddr)
	require.Positive(t, l.LeaseLeft)

	stdout = nodes.Does(t, "leader", "--confirm", "--json", "--admin", others[1].AdminAddr)
	l = admin.Leader{}
	require.NoError(t, json.Unmarshal([]byte(stdout), &l))
	require.Equal(t, first.Leader, l.Leader)
	require.True(t, l.Confirmed)

	nodes.Fails(t, 2, `no election "jobs"`, "leader", "--group", "jobs", "--admin", leader.AdminAddr)
	nodes.Fails(t, 1, "no node answers", "leader", "--admin", "127.0.0.1:1")

	// Another one leads while the old leader is frozen: it is found, and not the old one.
	require.NoError(t, leader.Signal(syscall.SIGSTOP))
	at := strings.Join([]string{leader.AdminAddr, others[0].AdminAddr, others[1].AdminAddr}, ",")
	s.Eventually("the next leader is told", func() bool {
		stdout, _, code := nodes.Run(t, "leader", "--admin", at)
		return code == 0 && stdout != leader.Name+"\n"
	})
	require.NoError(t, leader.Kill())
	next := s.Named(s.Agree(others, nil).Leader)
	require.NoError(t, next.Kill())
	var stderr string
	var code int
	s.Eventually("there is none", func() bool {
		stdout, stderr, code = nodes.Run(t, "leader", "--admin", at)
		return code == 3
	})
	require.Empty(t, stdout)
	require.Contains(t, stderr, "no node leads now; n")
	stdout, _, code = nodes.Run(t, "leader", "--json", "--admin", at)
	require.Equal(t, 3, code)
	l = admin.Leader{}
	require.NoError(t, json.Unmarshal([]byte(stdout), &l), stdout)
	require.Empty(t, l.Leader)
	require.NotEmpty(t, l.Reason)
	_, _, code = nodes.Run(t, "transfer", "--admin", at)
	require.Equal(t, 3, code)
	_, _, code = nodes.Run(t, "leader", "--wait", "1s", "--admin", at)
	require.Equal(t, 3, code, "there is none after a second, too")
	require.NoError(t, leader.Start())
	stdout = nodes.Does(t, "leader", "--wait", nodes.Patience.String(), "--admin", at)
	require.NotEmpty(t, stdout)
}
