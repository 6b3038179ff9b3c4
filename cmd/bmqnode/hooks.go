package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
)

// hookOptions are the flags about hooks: commands that are told who leads.
type hookOptions struct {
	onLeader, onFollower string
	timeout              time.Duration
}

func (o *hookOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.onLeader, "on-leader", "", "shell command to run when this node has become leader; a notification, not guarded work")
	f.StringVar(&o.onFollower, "on-follower", "", "shell command to run when another node, or none any more, leads")
	f.DurationVar(&o.timeout, "hook-timeout", 10*time.Second, "after which such a command is killed")
}

// check names what is wrong with the flags.
func (o *hookOptions) check() error {
	if o.timeout <= 0 {
		return fmt.Errorf("--hook-timeout is %s, but must be positive", o.timeout)
	}
	return nil
}

// What hooks are told has happened.
const (
	eventLeader   = "leader"
	eventFollower = "follower"
)

// followWithHooks runs hooks at every change of who leads an election, one at a time
// and in order, until the node has ended. While one runs others may be skipped, never
// the newest.
func (p *post) followWithHooks(e *cluster.Election) {
	o := p.options.hooks
	if o.onLeader == "" && o.onFollower == "" {
		return
	}
	p.hooks.Go(func() {
		var last cluster.Leader // none, at the start, is no news
		for l := range e.Observe(context.Background()) {
			if l != last {
				p.runHook(e, l)
			}
			last = l
		}
		if last.Node == p.cfg.Node {
			p.runHook(e, cluster.Leader{}) // it ended while it led
		}
	})
}

// runHook runs the hook for a leader, if there is one.
func (p *post) runHook(e *cluster.Election, l cluster.Leader) {
	event, script := eventFollower, p.options.hooks.onFollower
	if l.Node == p.cfg.Node {
		event, script = eventLeader, p.options.hooks.onLeader
	}
	if script == "" {
		return
	}
	began := time.Now()
	output, err := runScript(script, p.hookEnvironment(e, event, l), p.options.hooks.timeout)
	fields := []any{"group", e.Group(), "event", event, "leader", l.Node, "term", l.Term, "took", time.Since(began).Round(time.Millisecond), "output", output}
	if err != nil {
		p.log.Warn("hook failed", append(fields, "error", err)...)
		return
	}
	p.log.Info("hook ran", fields...)
}

// runScript runs a shell script, and kills its process group when the time is over. A
// process that it leaves in the background goes on; its output is not waited for.
func runScript(script string, env []string, timeout time.Duration) (output string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var out tail
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = outputDelay
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("killed after %s", timeout)
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil
	}
	return out.String(), err
}

// outputDelay bounds the wait for the output of what a script left in the background.
const outputDelay = 200 * time.Millisecond

// tail keeps the end of what is written to it, for a log line.
type tail struct{ kept []byte }

const tailSize = 4096

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if surplus := len(t.kept) - tailSize; surplus > 0 {
		t.kept = append(t.kept[:0], t.kept[surplus:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.kept)) }

// hookEnvironment is what a hook is told.
func (p *post) hookEnvironment(e *cluster.Election, event string, l cluster.Leader) []string {
	env := p.environment(e.Group())
	env = append(env, "BMQ_EVENT="+event, "BMQ_LEADER="+string(l.Node))
	if l.Node != "" {
		env = append(env, fmt.Sprintf("BMQ_TERM=%d", l.Term))
	}
	if event != eventLeader {
		return env
	}
	// It may lead no more, or not yet again: then there is no token.
	if next, err := e.NextLSN(); err == nil && next.Term == l.Term {
		env = append(env, "BMQ_LSN="+next.String())
	}
	if left := e.Status().LeaseLeft; left > 0 {
		env = append(env, leaseVariable(time.Now().Add(left.Duration())))
	}
	return env
}

// ownVariables are not inherited by commands: those that bmqnode sets itself, and those
// by which the service manager speaks to bmqnode alone.
var ownVariables = []string{
	"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
	"BMQ_NODE", "BMQ_CLUSTER", "BMQ_GROUP", "BMQ_TERM", "BMQ_LSN", "BMQ_LEASE_DEADLINE",
	"BMQ_ADMIN_ADDR", "BMQ_ADMIN_SOCKET", "BMQ_EVENT", "BMQ_LEADER",
}

// environment is this process's, without what another bmqnode said, and with what is
// true of every command of this node.
func (p *post) environment(group string) (env []string) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !isOwn(name) {
			env = append(env, v)
		}
	}
	env = append(env, "BMQ_NODE="+string(p.cfg.Node), "BMQ_CLUSTER="+p.cfg.Cluster, "BMQ_GROUP="+group)
	return append(env, p.side.variables()...)
}
