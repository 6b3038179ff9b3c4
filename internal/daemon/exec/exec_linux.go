package exec

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/exec/supervisor"
	"github.com/bmqelect/bmqelect/internal/daemon/service"
)

// Main is the main function of the process that supervises a command.
func Main(args []string) int { return supervisor.Main(args) }

// executor runs a command whenever its node leads.
type executor struct {
	*service.Daemon
	o        *Options
	evidence *supervisor.Evidence // of this node's life
	signals  chan os.Signal       // to pass on to the command
}

// Run runs the node and the command. It returns the command's ExitStatus when the command has ended
// for good, or when ctx ends or the node fails. It looks for the command before the node starts,
// not only when the node leads.
func Run(ctx context.Context, cfg cluster.Config, o *Options) error {
	if _, err := osexec.LookPath(o.Command[0]); err != nil {
		fmt.Fprintln(os.Stderr, "bmqnode:", err)
		return ExitStatus(supervisor.CodeOf(err))
	}
	var evidence supervisor.Evidence
	cfg.HoldEvidence = func(conn net.Conn, _ []byte) error { return evidence.Hold(conn) }
	if o.RealTime {
		service.RealTime(os.Stderr)
	}
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
		if err := d.JoinGroups(o.group); err != nil {
			return err
		}
		d.FollowWithHooks(election)
		d.PrepareWithHook(election)
		x := &executor{Daemon: d, o: o, evidence: &evidence, signals: make(chan os.Signal, 8)}
		d.ReloadAtHangup() // SIGHUP is for the command, too
		signal.Notify(x.signals, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
		defer signal.Stop(x.signals)
		return x.campaign(ctx, election)
	})
}

// campaign runs the command in every leadership of this node.
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

// lead runs the command in a leadership, and again if the policy says so. ended is whether the
// command has ended for good; status is its exit status then.
func (x *executor) lead(ctx context.Context, l *cluster.Leadership) (status error, ended bool) {
	for {
		result, stopped := x.runOnce(ctx, l)
		if ctx.Err() != nil {
			return nil, true
		}
		again := x.o.restart == restartAlways || x.o.restart == restartOnFailure && result.Code != 0
		if !stopped && !again {
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

// runOnce runs the command once. When it returns, the command and all its descendants are gone;
// stopped is whether this node ended them.
func (x *executor) runOnce(
	ctx context.Context, l *cluster.Leadership,
) (result supervisor.Result, stopped bool) {
	token, err := l.NextLSN()
	if err != nil {
		return result, true // the leadership is over already
	}
	for len(x.signals) > 0 {
		<-x.signals // from a time without a command
	}
	about := []any{"group", x.o.group, "term", l.Term()}
	started := func() { x.Log.Info("command started", about...) }
	c, err := x.start(l, started, append(x.Environment(x.o.group),
		fmt.Sprintf("BMQ_TERM=%d", token.Term), "BMQ_LSN="+token.String(),
		"BMQ_LEADER_META="+x.Config.Meta, fmt.Sprintf("BMQ_PREPARED=%t", x.Prepared())))
	if err != nil {
		x.Log.Error("command not started", append(about, "error", err)...)
		return supervisor.Result{Code: supervisor.CodeNotExecutable, Err: err}, false
	}
	stopped = x.watch(ctx, l, c)
	result = c.Result()
	x.report(result, append(about, "code", result.Code, "stopped", stopped)...)
	return result, stopped || result.Expired
}

func (x *executor) report(result supervisor.Result, about ...any) {
	switch {
	case errors.Is(result.Err, supervisor.ErrLate):
		x.Log.Warn("command not started: the lease has ended", about...)
	case result.Err != nil:
		x.Log.Error("command failed to run under its supervisor", append(about, "error", result.Err)...)
	case result.Expired:
		x.Log.Warn("command killed before the end of its lease", about...)
	default:
		x.Log.Info("command ended", about...)
	}
}

func (x *executor) start(
	l *cluster.Leadership, started func(), env []string,
) (*supervisor.Command, error) {
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
		Started: started,
	}
	if x.o.passStdin {
		cfg.Stdin = os.Stdin
	}
	return x.evidence.Start(cfg)
}

// renewals is how often the supervisor gets the deadline in the time between the two margins. One
// or two may be late.
const renewals = 5

// watch moves the command's deadline with the lease, and tells the command to end when the
// leadership ends, or ctx, and then once the successor is prepared. It returns when the command and
// its descendants are gone, and reports whether this node ended them.
func (x *executor) watch(
	ctx context.Context, l *cluster.Leadership, c *supervisor.Command,
) (stopped bool) {
	tick := time.NewTicker((x.Config.Election.StopMargin - x.o.killMargin) / renewals)
	defer tick.Stop()
	ending, leaving := l.Context().Done(), ctx.Done()
	var late <-chan time.Time
	prepared := make(chan struct{})
	stop := func() {
		c.Renew()
		c.Stop()
		stopped, late = true, time.After(x.o.Shutdown)
	}
	for {
		select {
		case <-c.Done():
			return stopped
		case <-tick.C:
			c.Renew()
		case s := <-x.signals:
			c.Signal(s.(syscall.Signal))
		case <-ending:
			ending = nil
			stop()
		case <-leaving:
			leaving = nil
			go func() { defer close(prepared); l.AwaitSuccessor() }()
		case <-prepared:
			prepared = nil
			stop()
		case <-late:
			x.Log.Warn("command killed, since it had not ended within --shutdown-timeout",
				"group", x.o.group, "term", l.Term())
			c.Kill()
		}
	}
}
