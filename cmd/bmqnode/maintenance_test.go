package main_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// A pause keeps leadership with its node through a kill and through a stop of that node. If the
// others are resumed meanwhile, they elect.
func TestAPauseKeepsLeadershipThroughRestarts(t *testing.T) {
	t.Parallel()
	s := nodes.Play(t, 3, nodes.Quick())
	at := s.Admins()
	led := s.Agree(s.Nodes(), nodes.Above(0))
	leader := s.Named(led.Leader)
	others := s.Others(led.Leader)
	stdout := nodes.Does(t, "pause", "--for", "10m", "--admin", at)
	require.Equal(t, 3, strings.Count(stdout, ": elections are paused until 2"), stdout)
	nodes.Fails(t, 1, "resume them, or transfer to a named node", "step-down", "--admin", at)

	require.NoError(t, leader.Kill())
	// Their ends are one cause, unless a second began between the two.
	paused := `: elections are paused until \S+`
	why := regexp.MustCompile(`no eligible candidate is up \(` +
		others[0].Name + `(` + paused + `.*; |, )` + others[1].Name + paused)
	s.Eventually("nobody leads, and everybody says why", func() bool {
		stdout, _, _ := nodes.Run(t, "status", "--admin", at)
		return why.MatchString(stdout) && strings.Contains(stdout, "'bmqnode resume' ends that")
	})
	nodes.Fails(t, 1, "voter "+leader.Name+" was not told", "resume", "--admin", at)
	next := s.Agree(others, nodes.Above(led.Term))
	require.NoError(t, leader.Start()) // paused still, as its disk says
	s.Eventually("the doctor finds the rest of the pause", func() bool {
		stdout, _, _ := nodes.Run(t, append([]string{"doctor", "--json"}, strings.Split(at, ",")...)...)
		return strings.Contains(stdout, "elections are paused on "+leader.Name+" until 2")
	})

	nodes.Does(t, "pause", "--json", "--admin", at)
	leader = s.Named(next.Leader)
	require.NoError(t, leader.Stop(t.Context()))
	require.NoError(t, leader.Start())
	back := s.Agree(s.Nodes(), nodes.Above(next.Term))
	require.Equal(t, next.Leader, back.Leader)
	to := s.Others(next.Leader)[0].Name
	nodes.Does(t, "transfer", to, "--admin", at)
	nodes.Does(t, "resume", "--admin", at)
	require.Equal(t, cluster.NodeID(to), s.Agree(s.Nodes(), nodes.Above(back.Term)).Leader)
}

func TestSettingsOfARunningNodeLastUntilItRestarts(t *testing.T) {
	t.Parallel()
	options := nodes.Quick()
	options["priority"] = 2
	s := nodes.Play(t, 1, options)
	n1 := s.Nodes()[0]
	s.Agree(s.Nodes(), nodes.Above(0))
	of := func() cluster.Status {
		st, err := n1.Status(t.Context())
		require.NoError(t, err)
		return st
	}
	stdout := nodes.Does(t, "set", "n1", "--priority", "5", "--not-candidate",
		"--log-level", "debug", "--admin", n1.AdminAddr)
	require.Equal(t, "n1 has priority 5, is no candidate and logs at level debug, until it restarts\n",
		stdout)
	stdout = nodes.Does(t, "status", "--admin", n1.AdminAddr)
	require.Contains(t, stdout,
		"n1: priority 5 (set at run time), no candidate (set at run time)\n")
	stdout = nodes.Does(t, "set", "n1", "--not-candidate=false", "--json", "--admin",
		n1.AdminAddr)
	var told []struct{ Status cluster.Status }
	require.NoError(t, json.Unmarshal([]byte(stdout), &told))
	require.True(t, told[0].Status.Groups[0].Candidate)
	require.Equal(t, 5, told[0].Status.Groups[0].Priority, "it stays as it is")
	require.Equal(t, "debug", of().LogLevel)
	for args, want := range map[string]string{
		"set n1":                  "name what is to be set",
		"set n9 --priority 1":     `there is no node "n9"`,
		"set --priority 1":        "accepts 1 arg(s)",
		"set n1 --priority high":  "must be a whole number",
		"set n1 --log-level loud": "must be trace, debug, info, warn or error",
	} {
		_, stderr, code := nodes.Run(t, append(strings.Fields(args), "--admin", n1.AdminAddr)...)
		require.NotZero(t, code)
		require.Contains(t, stderr, want, args)
	}
	require.NoError(t, n1.Stop(t.Context()))
	require.NoError(t, n1.Start())
	s.Agree(s.Nodes(), nodes.Above(0))
	require.Equal(t, 2, of().Groups[0].Priority)
	require.NotEqual(t, "debug", of().LogLevel)
}
