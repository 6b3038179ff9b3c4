package main_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// admins are the admin addresses of a scene's nodes.
func (s *scene) admins() string {
	var addrs []string
	for _, n := range s.Nodes() {
		addrs = append(addrs, n.AdminAddr)
	}
	return strings.Join(addrs, ",")
}

// TestAPauseKeepsLeadershipThroughRestarts of the leader, by a kill and by a stop, and
// until it is resumed without one.
func TestAPauseKeepsLeadershipThroughRestarts(t *testing.T) {
	t.Parallel()
	s := play(t, 3, quick())
	at := s.admins()
	led := s.agree(s.Nodes(), above(0))
	leader := s.node(led.Leader)
	others := s.others(led.Leader)
	stdout := does(t, "pause", "--for", "10m", "--admin", at)
	require.Equal(t, 3, strings.Count(stdout, ": elections are paused until 2"), stdout)
	fails(t, 1, "resume them, or transfer to a named node", "step-down", "--admin", at)

	require.NoError(t, leader.Kill())
	// Their ends are one cause, unless a second began between the two.
	paused := `: elections are paused until \S+`
	why := regexp.MustCompile(`no eligible candidate is up \(` +
		others[0].Name + `(` + paused + `.*; |, )` + others[1].Name + paused)
	s.eventually("nobody leads, and everybody says why", func() bool {
		stdout, _, _ := bmqnode(t, "status", "--admin", at)
		return why.MatchString(stdout) && strings.Contains(stdout, "'bmqnode resume' ends that")
	})
	stdout, stderr, code := bmqnode(t, "resume", "--admin", at)
	require.Equal(t, 1, code, stdout)
	require.Contains(t, stderr, "voter "+leader.Name+" was not told")
	began := time.Now()
	next := s.agree(others, above(led.Term))
	t.Logf("%s leads %s after resume", next.Leader, time.Since(began).Round(time.Millisecond))
	require.NoError(t, leader.Start()) // paused still, as its disk says
	s.eventually("the doctor finds the rest of the pause", func() bool {
		stdout, _, _ := bmqnode(t, append([]string{"doctor", "--json"}, strings.Split(at, ",")...)...)
		return strings.Contains(stdout, "elections are paused on "+leader.Name+" until 2")
	})

	does(t, "pause", "--json", "--admin", at)
	leader = s.node(next.Leader)
	require.NoError(t, leader.Stop(t.Context()))
	require.NoError(t, leader.Start())
	back := s.agree(s.Nodes(), above(next.Term))
	require.Equal(t, next.Leader, back.Leader)
	to := s.others(next.Leader)[0].Name
	does(t, "transfer", to, "--admin", at)
	does(t, "resume", "--admin", at)
	require.Equal(t, cluster.NodeID(to), s.agree(s.Nodes(), above(back.Term)).Leader)
}

func TestAPauseOfNoLengthIsRefusedBeforeAnybodyIsAsked(t *testing.T) {
	t.Parallel()
	for _, span := range []string{"0s", "-1s", "25h"} {
		fails(t, 2, "must be positive and at most 24h", "pause", "--for", span, "--admin", "127.0.0.1:1")
	}
}

func TestSettingsOfARunningNodeLastUntilItRestarts(t *testing.T) {
	t.Parallel()
	options := quick()
	options["priority"] = 2
	s := play(t, 1, options)
	n1 := s.Nodes()[0]
	s.agree(s.Nodes(), above(0))
	of := func() cluster.Status {
		st, err := n1.Status(t.Context())
		require.NoError(t, err)
		return st
	}
	stdout := does(t, "set", "n1", "--priority", "5", "--not-candidate",
		"--log-level", "debug", "--admin", n1.AdminAddr)
	require.Equal(t, "n1 has priority 5, is no candidate and logs at level debug, until it restarts\n",
		stdout)
	stdout = does(t, "status", "--admin", n1.AdminAddr)
	require.Contains(t, stdout,
		"n1: priority 5 (set at run time), no candidate (set at run time)\n")
	stdout = does(t, "set", "n1", "--not-candidate=false", "--json", "--admin",
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
		_, stderr, code := bmqnode(t, append(strings.Fields(args), "--admin", n1.AdminAddr)...)
		require.NotZero(t, code)
		require.Contains(t, stderr, want, args)
	}
	stdout, _, _ = bmqnode(t, "__complete", "set", "--admin", n1.AdminAddr, "")
	require.Equal(t, "n1\n:4\n", stdout)
	require.NoError(t, n1.Stop(t.Context()))
	require.NoError(t, n1.Start())
	s.agree(s.Nodes(), above(0))
	require.Equal(t, 2, of().Groups[0].Priority)
	require.NotEqual(t, "debug", of().LogLevel)
}
