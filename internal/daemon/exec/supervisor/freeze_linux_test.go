package supervisor

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// relatives is a command with a child, orphans, and daemons of which one starts others.
const relatives = `
work() { trap "" TERM; echo $$ >$1; while :; do sleep 5; done; }
own() { setsid sh -c 'trap "" TERM; echo $$ >"$0"; eval "$1"; while :; do sleep 5; done' "$@"; }
sh -c 'trap "" TERM; echo $$ >child; while :; do sleep 5; done' &
(sh -c 'echo $$ >orphan; exec sleep 600' &)
(own daemon &)
own session &
(own parent 'setsid sh -c "echo \$\$ >inner; (setsid sh -c \"echo \\\$\\\$ >innermost; exec sleep 600\" &); exec sleep 600" &' &)
work command
`

// family is an owner, its supervisor, and all that it has started.
type family struct {
	owner, supervisor int
	command           []int
}

func newFamily(t *testing.T) family {
	dir := t.TempDir()
	owner := owned(t, "cd "+dir+"; "+relatives)
	f := family{owner: owner.Pid}
	for _, name := range strings.Fields("command child orphan daemon session parent inner innermost") {
		f.command = append(f.command, pidIn(t, filepath.Join(dir, name)))
	}
	command, err := look(f.command[0])
	require.NoError(t, err)
	f.supervisor = command.parent
	t.Cleanup(func() { // the owner may be stopped, or have had no time yet to end the supervisor
		for _, pid := range append(f.command, f.supervisor) {
			if runs(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return f
}

// signal signals those that letters mean: the owner, the supervisor, the command.
func (f family) signal(s syscall.Signal, who string, pause time.Duration) {
	for _, one := range who {
		pids := map[rune][]int{'o': {f.owner}, 's': {f.supervisor}, 'c': f.command}[one]
		for _, pid := range pids {
			_ = syscall.Kill(pid, s)
		}
		time.Sleep(pause)
	}
}

// A machine, or a container, that freezes wakes its processes in any order. Whoever wakes first
// past the deadline must not end the one that finds the daemons before that has found them.
func TestNothingOfACommandSurvivesAFreezePastItsDeadline(t *testing.T) {
	t.Parallel()
	for _, order := range strings.Fields("osc ocs soc sco cos cso oc sc o s") {
		for _, pause := range []time.Duration{0, 3 * time.Millisecond, 150 * time.Millisecond} {
			t.Run(order+" "+pause.String(), func(t *testing.T) {
				t.Parallel()
				f := newFamily(t)
				f.signal(syscall.SIGSTOP, "cso", 0)
				time.Sleep(3 * soon) // the deadline is 2*soon away at most
				f.signal(syscall.SIGCONT, order, pause)
				gone := func() bool { return !slices.ContainsFunc(f.command, runs) }
				require.Eventually(t, gone, patience, time.Millisecond, "%+v", f)
			})
		}
	}
}

// Nobody is left to end a command whose owner is dead and whose supervisor is stopped: the
// command goes on past every deadline. When the supervisor goes on, it ends.
func TestACommandGoesOnIfItsOwnerIsKilledAndItsSupervisorIsStopped(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	require.NoError(t, syscall.Kill(f.supervisor, syscall.SIGSTOP))
	require.NoError(t, syscall.Kill(f.owner, syscall.SIGKILL))
	time.Sleep(4 * soon)
	for _, pid := range f.command {
		require.True(t, runs(pid))
	}
	require.NoError(t, syscall.Kill(f.supervisor, syscall.SIGCONT))
	for _, pid := range f.command {
		ends(t, pid)
	}
	ends(t, f.supervisor)
}
