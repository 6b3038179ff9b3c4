package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// shortDir is a directory for sockets, whose paths are bounded.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "bmq")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// alone are the options of a node that is the only voter and has a private side.
func alone(t *testing.T) (options map[string]any, socket, token string) {
	dir := shortDir(t)
	socket, token = filepath.Join(dir, "admin.sock"), filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("correct-horse-battery-staple\n"), 0o600))
	options = quick()
	options["admin-socket"], options["admin-token-file"] = socket, token
	return options, "unix:" + socket, token
}

func TestCommandsReachANodeByItsSocketWithItsToken(t *testing.T) {
	t.Parallel()
	options, socket, token := alone(t)
	options["admin-addr"] = ""
	s := play(t, 1, options)
	s.eventually("it leads", func() bool {
		stdout, _, code := bmqnode(t, "status", "--admin", socket)
		return code == 0 && bytes.Contains([]byte(stdout), []byte("LEADER  n1"))
	})
	_, err := net.Dial("tcp", s.Nodes()[0].AdminAddr)
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "there is the socket alone")
	for _, command := range [][]string{{"fault", "heal"}, {"transfer"}, {"step-down"},
		{"forget", "n9"}, {"pause"}, {"resume"}, {"set", "n1", "--priority", "1"}} {
		fails(t, 1, "this needs the node's token", append(command, "--admin", socket)...)
	}
	does(t, "fault", "heal", "--admin", socket, "--admin-token-file", token)
	t.Run("as another process", func(t *testing.T) {
		fails(t, 1, "another process listens there", "run", "--node", "b", "--voters", "b", "--data-dir",
			t.TempDir(),
			"--admin-addr", "", "--admin-socket", socket[len("unix:"):])
	})
	stdout, stderr, code := bmqnodeWith(t, []string{"BMQNODE_TOKEN_FILE=" + token}, "step-down",
		"--for", "1h", "--admin", socket)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "n1 leads no more; no successor yet")
}

func TestFurtherElectionsAreLedAndHandedOverEachByItself(t *testing.T) {
	t.Parallel()
	options := quick()
	options["groups"] = []string{"jobs", "mail"}
	s := play(t, 3, options)
	leaders := func() map[string]string {
		by := map[string]string{}
		for _, e := range s.transitions(becameLeader) {
			by[e.Group] = string(e.Node)
		}
		return by
	}
	s.eventually("each election has a leader", func() bool { return len(leaders()) == 3 })
	before := leaders()
	at := s.Nodes()[0].AdminAddr
	s.eventually("jobs can be handed over", func() bool {
		_, _, code := bmqnode(t, "transfer", "--group", "jobs", "--admin", at)
		return code == 0
	})
	s.eventually("it is led by another node",
		func() bool { return leaders()["jobs"] != before["jobs"] })
	require.Equal(t, before["mail"], leaders()["mail"])
	require.Equal(t, before["default"], leaders()["default"])
	nodes, none := "n1\nn2\nn3\n:4\n", ":4\n"
	for _, c := range [][2]string{
		{"transfer AT ", nodes}, {"transfer AT --to ", nodes}, {"transfer AT n1 ", none},
		{"forget AT ", nodes}, {"fault cut AT n1 ", nodes}, {"fault heal AT ", none},
		{"leader AT --group ", "default\njobs\nmail\n:4\n"}, {"status AT ", none},
	} {
		words := strings.Split(strings.Replace("__complete "+c[0], "AT", "--admin "+at, 1), " ")
		stdout := does(t, words...)
		require.Equal(t, c[1], stdout, c[0])
	}
	stdout := does(t, "status", "--json", "--group", "jobs", "--admin", at)
	var answers []struct{ Status cluster.Status }
	require.NoError(t, json.Unmarshal([]byte(stdout), &answers))
	for _, a := range answers {
		require.Len(t, a.Status.Groups, 1)
		require.Equal(t, "jobs", a.Status.Groups[0].Group)
	}
	fails(t, 2, `takes part in no election "post"`, "step-down", "--group", "post", "--admin", at)
}

// bmqnodeWith runs the command with more in its environment.
func bmqnodeWith(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestTheAdvertisedAdminAddressIsToldAndAnswered(t *testing.T) {
	t.Parallel()
	s := play(t, 1, map[string]any{"advertise-admin": "n1.example:7402", "insecure": true})
	n := s.Nodes()[0]
	s.eventually("it answers", func() bool {
		st, err := n.Status(t.Context())
		return err == nil && st.AdminAddr == "n1.example:7402"
	})
	defer http.DefaultClient.CloseIdleConnections()
	for host, want := range map[string]int{"n1.example": 200, n.AdminAddr: 200, "evil.example": 421} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"http://"+n.AdminAddr+"/v1/status", nil)
		require.NoError(t, err)
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, want, resp.StatusCode, host)
	}
}

func TestMistakesAboutTheAdminSideAreNamed(t *testing.T) {
	t.Parallel()
	open := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(open, []byte("correct-horse-battery-staple\n"), 0o600))
	require.NoError(t, os.Chmod(open, 0o644))
	node := []string{"run", "--node", "a", "--voters", "a", "--data-dir", t.TempDir()}
	for _, c := range map[string]struct {
		args []string
		want string
	}{
		"token that all may read": {append(node, "--admin-token-file", open),
			"fix it with: chmod 0600 " + open},
		"the same for a client": {[]string{"transfer", "--admin-token-file", open},
			"fix it with: chmod 0600 " + open},
		"no such token": {append(node, "--admin-token-file", "/nowhere"),
			"open /nowhere: no such file"},
	} {
		fails(t, 2, c.want, c.args...)
	}
}

// TestEventsAcrossARestart follows a process that is killed and started again,
// with what the client library keeps, and with `watch` over the socket that the
// dead process leaves behind.
func TestEventsAcrossARestart(t *testing.T) {
	t.Parallel()
	options, socket, token := alone(t)
	s := play(t, 1, options)
	n := s.Nodes()[0]
	s.agree(s.Nodes(), nil)
	watch := exec.Command(binary, "watch", "--admin", socket)
	var seen lockedBuffer
	watch.Stdout = &seen
	require.NoError(t, watch.Start())
	s.eventually("the watch shows how things are, before anything happens", func() bool {
		return bytes.Contains(seen.Bytes(), []byte("LEADER in term 1 (this node leads, as the only voter)"))
	})
	s.eventually("the watch shows what happens", func() bool {
		bmqnode(t, "step-down", "--admin", socket, "--admin-token-file", token)
		return bytes.Contains(seen.Bytes(), []byte("RESIGNED"))
	})

	var resets []admin.Reset
	var events []admin.Event
	before := placeOf(t, n)
	stream := &admin.Stream{
		After: before,
		Event: func(e admin.Event) { events = append(events, e) },
		Reset: func(r admin.Reset) { resets = append(resets, r) },
	}
	require.NoError(t, n.Kill())
	require.NoError(t, n.Start())
	s.agree(s.Nodes(), nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.True(t, followUntil(ctx, n, stream, func() bool { return len(resets) > 0 }))
	require.Contains(t, resets[0].Reason, before)
	require.Empty(t, events)
	require.Equal(t, uint64(2), resets[0].Status.Boot)
	require.NotEmpty(t, resets[0].Status.Groups, "this is how things stand instead")
	require.NotEqual(t, before, stream.After)

	gone := []byte("events before it are gone; now")
	s.eventually("the watch says so too", func() bool { return bytes.Contains(seen.Bytes(), gone) })
	s.agree(s.Nodes(), nil)
	does(t, "step-down", "--admin", socket, "--admin-token-file", token)
	require.True(t, followUntil(ctx, n, stream, func() bool { return len(events) > 0 }),
		"what came meanwhile is replayed")
	require.Equal(t, cluster.NodeID("n1"), events[0].Node)
	require.Len(t, resets, 1)
	s.eventually("the watch goes on", func() bool {
		_, after, _ := bytes.Cut(seen.Bytes(), gone)
		return bytes.Contains(after, []byte("RESIGNED"))
	})
	require.NoError(t, watch.Process.Signal(os.Interrupt))
	require.NoError(t, watch.Wait())
}

// followUntil reads a node's events until it has what is wanted, or ctx ends.
func followUntil(ctx context.Context, n *procs.Node, stream *admin.Stream,
	enough func() bool) bool {
	client := n.Client()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	following := *stream
	following.Event = func(e admin.Event) { stream.Event(e); cancelIf(enough, cancel) }
	following.Reset = func(r admin.Reset) { stream.Reset(r); cancelIf(enough, cancel) }
	_ = client.Follow(ctx, &following) // ends as soon as there is enough
	stream.After = following.After
	return enough()
}

func cancelIf(enough func() bool, cancel context.CancelFunc) {
	if enough() {
		cancel()
	}
}

// placeOf is the place in the node's events at which it is now.
func placeOf(t *testing.T, n *procs.Node) string {
	resp, err := http.Get("http://" + n.AdminAddr + "/v1/events")
	require.NoError(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimPrefix(strings.TrimSpace(line), "id: ")
}
