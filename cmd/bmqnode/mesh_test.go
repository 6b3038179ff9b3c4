package main_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

var (
	processLine = regexp.MustCompile(`(?m)^  (n\d) +process (\d+) `)
	directory   = regexp.MustCompile(`nodes? in (\S+):`)
	leads       = regexp.MustCompile(`(?m)^(n\d) leads\. Type here:`)
)

// The command that the README begins with, as a user would use it.
func TestMeshShowsALeaderObeysAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(nodes.Binary, "mesh", "--nodes", "3", "--base-port", "18400")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	mesh := nodes.Launch(t, cmd)
	eventually := func(what, pattern string) {
		t.Helper()
		re := regexp.MustCompile(pattern)
		require.Eventually(t, func() bool { return re.MatchString(mesh.Said.String()) },
			nodes.Patience, 20*time.Millisecond, what)
	}
	typed := func(line string) {
		_, err := io.WriteString(in, line+"\n")
		require.NoError(t, err)
	}

	eventually("a leader and what to do next", leads.String())
	leader := leads.FindStringSubmatch(mesh.Said.String())[1]
	typed("status")
	eventually("the table", `(?m)^`+leader+` +LEADER +`+leader)
	eventually("all is encrypted", `TLS: the certificate that ends first`)
	require.NotContains(t, mesh.Said.String(), "encryption is not required")
	typed("kill " + leader)
	eventually("its end is noticed", leader+`  gone: signal: killed; type start `+leader)
	eventually("another is elected", `(?s)gone.*CANDIDATE -> LEADER`)
	typed("start " + leader)
	eventually("it comes back", `(?s)gone.*`+leader+`  FOLLOWER +term \d+ +LEADER_FOUND`)
	typed("fly " + leader)
	eventually("a mistake is answered", `there is no command "fly"`)
	typed("kill n7")
	eventually("a wrong name is answered", `there is no node "n7" here: the nodes are n1, n2, n3`)

	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Zero(t, mesh.Code(t), "Ctrl-C is a clean end")
	said := mesh.Said.String()
	for _, p := range processLine.FindAllStringSubmatch(said, -1) {
		pid, err := strconv.Atoi(p[2])
		require.NoError(t, err)
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d of %s is gone", pid, p[1])
	}
	require.NoDirExists(t, directory.FindStringSubmatch(said)[1])
}

// As in "bmqnode mesh | head": who reads no more has not stopped the nodes.
func TestMeshWithoutAReaderLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), nodes.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, nodes.Binary, "mesh", "--nodes", "1", "--base-port", "19000")
	temporary := t.TempDir()
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	head := make([]byte, 1)
	_, err = io.ReadFull(out, head)
	require.NoError(t, err)
	require.NoError(t, out.Close())
	require.NoError(t, cmd.Wait())
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}
