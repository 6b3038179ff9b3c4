package netmesh

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// childAddr tells the re-executed test binary to be a member and whom to dial.
const childAddr = "NETMESH_TEST_CHILD_DIALS"

// beChild runs a member "child" until it is killed. It prints its address.
func beChild(peer string) int {
	cfg := testConfig("child")
	m, err := Listen(cfg, &recorder{})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	m.AddPeer("a", peer)
	fmt.Println(m.Addr())
	select {}
}

// spawn starts a child process that is linked to a, and returns it and its address.
func spawn(t *testing.T, a *node) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childAddr+"="+a.Addr().String())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	a.sees(t, "child", "up 1")
	return cmd, strings.TrimSpace(line)
}

// TestKilledProcessIsProvenDead is proof (a), with a real process and a real
// kernel. The survivor accepted the connection and nobody told it an address.
func TestKilledProcessIsProvenDead(t *testing.T) {
	a := start(t, "a")
	cmd, _ := spawn(t, a)
	time.Sleep(a.cfg.RedialMin) // so that the link is no short-lived one, whose redial would wait
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	a.sees(t, "child", "died refused-after-eof")
	require.Equal(t, []string{"up 1", "down eof", "died refused-after-eof"}, a.all("child"))
}

func TestKilledProcessIsProvenDeadToItsDialer(t *testing.T) {
	a := start(t, "z") // the larger name: the child dials "a" in vain
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childAddr+"=127.0.0.1:1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	a.AddPeer("child", strings.TrimSpace(line))
	a.sees(t, "child", "up 1")
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	a.sees(t, "child", "died refused-after-eof")
}

// TestProofCanBeSwitchedOff: behind an L4 proxy an end of stream is the proxy's.
func TestProofCanBeSwitchedOff(t *testing.T) {
	a := start(t, "a", func(c *Config) { c.NoDeathProof = true })
	cmd, addr := spawn(t, a)
	a.AddPeer("child", addr)
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	a.sees(t, "child", "down eof")
	require.Eventually(t, func() bool { return strings.Contains(a.Links()[0].LastErr, "refused") }, patience, glance)
	require.Equal(t, []string{"up 1", "down eof"}, a.all("child"))
}

// TestStoppedProcessTimesOut: a process that hangs is not dead.
func TestStoppedProcessTimesOut(t *testing.T) {
	a := start(t, "a", func(c *Config) { c.IdleTimeout = time.Second })
	cmd, _ := spawn(t, a)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	a.sees(t, "child", "down timeout")
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	require.Eventually(t, func() bool { return a.count("child", "up 1") == 2 }, patience, glance)
	require.Len(t, a.all("child"), 3)
}

// TestResetIsNoProof: a connection that breaks shows nothing about the process,
// not even together with a refused dial.
func TestResetIsNoProof(t *testing.T) {
	a := start(t, "a")
	s := intrude(t, a)
	s.link(helloFrom(a)) // says that it listens where nobody does
	a.sees(t, "x", "up 1")
	reset(s.conn)
	a.sees(t, "x", "down reset")
	a.AddPeer("x", "127.0.0.1:1")
	require.Eventually(t, func() bool { return strings.Contains(a.Links()[0].LastErr, "refused") }, patience, glance)
	require.Equal(t, []string{"up 1", "down reset"}, a.all("x"))
}

// TestEOFAloneIsNoProof: the stream ends without goodbye, and the dial is answered.
func TestEOFAloneIsNoProof(t *testing.T) {
	a, b := start(t, "a"), start(t, "b")
	s := intrude(t, a)
	h := helloFrom(a)
	h.Address = b.Addr().String()
	s.link(h)
	a.sees(t, "x", "up 1")
	require.NoError(t, closeWrite(s.conn))
	a.sees(t, "x", "down eof")
	b.counts(t, ReasonWrongNode) // a's dial
	require.Eventually(t, func() bool { return strings.Contains(a.Links()[0].LastErr, "wrong-node") }, patience, glance)
	require.Equal(t, []string{"up 1", "down eof"}, a.all("x"))
}
