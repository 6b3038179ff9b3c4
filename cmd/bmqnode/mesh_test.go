package main_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// lockedBuffer is written by a process and read by the test.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}

var (
	processLine = regexp.MustCompile(`(?m)^  (n\d) +process (\d+) `)
	directory   = regexp.MustCompile(`nodes? in (\S+):`)
	leads       = regexp.MustCompile(`(?m)^(n\d) leads\. Type here:`)
)

// The command that the README begins with, as a user would use it.
func TestMeshShowsALeaderObeysAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binary, "mesh", "--nodes", "3", "--base-port", "18400")
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	s := &scene{t: t}
	shows := func(pattern string) func() bool {
		re := regexp.MustCompile(pattern)
		return func() bool { return re.Match(out.Bytes()) }
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", out.Bytes())
			_ = cmd.Process.Kill()
		}
	})
	typed := func(line string) {
		_, err := io.WriteString(in, line+"\n")
		require.NoError(t, err)
	}

	s.eventually("a leader and what to do next", shows(leads.String()))
	leader := string(leads.FindSubmatch(out.Bytes())[1])
	typed("status")
	s.eventually("the table", shows(`(?m)^`+leader+` +LEADER +`+leader))
	s.eventually("all is encrypted", shows(`TLS: the certificate that ends first`))
	require.NotContains(t, string(out.Bytes()), "encryption is not required")
	typed("kill " + leader)
	s.eventually("its end is noticed", shows(leader+`  gone: signal: killed; type start `+leader))
	s.eventually("another is elected", shows(`(?s)gone.*CANDIDATE -> LEADER`))
	typed("start " + leader)
	s.eventually("it comes back", shows(`(?s)gone.*`+leader+`  FOLLOWER +term \d+ +LEADER_FOUND`))
	typed("fly " + leader)
	s.eventually("a mistake is answered", shows(`there is no command "fly"`))
	typed("kill n7")
	s.eventually("a wrong name is answered", shows(`no node "n7" here, but n1, n2, n3`))

	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait(), "Ctrl-C is a clean end")
	for _, p := range processLine.FindAllSubmatch(out.Bytes(), -1) {
		pid, err := strconv.Atoi(string(p[2]))
		require.NoError(t, err)
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d of %s is gone", pid, p[1])
	}
	require.NoDirExists(t, string(directory.FindSubmatch(out.Bytes())[1]))
}

// As in "bmqnode mesh | head": who reads no more has not stopped the nodes.
func TestMeshWithoutAReaderLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "mesh", "--nodes", "1", "--base-port", "19000")
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
