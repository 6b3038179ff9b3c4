package main_test

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The bully on real processes: the first member takes leadership back from a healthy leader,
// and no node may act on it.
func TestMeshShowsAnotherAlgorithm(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binary, "mesh", "--algorithm", "bully", "--nodes", "3", "--base-port", "18700")
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	s := &scene{t: t}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", out.Bytes())
			_ = cmd.Process.Kill()
		}
	})
	shows := func(what, pattern string) {
		re := regexp.MustCompile(pattern)
		s.eventually(what, func() bool { return re.Match(out.Bytes()) })
	}
	typed := func(line string) {
		_, err := io.WriteString(in, line+"\n")
		require.NoError(t, err)
	}
	shows("what it is", `Here bully elects. It has no leases`)
	shows("its leader", `n1 leads\. Type here:`)
	admin := regexp.MustCompile(`n1 +process \d+ +admin (\S+)`).FindSubmatch(out.Bytes())[1]
	answer, err := exec.Command(binary, "leader", "--admin", string(admin)).CombinedOutput()
	require.Error(t, err, "n1 believes that it leads, but nobody may rely on it: %s", answer)
	require.Contains(t, string(answer), "bully elects here, to show it")
	typed("status")
	shows("that at a glance", `n1, n2(,| and) n3: bully elects here, to show it`)
	typed("kill n1")
	shows("the next one", `(?s)gone.*n2  \S+ -> LEADER`)
	typed("start n1")
	shows("that the first takes over", `n2  LEADER -> FOLLOWER +term \d+ +LEADER_PREEMPTED n1`)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait(), "Ctrl-C is a clean end")
}
