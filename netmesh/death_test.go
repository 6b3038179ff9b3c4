package netmesh

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// quiet makes a link on which nothing travels after the first ping: a process
// that is killed while data waits for it ends with a reset, which proves nothing.
func quiet(c *Config) { c.PingInterval, c.IdleTimeout = time.Hour, 2*time.Hour }

// childAddr tells the re-executed test binary to be a member and whom to dial.
const (
	childAddr  = "NETMESH_TEST_CHILD_DIALS"
	childQuiet = "NETMESH_TEST_CHILD_QUIET"
)

// beChild runs a member "child" until it is killed. It prints its address, and
// a line more when its first ping was answered.
func beChild(peer string) int {
	cfg := testConfig("child")
	if os.Getenv(childQuiet) != "" {
		quiet(&cfg)
	}
	m, err := Listen(cfg, &recorder{})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	m.AddPeer("a", peer)
	fmt.Println(m.Addr())
	answered := func(l LinkStatus) bool { return l.RTT > 0 }
	for !slices.ContainsFunc(m.Links(), answered) {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("linked")
	select {}
}

// child is a member in a process of its own.
type child struct {
	*exec.Cmd
	out  *bufio.Reader
	addr string
}

// spawn starts a child process that dials peer.
func spawn(t *testing.T, peer string, env ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childAddr+"="+peer), env...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	c := &child{Cmd: cmd, out: bufio.NewReader(out)}
	c.addr = c.line(t)
	return c
}

func (c *child) line(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// settles waits until both sides have had the answer to their only ping.
func (c *child) settles(t *testing.T, n *node) {
	t.Helper()
	require.Equal(t, "linked", c.line(t))
	require.Eventually(t, func() bool { return n.Links()[0].RTT > 0 }, patience, glance)
}

func (c *child) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, c.Process.Signal(sig))
}

// TestKilledProcessIsProvenDead is proof (a), with a real process and a real
// kernel. The survivor accepted the connection and nobody told it an address.
func TestKilledProcessIsProvenDead(t *testing.T) {
	a := start(t, "a", quiet)
	c := spawn(t, a.Addr().String(), childQuiet+"=1")
	c.settles(t, a)
	c.signal(t, syscall.SIGKILL)
	a.sees(t, "child", "died refused-after-eof")
	require.Equal(t, []string{"up 1", "down eof", "died refused-after-eof"}, a.all("child"))
}

func TestKilledProcessIsProvenDeadToItsDialer(t *testing.T) {
	a := start(t, "z", quiet) // not the "a" that the child dials
	c := spawn(t, "127.0.0.1:1", childQuiet+"=1")
	a.AddPeer("child", c.addr)
	c.settles(t, a)
	require.True(t, a.Links()[0].Dialed)
	c.signal(t, syscall.SIGKILL)
	a.sees(t, "child", "died refused-after-eof")
	require.Equal(t, []string{"up 1", "down eof", "died refused-after-eof"}, a.all("child"))
}

// TestProofCanBeSwitchedOff: behind an L4 proxy an end of stream is the proxy's.
func TestProofCanBeSwitchedOff(t *testing.T) {
	a := start(t, "a", quiet, func(c *Config) { c.NoDeathProof = true })
	c := spawn(t, a.Addr().String(), childQuiet+"=1")
	c.settles(t, a)
	a.AddPeer("child", c.addr)
	c.signal(t, syscall.SIGKILL)
	a.sees(t, "child", "down eof")
	require.Eventually(t, func() bool { return strings.Contains(a.Links()[0].LastErr, "refused") }, patience, glance)
	require.Equal(t, []string{"up 1", "down eof"}, a.all("child"))
}

// TestStoppedProcessTimesOut: a process that hangs is not dead.
func TestStoppedProcessTimesOut(t *testing.T) {
	a := start(t, "a", func(c *Config) { c.IdleTimeout = time.Second })
	c := spawn(t, a.Addr().String())
	c.settles(t, a)
	c.signal(t, syscall.SIGSTOP)
	a.sees(t, "child", "down timeout")
	c.signal(t, syscall.SIGCONT)
	require.Eventually(t, func() bool { return last(a.all("child"), 1)[0] == "up 1" }, patience, glance)
	require.Zero(t, a.count("child", "died refused-after-eof"))
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
