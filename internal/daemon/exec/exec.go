// Package exec runs a command while, and only while, a node leads: one supervised process
// per leadership, or several in turn if it is to be restarted.
package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/exec/supervisor"
	"github.com/bmqelect/bmqelect/internal/daemon/service"
)

// Options are the options of a node with a command. Register fills in all but Command.
type Options struct {
	config.Options
	Command []string // its name and arguments

	group, restart    string
	delay, killMargin time.Duration
	passStdin         bool
}

// What happens when the command has ended by itself.
const (
	restartNever     = "never"
	restartOnFailure = "on-failure"
	restartAlways    = "always"
)

var restartPolicies = []string{restartNever, restartOnFailure, restartAlways}

// Register adds the flags: those of the command, and those of the node.
func (o *Options) Register(f *pflag.FlagSet) {
	f.StringVar(&o.group, "group", cluster.DefaultGroup,
		"election in which leadership is wanted")
	f.StringVar(&o.restart, "restart", restartNever, "start the command again when it has "+
		"ended by itself: "+strings.Join(restartPolicies, ", "))
	f.DurationVar(&o.delay, "restart-delay", time.Second, "pause before that")
	f.DurationVar(&o.killMargin, "kill-margin", 0, "how long before the end of the lease "+
		"everything is killed (0: half of --stop-margin)")
	f.BoolVar(&o.passStdin, "pass-stdin", false,
		"let the command read stdin; otherwise it gets an empty one")
	o.Options.Register(f)
}

// Resolve returns the node's configuration, with the margins filled in, or every mistake
// in the options, as a config.UsageError.
func (o *Options) Resolve() (cluster.Config, error) {
	cfg, err := o.Options.Resolve()
	if err != nil {
		return cfg, err
	}
	var errs []error
	want := func(ok bool, text string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(text, args...))
		}
	}
	e := &cfg.Election
	if e.StopMargin == 0 {
		e.StopMargin = (e.Timing.Lease - e.Timing.HeartbeatBroadcast) / 2
	}
	if o.killMargin == 0 {
		o.killMargin = e.StopMargin / 2
	}
	want(o.killMargin > 0 && o.killMargin < e.StopMargin, "--kill-margin is %s, but must be "+
		"positive and shorter than --stop-margin, %s", o.killMargin, e.StopMargin)
	want(slices.Contains(restartPolicies, o.restart), "--restart is %q, but must be %s",
		o.restart, strings.Join(restartPolicies, ", "))
	want(o.delay >= 0, "--restart-delay is %s, but must not be negative", o.delay)
	want(o.Shutdown > 0, "--shutdown-timeout is %s, but must be positive", o.Shutdown)
	want(!e.UnsafeNoScouting, "--unsafe-no-scouting has no lease, so nothing would say by "+
		"when the command must have ended")
	const never = "a node that never leads would never run the command"
	want(!e.NotCandidate, "--not-candidate: %s", never)
	want(slices.Contains(cfg.Voters, cfg.Node), "--node %s is not among --voters: %s",
		cfg.Node, never)
	return cfg, config.Usage(errors.Join(errs...))
}

// ExitStatus is an error that ends bmqnode with that status and without a message.
type ExitStatus int

// Error names the status.
func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Main is the main function of the process that supervises a command.
func Main(args []string) int { return supervisor.Main(args) }

// executor runs a command whenever its node leads.
type executor struct {
	*service.Daemon
	o        *Options
	evidence *supervisor.Evidence // of this node's life
	signals  chan os.Signal       // for the command
}

// Run runs the node and the command. It returns when the command has ended for good, with
// its ExitStatus, when ctx ends, or when the node fails. That there is no such command is
// found out before the node starts, not when it leads at last.
func Run(ctx context.Context, cfg cluster.Config, o *Options) error {
	if _, err := osexec.LookPath(o.Command[0]); err != nil {
		fmt.Fprintln(os.Stderr, "bmqnode:", err)
		return ExitStatus(supervisor.CodeOf(err))
	}
	var evidence supervisor.Evidence
	cfg.HoldEvidence = evidence.Hold
	cfg.Election.AwaitCampaign = o.group == cluster.DefaultGroup
	return service.Run(ctx, cfg, &o.Options, func(ctx context.Context, d *service.Daemon) error {
		election := d.Node.Default()
		if o.group != cluster.DefaultGroup {
			further := d.Config.Election
			further.AwaitCampaign = true
			var err error
			if election, err = d.Node.Election(o.group, further); err != nil {
				return err
			}
		}
		d.FollowWithHooks(election)
		x := &executor{Daemon: d, o: o, evidence: &evidence, signals: make(chan os.Signal, 8)}
		// SIGHUP ends other commands of bmqnode; here it is for the command.
		signal.Reset(syscall.SIGHUP)
		signal.Notify(x.signals, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
		defer signal.Stop(x.signals)
		return x.campaign(ctx, election)
	})
}

// campaign lets the command run in every leadership of this node.
func (x *executor) campaign(ctx context.Context, e *cluster.Election) error {
	l, err := e.Campaign(ctx)
	for err == nil {
		if status, ended := x.lead(ctx, l); ended {
			l.Release()
			return status
		}
		l, err = l.Again(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lead runs the command in a leadership, and again if the policy wants it. It reports
// whether the command has ended for good, and with which status.
func (x *executor) lead(ctx context.Context, l *cluster.Leadership) (status error, ended bool) {
	for {
		result, told := x.runOnce(ctx, l)
		if ctx.Err() != nil {
			return nil, true
		}
		again := x.o.restart == restartAlways || x.o.restart == restartOnFailure && result.Code != 0
		if !told && !again {
			return ExitStatus(result.Code), true
		}
		select {
		case <-l.Context().Done():
			return nil, false
		case <-ctx.Done():
			return nil, true
		case <-time.After(x.o.delay):
		}
	}
}

// runOnce runs the command once. When it returns, the command and all its descendants are
// gone; told is whether it was told to end, and did not end by itself.
func (x *executor) runOnce(
	ctx context.Context, l *cluster.Leadership,
) (result supervisor.Result, told bool) {
	token, err := l.NextLSN()
	if err != nil {
		return result, true // the leadership is over already
	}
	for len(x.signals) > 0 {
		<-x.signals // they came while no command ran
	}
	log := x.Log.With("group", x.o.group, "term", l.Term())
	c, err := x.start(l, append(x.Environment(x.o.group),
		fmt.Sprintf("BMQ_TERM=%d", token.Term), "BMQ_LSN="+token.String()))
	if err != nil {
		log.Error("command not started", "error", err)
		return supervisor.Result{Code: supervisor.CodeNotExecutable, Err: err}, false
	}
	log.Info("command started")
	told = x.watch(ctx, l, c, log)
	result = c.Result()
	log = log.With("code", result.Code, "told", told)
	switch {
	case result.Err != nil:
		log.Error("command failed to run under its supervisor", "error", result.Err)
	case result.Expired:
		log.Warn("command killed before the end of its lease")
	default:
		log.Info("command ended")
	}
	return result, told || result.Expired
}

// start starts the command under its supervisor.
func (x *executor) start(l *cluster.Leadership, env []string) (*supervisor.Command, error) {
	held, err := x.Node.ProofFiles()
	if err != nil {
		return nil, fmt.Errorf("hold what proves that the command is gone: %w", err)
	}
	if end := l.Deadline(); !end.IsZero() {
		env = append(env, service.LeaseVariable(end))
	}
	cfg := supervisor.Config{
		Self: []string{"/proc/self/exe", "supervisor"}, Args: x.o.Command, Env: env,
		Deadline: l.Deadline, Margin: x.o.killMargin, Grace: x.o.Shutdown, Held: held,
	}
	if x.o.passStdin {
		cfg.Stdin = os.Stdin
	}
	return x.evidence.Start(cfg)
}

// renewals is how often the supervisor is told the deadline while the time between the
// two margins passes: often enough that one or two may be late.
const renewals = 5

// watch moves the command's deadline with the lease, and tells the command to end when
// the leadership or ctx ends. It returns when all of the command is gone, and reports
// whether the command was told.
func (x *executor) watch(
	ctx context.Context, l *cluster.Leadership, c *supervisor.Command, log hclog.Logger,
) (told bool) {
	tick := time.NewTicker((x.Config.Election.StopMargin - x.o.killMargin) / renewals)
	defer tick.Stop()
	ending, leaving := l.Context().Done(), ctx.Done()
	var late <-chan time.Time
	stop := func() {
		c.Renew()
		c.Stop()
		told, late = true, time.After(x.o.Shutdown)
	}
	for {
		select {
		case <-c.Done():
			return told
		case <-tick.C:
			c.Renew()
		case s := <-x.signals:
			c.Signal(s.(syscall.Signal))
		case <-ending:
			ending = nil
			stop()
		case <-leaving:
			leaving = nil
			stop()
		case <-late:
			log.Warn("command killed, since it had not ended within --shutdown-timeout")
			c.Kill()
		}
	}
}
