package main_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// alone are the options of a node that is the only voter and has a private side.
func alone(t *testing.T) (options map[string]any, socket, token string) {
	dir := nodes.ShortDir(t)
	socket, token = filepath.Join(dir, "admin.sock"), filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("correct-horse-battery-staple\n"), 0o600))
	options = nodes.Quick()
	options["admin-socket"], options["admin-token-file"] = socket, token
	return options, "unix:" + socket, token
}

func TestCommandsReachANodeByItsSocketWithItsToken(t *testing.T) {
	t.Parallel()
	options, socket, token := alone(t)
	options["admin-addr"] = ""
	s := nodes.Play(t, 1, options)
	s.Eventually("it leads", func() bool {
		stdout, _, code := nodes.Run(t, "status", "--admin", socket)
		return code == 0 && strings.Contains(stdout, "LEADER  n1")
	})
	_, err := net.Dial("tcp", s.Nodes()[0].AdminAddr)
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "there is the socket alone")
	for _, command := range []string{"fault heal", "transfer", "step-down", "forget n9", "pause",
		"resume", "set n1 --priority 1"} {
		nodes.Fails(t, 1, "this needs the node's token",
			append(strings.Fields(command), "--admin", socket)...)
	}
	nodes.Does(t, "fault", "heal", "--admin", socket, "--admin-token-file", token)
	nodes.Fails(t, 1, "another process listens there", "run", "--node", "b", "--voters", "b",
		"--data-dir", t.TempDir(), "--admin-addr", "", "--admin-socket", socket[len("unix:"):])
	stdout, stderr, code := nodes.RunWith(t, []string{"BMQNODE_TOKEN_FILE=" + token}, "step-down",
		"--for", "1h", "--admin", socket)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "n1 leads no more; no successor yet")
}

func TestFurtherElectionsAreLedAndHandedOverEachByItself(t *testing.T) {
	t.Parallel()
	options := nodes.Quick()
	options["groups"] = []string{"jobs", "mail"}
	s := nodes.Play(t, 3, options)
	leaders := func() map[string]string {
		by := map[string]string{}
		for _, e := range s.Transitions(nodes.BecameLeader) {
			by[e.Group] = string(e.Node)
		}
		return by
	}
	s.Eventually("each election has a leader", func() bool { return len(leaders()) == 3 })
	before := leaders()
	at := s.Nodes()[0].AdminAddr
	s.Eventually("jobs can be handed over", func() bool {
		_, _, code := nodes.Run(t, "transfer", "--group", "jobs", "--admin", at)
		return code == 0
	})
	s.Eventually("it is led by another node",
		func() bool { return leaders()["jobs"] != before["jobs"] })
	require.Equal(t, before["mail"], leaders()["mail"])
	require.Equal(t, before["default"], leaders()["default"])
	all, none := "n1\nn2\nn3\n:4\n", ":4\n"
	for command, want := range map[string]string{
		"transfer AT ": all, "transfer AT --to ": all, "transfer AT n1 ": none, "forget AT ": all,
		"fault cut AT n1 ": all, "fault heal AT ": none, "status AT ": none,
		"leader AT --group ": "default\njobs\nmail\n:4\n", "set AT ": all,
	} {
		line := strings.Replace("__complete "+command, "AT", "--admin "+at, 1)
		require.Equal(t, want, nodes.Does(t, strings.Split(line, " ")...), command)
	}
	stdout := nodes.Does(t, "status", "--json", "--group", "jobs", "--admin", at)
	var answers []struct{ Status cluster.Status }
	require.NoError(t, json.Unmarshal([]byte(stdout), &answers))
	for _, a := range answers {
		require.Len(t, a.Status.Groups, 1)
		require.Equal(t, "jobs", a.Status.Groups[0].Group)
	}
	nodes.Fails(t, 2, `takes part in no election "post"`, "step-down", "--group", "post", "--admin", at)
}

func TestTheAdvertisedAdminAddressIsToldAndAnswered(t *testing.T) {
	t.Parallel()
	s := nodes.Play(t, 1, map[string]any{"advertise-admin": "n1.example:7402", "insecure": true})
	n := s.Nodes()[0]
	s.Eventually("it answers", func() bool {
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
