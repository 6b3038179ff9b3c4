package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/examples/coordinator/audit"
)

// rampageTime says for how long the leader is killed; a minute is what to try
// after a change.
const rampageTime = "COORDINATOR_TIME"

// service is the service as three real processes.
type service struct {
	t    *testing.T
	dir  string
	cmds []*exec.Cmd
	logs []*os.File
}

func startService(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, dir: t.TempDir(), cmds: make([]*exec.Cmd, len(three))}
	for i, id := range three {
		log, err := os.Create(filepath.Join(s.dir, string(id)+".log"))
		require.NoError(t, err)
		s.logs = append(s.logs, log)
		s.start(i)
	}
	t.Cleanup(s.end)
	return s
}

func (s *service) start(i int) {
	s.t.Helper()
	cmd := exec.Command(os.Args[0], arguments(s.dir, i)...)
	cmd.Env = append(os.Environ(), asProcess+"=1")
	cmd.Stdout, cmd.Stderr = s.logs[i], s.logs[i]
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(s.t, cmd.Start())
	s.cmds[i] = cmd
}

func (s *service) kill(i int) {
	_ = s.cmds[i].Process.Kill()
	_ = s.cmds[i].Wait() // "killed" is no news
}

// end kills what still runs, and shows what the processes wrote if that may help.
func (s *service) end() {
	for i, id := range three {
		if s.cmds[i].ProcessState == nil {
			s.kill(i)
		}
		text, err := os.ReadFile(s.logs[i].Name())
		require.NoError(s.t, err)
		require.NotContains(s.t, string(text), "DATA RACE")
		if s.t.Failed() {
			s.t.Logf("%s wrote:\n%s", id, text[max(0, len(text)-4000):])
		}
		s.logs[i].Close()
	}
}

// ask asks a process how it stands; ok is false if it does not answer.
func (s *service) ask(i int) (v view, ok bool) { return askAt(address(7631 + i)) }

// leader waits for a leader other than the given process (-1: any).
func (s *service) leader(but int) (leader int) {
	s.t.Helper()
	eventually(s.t, "a leader", func() bool {
		for i := range three {
			if i == but {
				continue
			}
			if v, ok := s.ask(i); ok && v.Leading {
				leader = i
				return true
			}
		}
		return false
	})
	return leader
}

// settle waits until every partition is in force.
func (s *service) settle() {
	s.t.Helper()
	eventually(s.t, "every partition in force", func() bool {
		sum := 0
		for i := range three {
			v, _ := s.ask(i)
			sum += len(v.InForce)
		}
		return sum == partitions
	})
}

// audit checks the journals.
func (s *service) audit() audit.Report {
	s.t.Helper()
	var journals [][]audit.Line
	for _, id := range three {
		lines, err := audit.Read(filepath.Join(s.dir, string(id), "journal"))
		require.NoError(s.t, err)
		journals = append(journals, lines)
	}
	return audit.Check(journals...)
}

// TestTheLeaderIsKilledInALoop kills whoever leads, at once or when all is in force,
// and starts it again; now and then it stops it until another leads instead.
func TestTheLeaderIsKilledInALoop(t *testing.T) {
	t.Parallel()
	lasts, err := time.ParseDuration(or(os.Getenv(rampageTime), "8s"))
	require.NoError(t, err)
	s := startService(t)
	s.settle()
	rounds := 0
	for end := time.Now().Add(lasts); time.Now().Before(end); rounds++ {
		s.strike(s.leader(-1), rounds%3 == 2)
		if rounds%2 == 0 {
			s.settle() // so this leader has assigned what the one before had
		}
	}
	s.settle()
	s.leave()
	report := s.audit()
	require.Empty(t, report.Problems)
	require.Greater(t, report.Terms, rounds/2, "%d rounds", rounds)
	require.Greater(t, report.Begun, partitions)
	t.Logf("%d leaders struck: %d terms, %d assignments, %d in force, %d acts", rounds, report.Terms, report.Assigned, report.Begun, report.Worked)
	require.NoError(t, check(io.Discard, []string{s.journal(0), s.journal(1), s.journal(2)}))
}

// strike ends the leadership of a process the hard way.
func (s *service) strike(leader int, stopped bool) {
	if !stopped {
		s.kill(leader)
		s.start(leader)
		return
	}
	require.NoError(s.t, s.cmds[leader].Process.Signal(syscall.SIGSTOP))
	s.leader(leader)
	require.NoError(s.t, s.cmds[leader].Process.Signal(syscall.SIGCONT))
}

// leave ends all processes in good order, the leader first.
func (s *service) leave() {
	s.t.Helper()
	first := s.leader(-1)
	for n := range three {
		i := (first + n) % len(three)
		require.NoError(s.t, s.cmds[i].Process.Signal(syscall.SIGTERM))
		require.NoError(s.t, s.cmds[i].Wait(), "process %s", three[i])
	}
}

func (s *service) journal(i int) string { return filepath.Join(s.dir, string(three[i]), "journal") }

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
