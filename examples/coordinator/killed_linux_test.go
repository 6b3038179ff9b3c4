package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// asProcess tells this binary that a test has started it as a process of the service.
const asProcess = "COORDINATOR_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c := config(os.Args[1], os.Args[2:])
	t := elector.Article()
	t.InitialWait, t.MaxRandomWait = t.Promise(), 500*time.Millisecond // faster elections
	c.Election.Timing = t
	log := hclog.New(&hclog.LoggerOptions{JSONFormat: true, Output: os.Stdout})
	if err := run(ctx, c, log); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// real is the service as three real processes.
type real struct {
	t    *testing.T
	dir  string
	cmds []*exec.Cmd
	logs []*os.File
	seen [3]int // how much of each log was there at the mark
}

func (s *real) start(i int) {
	s.t.Helper()
	args := []string{string(three[i])}
	for n, id := range three { // a loopback address of this process: its ports stay free
		pid := os.Getpid()
		args = append(args, fmt.Sprintf("%s=127.%d.%d.%d:%d", id, 10+pid>>16&0x7f, pid>>8&0xff, pid&0xff,
			7611+n))
	}
	s.cmds[i] = exec.Command(os.Args[0], args...)
	s.cmds[i].Env = append(os.Environ(), asProcess+"=1", "TMPDIR="+s.dir)
	s.cmds[i].Stdout, s.cmds[i].Stderr = s.logs[i], s.logs[i]
	s.cmds[i].SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(s.t, s.cmds[i].Start())
}

func (s *real) texts() (texts [][]byte) {
	for _, log := range s.logs {
		text, err := os.ReadFile(log.Name())
		require.NoError(s.t, err)
		require.NotContains(s.t, string(text), "DATA RACE")
		texts = append(texts, text)
	}
	return texts
}

// mark lets await look at what is logged from now on.
func (s *real) mark() {
	for i, text := range s.texts() {
		s.seen[i] = len(text)
	}
}

// await waits until a process has logged an event since the mark, and returns which; of the given
// ones, if any are.
func (s *real) await(event string, by ...int) (process int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		for i, text := range s.texts() {
			said := strings.Contains(string(text[s.seen[i]:]), `"@message":"`+event+`"`)
			if said && (len(by) == 0 || slices.Contains(by, i)) {
				process = i
				return true
			}
		}
		return false
	}, testkit.Limit(time.Minute), 20*time.Millisecond, "nobody says that it has "+event)
	return process
}

// COORDINATOR_TIME says for how long the leader is killed; a minute is what to try after
// a change.
func TestTheLeaderIsKilledInALoop(t *testing.T) {
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv("COORDINATOR_TIME"), "8s"))
	require.NoError(t, err)
	s := &real{t: t, dir: t.TempDir(), cmds: make([]*exec.Cmd, len(three))}
	for i, id := range three {
		log, err := os.Create(filepath.Join(s.dir, string(id)+".log"))
		require.NoError(t, err)
		defer log.Close()
		s.logs = append(s.logs, log)
		s.start(i)
		defer func() { _ = s.cmds[i].Process.Kill(); _ = s.cmds[i].Wait() }()
	}
	rounds, end := 0, time.Now().Add(lasts)
	leader := s.await("leads")
	for ; time.Now().Before(end); rounds++ {
		// It owns partitions: so somebody must have them next.
		s.mark()
		s.await("worked", leader)
		gone := leader
		s.mark()
		if rounds%3 == 2 { // stopped until another assigns what it had
			require.NoError(t, s.cmds[gone].Process.Signal(syscall.SIGSTOP))
			leader = s.await("leads")
			s.await("assigned")
			require.NoError(t, s.cmds[gone].Process.Signal(syscall.SIGCONT))
			continue
		}
		require.NoError(t, s.cmds[gone].Process.Kill())
		_ = s.cmds[gone].Wait()
		if rounds%3 == 0 { // it comes back before anything has to move
			s.start(gone)
			leader = s.await("leads")
		} else {
			leader = s.await("leads")
			s.await("assigned")
			s.start(gone)
		}
	}
	for _, cmd := range s.cmds {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
	}
	r := audit(t, s.texts()...)
	require.Empty(t, r.problems)
	require.Greater(t, r.terms, rounds/2)
	require.Greater(t, r.assigned, partitions)
	require.Positive(t, r.worked)
	t.Logf("%d leaders killed or stopped: %d terms, %d assignments, %d acts", rounds, r.terms,
		r.assigned, r.worked)
}
