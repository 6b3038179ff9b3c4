package main_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// joining prepares a mesh of n1 to n4, of which n4 has nothing but a name and whom to join.
func joining(t *testing.T, groups ...string) (
	s *nodes.Scene, voters []*procs.Node, n4 *procs.Node,
) {
	options := nodes.Quick()
	options["voters"] = []string{"n1", "n2", "n3"}
	options["groups"] = groups
	s = nodes.LayOut(t, options, procs.Numbered(4)...)
	n4 = s.Named("n4")
	nodes.Edit(t, n4, func(text string) string {
		return regexp.MustCompile(`voters:\n(- n\d\n)+`).ReplaceAllString(text, "")
	})
	voters = s.Others("n4")
	for _, n := range voters {
		require.NoError(t, n.Start())
	}
	return s, voters, n4
}

// changed makes a change of voters, after a dry run that changes nothing.
func changed(t *testing.T, change ...string) (said string) {
	before := nodes.Does(t, append([]string{"record", "get", "--json"}, change[len(change)-2:]...)...)
	planned := nodes.Does(t, append(append([]string{"voters"}, change...), "--dry-run")...)
	require.Contains(t, planned, "default: ")
	require.Contains(t, planned, "\nnothing was changed\n")
	after := nodes.Does(t, append([]string{"record", "get", "--json"}, change[len(change)-2:]...)...)
	require.Equal(t, before, after)
	return nodes.Does(t, append([]string{"voters"}, change...)...)
}

// votes are the voters of a node, and whether it is one itself.
func votes(t *testing.T, n *procs.Node) (voters []cluster.NodeID, g cluster.GroupStatus) {
	t.Helper()
	st, err := n.Status(t.Context())
	require.NoError(t, err)
	return st.Groups[0].Voters, st.Groups[0]
}

// get is what a node answers to a request.
func get(t *testing.T, n *procs.Node, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + n.AdminAddr + path)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}

// In very many elections voters change a few at a time, and what is printed stays short. A node
// that stops in good order leaves its leaderships to all others.
func TestVotersOfManyElectionsChange(t *testing.T) {
	t.Parallel()
	var groups []string
	for i := range 200 {
		groups = append(groups, fmt.Sprintf("g%03d", i))
	}
	s, three, n4 := joining(t, groups...)
	led := s.Agree(three, nil)
	require.NoError(t, n4.Start())
	at := []string{"--admin", s.Named(led.Leader).AdminAddr}
	for _, change := range []string{"add", "remove"} {
		become := map[string]string{"add": "is a voter", "remove": "is no voter"}[change]
		s.Eventually("n4 can be "+change+"ed", func() bool {
			dry := append([]string{"voters", change, "n4", "--dry-run"}, at...)
			planned, _, code := nodes.Run(t, dry...)
			return code == 0 && strings.Contains(planned, "elections more: n4")
		})
		text := nodes.Does(t, append([]string{"voters", change, "n4"}, at...)...)
		lines := strings.Split(strings.TrimSpace(text), "\n")
		require.Less(t, len(lines), 60, text)
		require.Equal(t, "169 elections more: n4 "+become, lines[len(lines)-1])
	}
	nodes.Fails(t, 1, "zz is not one of the voters n1, n2, n3",
		append([]string{"voters", "remove", "zz"}, at...)...)

	leads := func(n *procs.Node) int {
		st, err := n.Status(t.Context())
		require.NoError(t, err)
		return st.Elections.Leading
	}
	others := s.Others(led.Leader, "n4")
	before := [2]int{leads(others[0]), leads(others[1])}
	gone := 201 - before[0] - before[1]
	require.NoError(t, s.Named(led.Leader).Signal(syscall.SIGTERM))
	s.Eventually("the others lead all",
		func() bool { return leads(others[0])+leads(others[1]) == 201 })
	require.Greater(t, leads(others[0]), before[0]+gone/5)
	require.Greater(t, leads(others[1]), before[1]+gone/5)
}

func TestVotersChangeWhileTheClusterRuns(t *testing.T) {
	t.Parallel()
	s, three, n4 := joining(t)
	led := s.Agree(three, nil)
	follower := s.Others(led.Leader, "n4")[0]
	file := filepath.Join(t.TempDir(), "value")
	require.NoError(t, os.WriteFile(file, []byte("assignments\n"), 0o600))
	at := []string{"--admin", follower.AdminAddr}
	do := func(args ...string) string { return nodes.Does(t, append(args, at...)...) }
	fails := func(want string, args ...string) { nodes.Fails(t, 1, want, append(args, at...)...) }

	require.Regexp(t, `^value \d+\.2, 12 bytes: a quorum keeps it\n$`,
		do("record", "put", file, "--if-match", "0.0"))
	fails("the record has another value", "record", "put", file, "--if-match", "0.0")
	require.Equal(t, "assignments\n", do("record", "get"))
	watch := nodes.Launch(t, exec.Command(nodes.Binary, "record", "watch", at[0], at[1]))
	s.Eventually("the watch shows the value", func() bool {
		return strings.Contains(watch.Said.String(), `12 bytes: "assignments\n"`)
	})

	// A machine that is new, with a name and whom to join.
	fails("has no link to n4", "voters", "add", "n4")
	require.NoError(t, n4.Start())
	s.Agree(s.Nodes(), nodes.Same(led))
	changed(t, append([]string{"add", "n4"}, at...)...)
	s.Agree(s.Nodes(), nodes.Same(led))
	s.Eventually("all count four", func() bool {
		voters, g := votes(t, n4)
		return len(voters) == 4 && g.Candidate && g.Quorum == 3
	})
	require.Regexp(t, `n4 +[0-9a-f]{8}  up\n3 of 4 are needed\n`, do("voters"))
	require.Contains(t, do("doctor"), "its voters are n1, n2, n3, and the record's n1, n2, n3, n4")

	// The leader goes: it hands over first, and follows without a vote.
	old := s.Named(led.Leader)
	changed(t, append([]string{"remove", old.Name}, at...)...)
	next := s.Agree(s.Nodes(), nodes.Above(led.Term))
	require.NotEqual(t, led.Leader, next.Leader)
	s.Eventually("it knows", func() bool {
		voters, g := votes(t, old)
		return len(voters) == 3 && !g.Candidate
	})
	require.NoError(t, old.Stop(t.Context()))

	// One that is removed while it is down learns it when it is back, and disturbs nobody.
	gone := s.Others(led.Leader, next.Leader)[0]
	require.NoError(t, gone.Kill())
	at[1] = s.Named(next.Leader).AdminAddr
	changed(t, append([]string{"remove", gone.Name}, at...)...)
	require.NoError(t, gone.Start())
	s.Eventually("it knows, too", func() bool {
		st, err := gone.Status(t.Context())
		return err == nil && len(st.Groups[0].Voters) == 2 && st.Groups[0].Leader == next.Leader
	})
	// What comes back may have voted in a higher term: the leader moves to one above it, and stays.
	stays := func(g cluster.GroupStatus) bool { return g.Leader == next.Leader }
	s.Agree(s.Others(led.Leader), stays)
	changed(t, append([]string{"add", gone.Name}, at...)...)

	// A machine comes back with an empty disk.
	lost := s.Others(led.Leader, next.Leader, cluster.NodeID(gone.Name))[0]
	require.NoError(t, lost.Kill())
	require.NoError(t, os.RemoveAll(filepath.Join(lost.Dir, "state")))
	require.NoError(t, lost.Start())
	s.Eventually("it is no voter on that disk", func() bool {
		said, _, code := nodes.Run(t, append([]string{"doctor"}, at...)...)
		return code == 1 && strings.Contains(said, "docs/errors.md#voter-uncounted")
	})
	require.Contains(t, do("status"), "FOLLOWER (not counted)")
	require.Contains(t, do("status"), "for good: 'bmqnode voters replace "+lost.Name+"'")
	require.Regexp(t, lost.Name+" +[0-9a-f]{8}  up, counts for nothing: it runs on disk", do("voters"))
	s.Eventually("it is not ready", func() bool {
		return strings.Contains(get(t, lost, "/readyz"), "it counts for nothing")
	})
	require.Contains(t, get(t, s.Named(next.Leader), "/metrics"), "\nbmqelect_spare_voters 0\n")
	changed(t, append([]string{"replace", lost.Name}, at...)...)
	s.Agree(s.Others(led.Leader), stays)
	require.Equal(t, "assignments\n", do("record", "get"))
	s.Eventually("all is well", func() bool {
		said, _, code := nodes.Run(t, append([]string{"doctor"}, at...)...)
		return code == 0 && strings.Contains(said, "is on every voter that answers")
	})
	require.Contains(t, watch.Said.String(), "voters n1, n2, n3, n4")
}

func TestMistakesInAChangeOfVotersAreNamed(t *testing.T) {
	t.Parallel()
	options := nodes.Quick()
	options["quorum"] = 3
	s := nodes.Play(t, 3, options)
	led := s.Agree(s.Nodes(), nil)
	at := s.Admins()
	nodes.Fails(t, 1, "Quorum is set to 3, and only a majority, 2 of 3", "voters", "remove", "n1",
		"--admin", at)
	require.JSONEq(t, `{"group":"default","text":"n1 is a voter","done":true}`,
		nodes.Does(t, "voters", "add", "n1", "--json", "--admin", at))
	nodes.Fails(t, 2, "/dev/zero has more than 1048576 bytes, the limit of a value", "record", "put",
		"/dev/zero", "--admin", at)
	nodes.Fails(t, 2, "open /nowhere: no such file", "record", "put", "/nowhere", "--admin", at)
	require.NoError(t, s.Named(led.Leader).Kill())
	s.Eventually("nobody leads", func() bool {
		_, _, code := nodes.Run(t, "voters", "remove", "n1", "--admin", at)
		return code == 3
	})
	nodes.Fails(t, 3, "no node leads now", "record", "put", "/dev/null", "--admin", at)
	nodes.Fails(t, 3, "no node leads now", "record", "get", "--newest", "--admin", at)
	nodes.Fails(t, 1, "does not know a value", "record", "get", "--admin", at)
	require.Contains(t, nodes.Does(t, "voters", "--admin", at), "which does not lead: no leader: ")
}

// Two of three voters are lost for good. The one that is left leads alone, with the record, whose
// voters are then itself; a new machine makes two of them.
func TestTheRecordOutlivesAnEmergency(t *testing.T) {
	t.Parallel()
	s, three, n4 := joining(t)
	s.Agree(three, nil)
	file := filepath.Join(t.TempDir(), "value")
	require.NoError(t, os.WriteFile(file, []byte("kept"), 0o600))
	left := s.Named("n2")
	at := []string{"--admin", left.AdminAddr}
	nodes.Does(t, "record", "put", file, at[0], at[1])
	s.Eventually("n2 has the value", func() bool {
		st, err := left.Status(t.Context())
		return err == nil && st.Groups[0].Record != nil && st.Groups[0].Record.ValueSize == 4
	})
	for _, n := range three {
		require.NoError(t, n.Kill())
	}
	nodes.Does(t, "emergency", "--config", left.ConfigFile, "--lost", "n1,n3", "--confirm",
		cluster.DefaultCluster)
	require.NoError(t, left.Start())
	s.Agree([]*procs.Node{left}, nodes.Above(0))
	s.Eventually("n2 leads, with the record", func() bool {
		stdout, _, code := nodes.Run(t, "record", "get", at[0], at[1])
		return code == 0 && stdout == "kept"
	})
	require.NoError(t, n4.Start())
	s.Eventually("n4 is a voter", func() bool {
		_, _, code := nodes.Run(t, "voters", "add", "n4", at[0], at[1])
		return code == 0
	})
	require.Contains(t, nodes.Does(t, "voters", at[0], at[1]), "\n2 of 2 are needed\nrecord ")
}
