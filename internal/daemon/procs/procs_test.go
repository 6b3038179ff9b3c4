package procs

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLogLinesAreTakenApart(t *testing.T) {
	l := parseLine("n1",
		[]byte(`{"time":"2026-01-02T12:00:00.345678Z","level":"info","msg":"transition",`+
			`"from":"FOLLOWER","group":"default","leader":"n2","node":"n1","peer":"n2","reason":"LEADER_FOUND","term":7,"to":"FOLLOWER"}`))
	e, ok := l.Transition()
	require.True(t, ok)
	require.Equal(t, "LEADER_FOUND", e.Reason)
	require.EqualValues(t, 7, e.Term)
	require.EqualValues(t, "n2", e.Leader)
	require.Equal(t, 345678000, e.Time.Nanosecond())

	l = parseLine("n1",
		[]byte(`{"level":"warn","msg":"odd","logger":"mesh","addr":"x:1","node":"n1"}`))
	_, ok = l.Transition()
	require.False(t, ok)
	require.Equal(t, "odd", l.Message)
	require.Equal(t, "addr=x:1", l.Detail)

	l = parseLine("n1", []byte("panic: boom"))
	require.Empty(t, l.Level, "what is no log line is kept as it is")
	require.Equal(t, "panic: boom", l.Text)
}

func TestTakenPortsAreStepped(t *testing.T) {
	for name, take := range map[string]func(string) (io.Closer, error){
		"TCP": func(addr string) (io.Closer, error) { return net.Listen("tcp", addr) },
		"UDP": func(addr string) (io.Closer, error) { return net.ListenPacket("udp", addr) },
	} {
		base, claim, err := claimPorts(21_000, 9)
		require.NoError(t, err)
		taken, err := take(loopback(base + 4))
		require.NoError(t, err)
		require.NoError(t, claim.Close())
		next, claim, err := claimPorts(base, 9)
		require.NoError(t, err)
		require.Greater(t, next, base, name)
		require.Zero(t, (next-base)%roundNumber, name)
		require.NoError(t, claim.Close())
		require.NoError(t, taken.Close())
	}
	_, _, err := claimPorts(highestPort-50, 9)
	require.ErrorContains(t, err, "no 9 free ports in a row")
}

// Neither has started a process: the ports are told apart nevertheless.
func TestMeshesLaidOutAtOnceHaveDifferentPorts(t *testing.T) {
	layOut := func() *Mesh {
		m, err := New(Config{Binary: "/nowhere", Names: Numbered(5), Dir: t.TempDir(), BasePort: 21_300})
		require.NoError(t, err)
		return m
	}
	a, b := layOut(), layOut()
	require.NotEqual(t, a.nodes[0].GossipAddr, b.nodes[0].GossipAddr)
	require.NoError(t, a.Stop(t.Context()))
	require.NoError(t, b.Stop(t.Context()))
	require.NoError(t, b.Stop(t.Context()), "once more")
	require.ErrorIs(t, a.claim.Close(), net.ErrClosed, "Stop gives the ports back")
}

func TestEveryNodeGetsItsConfiguration(t *testing.T) {
	dir := t.TempDir()
	m, err := New(Config{
		Binary: "/nowhere", Names: Numbered(2), Dir: dir, BasePort: 21_500,
		Options:     map[string]any{"lease": "2s"},
		NodeOptions: map[string]map[string]any{"n2": {"lease": "3s"}},
	})
	require.NoError(t, err)
	for name, lease := range map[string]string{"n1": "lease: 2s", "n2": "lease: 3s"} {
		text, err := os.ReadFile(filepath.Join(dir, name, "bmqnode.yaml"))
		require.NoError(t, err)
		require.Contains(t, string(text), "node: "+name)
		require.Contains(t, string(text), lease)
	}
	_, err = m.Node("n3")
	require.EqualError(t, err, `there is no node "n3" here: the nodes are n1, n2`)
	require.Error(t, m.Start(), "there is no such binary")
	n, err := m.Node("n1")
	require.NoError(t, err)
	require.Zero(t, n.Pid())
	require.NoError(t, n.Stop(t.Context()), "what does not run is stopped")
	require.ErrorContains(t, n.Kill(), "does not run")
}

// sh stands for bmqnode: it gets the arguments that bmqnode would get.
func TestAProcessIsReadToItsEnd(t *testing.T) {
	script := filepath.Join(t.TempDir(), "node")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho one; echo two >&2; exit 3\n"),
		0o700))
	lines, exits := make(chan Line, 10), make(chan error, 1)
	m, err := New(Config{
		Binary: script, Names: Numbered(1), Dir: t.TempDir(), BasePort: 21_700,
		OnLine: func(l Line) { lines <- l }, OnExit: func(_ string, err error) { exits <- err },
	})
	require.NoError(t, err)
	require.NoError(t, m.Start())
	err = <-exits
	require.ErrorContains(t, err, "exit status 3")
	require.False(t, errors.Is(err, os.ErrProcessDone))
	require.Equal(t, "one", (<-lines).Text)
	require.Equal(t, "two", (<-lines).Text)
	require.FileExists(t, filepath.Join(m.nodes[0].Dir, "node.log"))
	require.NoError(t, m.Stop(t.Context()))
}
