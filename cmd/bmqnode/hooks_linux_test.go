package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// soleNode runs a node that is its cluster, with hooks.
func soleNode(t *testing.T, flags ...string) *execution {
	x := prepare(t, "run", append(nodes.SoleFlags(t), flags...)...)
	x.start()
	return x
}

func TestHooksAreToldOfLeadershipAndOfItsEnd(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "told")
	hook := `echo "$BMQ_EVENT $BMQ_NODE $BMQ_GROUP leader=$BMQ_LEADER term=$BMQ_TERM lsn=$BMQ_LSN $BMQ_LEADER_META." >>` + file
	x := soleNode(t, "--meta", "http://a.example/?a=b&c", "--on-leader", hook+"; echo what the hook says", "--on-follower", hook)
	told := func() string { text, _ := os.ReadFile(file); return string(text) }
	x.eventually("leader", func() bool { return strings.Contains(told(), "leader") })
	x.signal(syscall.SIGTERM)
	require.Zero(t, x.code())
	require.Equal(t, "leader a default leader=a term=1 lsn=1.1 http://a.example/?a=b&c.\n"+
		"follower a default leader= term= lsn= .\n", told())
	require.Contains(t, x.said(), "what the hook says")
}

func TestHooksThatFailOrHangAreLoggedAndHoldUpNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ hook, want string }{
		"fails": {"echo too bad; exit 4", "exit status 4"},
		"hangs": {"sleep 60", "killed after 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := soleNode(t, "--on-leader", c.hook, "--hook-timeout", "300ms")
			x.eventually(c.want, func() bool { return strings.Contains(x.said(), c.want) })
			require.Contains(t, x.said(), "hook failed")
			x.signal(syscall.SIGTERM)
			require.Zero(t, x.code())
		})
	}
}

// While one hook runs leadership goes, and comes back or not: the next one is told how
// it is then.
func TestASlowHookMissesWhatIsPastAndNeverWhatIs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(nodes.ShortDir(t), "told")
	x := soleNode(t, "--on-leader",
		"echo begin >>"+file+"; while ! [ -e "+file+".go ]; do sleep 0.01; done; echo leader $BMQ_TERM >>"+file,
		"--on-follower", "echo follower >>"+file, "--hook-timeout", "30s", "--admin-socket", file+".sock")
	told := func() string { text, _ := os.ReadFile(file); return string(text) }
	x.eventually("the hook runs", func() bool { return told() == "begin\n" })
	for range 3 {
		x.eventually("a step-down", func() bool {
			_, _, code := nodes.Run(t, "step-down", "--for", "50ms", "--admin", "unix:"+file+".sock")
			return code == 0
		})
	}
	x.eventually("it leads again", func() bool {
		return strings.Count(x.said(), "to=LEADER") == 4
	})
	require.NoError(t, os.WriteFile(file+".go", nil, 0o600))
	x.eventually("the newest is told", func() bool { return strings.HasSuffix(told(), "leader 4\n") })
	require.NotContains(t, told(), "leader 2\n")
	require.NotContains(t, told(), "leader 3\n")
	x.signal(syscall.SIGTERM)
	require.Zero(t, x.code())
	require.True(t, strings.HasSuffix(told(), "leader 4\nfollower\n"), told())
}

// The node has ended by the time that the hook has.
func TestTheEndOfALeaderIsToldHoweverSlowItsHookIs(t *testing.T) {
	t.Parallel()
	for n := range 4 { // what is seen first then, the change or the end, is left to chance
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "told")
			x := soleNode(t, "--on-leader",
				"echo leader >>"+file+"; while ! [ -e "+file+".go ]; do sleep 0.01; done",
				"--on-follower", "echo follower >>"+file, "--hook-timeout", "30s")
			told := func() string { text, _ := os.ReadFile(file); return string(text) }
			x.eventually("the hook runs", func() bool { return told() == "leader\n" })
			x.signal(syscall.SIGTERM)
			x.eventually("it leads no more",
				func() bool { return strings.Contains(x.said(), "reason=STOPPED") })
			require.NoError(t, os.WriteFile(file+".go", nil, 0o600))
			require.Zero(t, x.code())
			require.Equal(t, "leader\nfollower\n", told())
		})
	}
}
