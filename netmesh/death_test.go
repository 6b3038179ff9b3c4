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

// The environment variables of the re-executed test binary: whom the member dials, and whether it
// sends all the time.
const (
	childAddr = "NETMESH_TEST_CHILD_DIALS"
	childBusy = "NETMESH_TEST_CHILD_BUSY"
	childTLS  = "NETMESH_TEST_CHILD_TLS" // its certificates' directory
)

// beChild runs a member "child" until it is killed. It prints its address, and another line when
// its first ping was answered and its evidence connection stands.
func beChild(peer string) int {
	cfg := testConfig("child")
	if dir := os.Getenv(childTLS); dir != "" {
		shows(load(dir))(&cfg)
	}
	m, err := Listen(cfg, &recorder{})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	m.AddPeer("a", peer)
	fmt.Println(m.Addr())
	whole := func(l LinkStatus) bool { return l.RTT > 0 && l.Evidence }
	for !slices.ContainsFunc(m.Links(), whole) {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("linked")
	for os.Getenv(childBusy) != "" {
		m.Send("*", "g", ack(1))
		time.Sleep(100 * time.Microsecond)
	}
	select {}
}

// child is a member in a process of its own.
type child struct {
	*exec.Cmd
	out  *bufio.Reader
	addr string
}

// spawn starts a child process that dials peer, with TLS if a has it.
func spawn(t *testing.T, a *node, peer string, env ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childAddr+"="+peer), env...)
	if a.cfg.TLS != nil {
		credentialsOf("child")
		cmd.Env = append(cmd.Env, childTLS+"="+directoryOf("child"))
	}
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

// settles waits until the two are connected by both connections.
func (c *child) settles(t *testing.T, n *node) {
	t.Helper()
	require.Equal(t, "linked", c.line(t))
	whole := func() bool {
		l := n.Links()[0]
		return l.RTT > 0 && (l.Evidence || n.cfg.DeathProof.Off)
	}
	until(t, whole)
}

func (c *child) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, c.Process.Signal(sig))
}

// TestKilledProcessIsProvenDead, with a real process and a real kernel, whoever has dialed. A
// survivor that accepted the connection was told no address: §6.5.
func TestKilledProcessIsProvenDead(t *testing.T) { plainAndTLS(t, killedProcess) }

func killedProcess(t *testing.T, encrypt func(*Config)) {
	for _, dials := range []bool{true, false} {
		name := map[bool]nodeID{true: "z", false: "a"}[dials] // the child dials "a"
		a := start(t, name, encrypt)
		target := a.Addr().String()
		if dials {
			target = "127.0.0.1:1"
		}
		c := spawn(t, a, target)
		if dials {
			a.AddPeer("child", c.addr)
		}
		c.settles(t, a)
		require.Equal(t, dials, a.Links()[0].Dialed)
		c.signal(t, syscall.SIGKILL)
		a.sees(t, "child", "died refused-after-eof")
		require.Len(t, a.all("child"), 3, "up, down, died")
	}
}

// TestProcessKilledWithDataUnreadIsProvenDead: its kernel ends the link with a reset.
func TestProcessKilledWithDataUnreadIsProvenDead(t *testing.T) { plainAndTLS(t, killedBusy) }

func killedBusy(t *testing.T, encrypt func(*Config)) {
	a := start(t, "a", encrypt, quiet) // nobody writes but once
	c := spawn(t, a, a.Addr().String())
	c.settles(t, a)
	c.signal(t, syscall.SIGSTOP)
	stopped := func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	}
	until(t, stopped)
	sent := a.Links()[0].FramesOut
	require.True(t, a.Send("child", "g", ack(1)))
	until(t, func() bool { return a.Links()[0].FramesOut > sent })
	c.signal(t, syscall.SIGKILL)
	a.sees(t, "child", "died refused-after-eof")
	require.Equal(t, "down reset", a.all("child")[1])
}

// TestEveryKillUnderTrafficIsProven, whatever data is in flight at that moment: §6.5.
func TestEveryKillUnderTrafficIsProven(t *testing.T) { plainAndTLS(t, kills) }

func kills(t *testing.T, encrypt func(*Config)) {
	for i := range 20 {
		a := start(t, "a", encrypt)
		c := spawn(t, a, a.Addr().String(), childBusy+"=1")
		c.settles(t, a)
		for range 10 + i {
			a.Send("child", "g", ack(1))
			time.Sleep(100 * time.Microsecond)
		}
		c.signal(t, syscall.SIGKILL)
		a.sees(t, "child", "died refused-after-eof")
		a.close(t)
	}
}

// TestProofCanBeSwitchedOff: behind an L4 proxy an end of stream is the proxy's.
func TestProofCanBeSwitchedOff(t *testing.T) {
	a := start(t, "a", func(c *Config) { c.DeathProof.Off = true })
	c := spawn(t, a, a.Addr().String())
	c.settles(t, a)
	a.AddPeer("child", c.addr)
	c.signal(t, syscall.SIGKILL)
	a.fails(t, "refused")
	require.Len(t, a.all("child"), 2, "up and down")
}

// TestStoppedProcessTimesOut: a process that hangs is not dead. §6.7.
func TestStoppedProcessTimesOut(t *testing.T) { plainAndTLS(t, stopped) }

func stopped(t *testing.T, encrypt func(*Config)) {
	a := start(t, "a", encrypt, func(c *Config) { c.times.idle = time.Second })
	c := spawn(t, a, a.Addr().String())
	c.settles(t, a)
	c.signal(t, syscall.SIGSTOP)
	a.sees(t, "child", "down timeout")
	c.signal(t, syscall.SIGCONT)
	until(t, func() bool { return last(a.all("child"), 1)[0] == "up 1" })
	require.Zero(t, a.count("child", "died refused-after-eof"))
}

// TestResetIsNoProof: a connection that breaks shows nothing about the process,
// not even together with a refused dial: §6.7.
func TestResetIsNoProof(t *testing.T) {
	a := start(t, "a")
	s := intrude(t, a)
	s.link(helloFrom(a)) // says that it listens where nobody does
	a.sees(t, "x", "up 1")
	reset(s.conn)
	a.sees(t, "x", "down reset")
	a.AddPeer("x", "127.0.0.1:1")
	a.fails(t, "refused")
	require.Equal(t, []string{"up 1", "down reset"}, a.all("x"))
}
