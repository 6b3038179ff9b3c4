package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
	"github.com/bmqelect/bmqelect/lsn"
)

// note is how a command writes to the log that all commands share, in one write: its
// token, its node, what it does, and CLOCK_BOOTTIME, for people.
const note = `note() { read up _ </proc/uptime; echo "$BMQ_LSN $BMQ_NODE $1 $up" >>"$LOG"; }; `

// orderly stops when it is told to.
const orderly = note +
	`trap 'note stop; exit 0' TERM; note start; while :; do note beat; sleep 0.02; done`

// stubborn ignores SIGTERM, and so does a daemon of its that has left its group and its
// session: both have to be killed.
const stubborn = note + `trap 'note deaf' TERM; note start
	if [ -z "$1" ]; then (setsid sh -c "$SCRIPT" sh daemon &); fi; while :; do note beat; sleep 0.02; done`

// crew is a mesh of `bmqnode exec`, of which at most one may run the command.
type crew struct {
	*nodes.Scene
	script, log string
	flags       []string
	at          map[string]*execution
}

func muster(t *testing.T, script string, flags ...string) *crew {
	s := nodes.LayOut(t, nodes.Quick(), procs.Numbered(3)...)
	c := &crew{Scene: s, script: script, flags: flags, at: map[string]*execution{}}
	c.log = filepath.Join(c.Dir, "shared.log")
	for _, n := range c.Nodes() {
		c.enter(n)
	}
	return c
}

// enter starts a node's process, the first or a later one.
func (c *crew) enter(n *procs.Node) {
	x := beginExec(c.T, append([]string{"--config", n.ConfigFile}, c.flags...), sh(c.script))
	x.cmd.Env = append(os.Environ(), "LOG="+c.log, "SCRIPT="+c.script)
	c.at[n.Name] = x
	x.start()
}

// work is one run of the command.
type work struct {
	token     lsn.LSN
	node      string
	did       []string // in order
	firstLine int
}

func (w work) has(what string) bool {
	return strings.Contains(" "+strings.Join(w.did, " ")+" ", " "+what+" ")
}

// works reads the shared log, in the order in which it was written. The error says where
// one command did something after another had started.
func (c *crew) works() (all []work, overlap error) {
	text, _ := os.ReadFile(c.log) // none: nobody has started yet
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		fields := strings.Fields(line)
		if len(fields) != 4 {
			continue // half a line, or none
		}
		token, err := lsn.Parse(fields[0])
		last := len(all) - 1
		switch {
		case err == nil && fields[2] == "start" && (last < 0 || token.Compare(all[last].token) > 0):
			all = append(all, work{token: token, node: fields[1], firstLine: i + 1})
		case err == nil && last >= 0 && token == all[last].token:
			all[last].did = append(all[last].did, fields[2])
		default:
			return all, fmt.Errorf("line %d: %s: this is not the command that started last: %+v", i+1, line,
				all)
		}
	}
	return all, nil
}

// judged are the runs of the command so far, none of which overlap.
func (c *crew) judged() []work {
	c.T.Helper()
	all, overlap := c.works()
	require.NoError(c.T, overlap)
	return all
}

// next waits for the n-th run of the command, from 1.
func (c *crew) next(n int) work {
	c.T.Helper()
	c.Eventually(fmt.Sprintf("run %d of the command", n), func() bool {
		all, overlap := c.works()
		return overlap != nil || len(all) >= n
	})
	return c.judged()[n-1]
}

func TestExecCommandsOfNodesThatAreStoppedCutOffOrKilledNeverOverlap(t *testing.T) {
	t.Parallel()
	c := muster(t, stubborn, "--shutdown-timeout", "1s")
	first := c.next(1)
	x := c.at[first.node]

	x.signal(syscall.SIGSTOP)
	second := c.next(2)
	require.NotEqual(t, first.node, second.node)
	x.signal(syscall.SIGCONT)
	x.eventually("it finds out that its command was killed", func() bool {
		return strings.Contains(x.said(), "command killed before the end of its lease")
	})

	// The others take a killed process for dead, and with it its work, at once.
	c.Agree(c.Nodes(), func(g cluster.GroupStatus) bool {
		return g.Leader == cluster.NodeID(
			second.node)
	})
	c.at[second.node].signal(syscall.SIGKILL)
	third := c.next(3)
	require.NotEqual(t, second.node, third.node)
	require.True(t, c.judged()[1].has("deaf"), "SIGTERM came first: %v", c.judged()[1].did)
	c.enter(c.Named(cluster.NodeID(second.node)))

	// A command that does not stop in time at the end of its node is killed.
	c.at[third.node].signal(syscall.SIGTERM)
	require.NotEqual(t, third.node, c.next(4).node)
	require.Zero(t, c.at[third.node].code())
	require.True(t, c.judged()[2].has("deaf"))
}

// TestExecPreparesTheSuccessor: the hook runs on the node that leads next, and on no other, and the
// handover waits for it.
func TestExecPreparesTheSuccessor(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "told")
	c := muster(t, note+`trap 'note stop; exit 0' TERM; note start; note "prepared=$BMQ_PREPARED"
		while :; do sleep 0.02; done`,
		"--on-prepare", `echo "$BMQ_NODE $BMQ_EVENT" >>`+told+`; sleep 1; echo done >>`+told)
	first := c.next(1)
	c.at[first.node].signal(syscall.SIGTERM) // perhaps before the successor is prepared
	second := c.next(2)
	require.Zero(t, c.at[first.node].code())
	c.Eventually("it says how it was prepared", func() bool { return len(c.judged()[1].did) > 0 })
	text, err := os.ReadFile(told)
	require.NoError(t, err)
	require.Contains(t, string(text), second.node+" prepare\n")
	require.Contains(t, string(text), "done\n")
	require.Contains(t, c.judged()[0].did, "prepared=false", "nobody named it")
	require.Contains(t, c.judged()[1].did, "prepared=true")
	require.Contains(t, c.at[second.node].said(), "prepared to lead")
}

func TestExecCommandsNeverOverlapInARollingRestart(t *testing.T) {
	t.Parallel()
	hooks := filepath.Join(t.TempDir(), "hooks")
	hook := fmt.Sprintf(
		`echo "$BMQ_NODE begin $BMQ_EVENT $BMQ_LEADER" >>%[1]s; sleep 0.05; echo "$BMQ_NODE end" >>%[1]s`, hooks)
	// Between SIGTERM and SIGKILL, a busy machine may let the command wait for longer than
	// the 312 ms that quick's margins leave it: here it has 2.2 s.
	c := muster(t, orderly, "--on-leader", hook, "--on-follower", hook, "--initial-wait", "4100ms",
		"--heartbeat-miss-count", "16", "--lease", "4s", "--stop-margin", "2500ms",
		"--kill-margin", "300ms")

	// SIGTERM comes before the lease ends: the command has the time to stop in order.
	first := c.next(1)
	runs := 1
	c.Isolate(cluster.NodeID(first.node))
	second := c.next(2)
	runs++
	require.NotEqual(t, first.node, second.node)
	require.True(t, c.judged()[0].has("stop"), "it was not killed")
	c.Heal()

	for _, n := range c.Nodes() {
		leads := c.judged()[runs-1].node == n.Name
		x := c.at[n.Name]
		x.signal(syscall.SIGTERM)
		require.Zero(t, x.code(), "SIGTERM is a clean end")
		if leads {
			runs++
			require.NotEqual(t, n.Name, c.next(runs).node)
			require.True(t, c.judged()[runs-2].has("stop"), "it was let finish")
		}
		c.enter(n)
		c.Agree(c.Nodes(), nil)
		runs = len(c.judged())
	}
	for _, x := range c.at {
		x.signal(syscall.SIGTERM)
	}
	for _, x := range c.at {
		require.Zero(t, x.code())
	}
	c.judged()
	c.judgeHooks(hooks)
}

// judgeHooks demands of the hooks that they ran one at a time on each node, and that
// none still believes that it leads.
func (c *crew) judgeHooks(file string) {
	text, err := os.ReadFile(file)
	require.NoError(c.T, err)
	running, last := map[string]bool{}, map[string]string{}
	led := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		f := append(strings.Fields(line), "", "")
		node, begins := f[0], f[1] == "begin"
		require.Equal(c.T, begins, !running[node], "one at a time, and each to its end: %s", line)
		running[node] = begins
		if begins {
			last[node] = f[2]
			led[node] = led[node] || f[2] == "leader" && f[3] == node
		}
	}
	for _, w := range c.judged() {
		require.True(c.T, led[w.node], "%s led, and its hook was not told:\n%s", w.node, text)
	}
	for node, event := range last {
		require.Equal(c.T, "follower", event, node)
		require.False(c.T, running[node], node)
	}
}
