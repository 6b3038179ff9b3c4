package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/guard"
)

// executor runs a command whenever its node leads.
type executor struct {
	*post
	o        *execOptions
	election *cluster.Election
	signals  chan os.Signal // to be passed on
}

// attend opens the election and runs the command until it has ended for good, ctx ends
// or the node fails.
func (o *execOptions) attend(ctx context.Context, p *post) error {
	x := &executor{post: p, o: o, signals: make(chan os.Signal, 8)}
	var err error
	if x.election, err = x.open(); err != nil {
		return err
	}
	p.followWithHooks(x.election)
	// For other commands SIGHUP is the end; here it is the command's.
	signal.Reset(syscall.SIGHUP)
	signal.Notify(x.signals, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(x.signals)
	return x.campaign(ctx)
}

func (x *executor) open() (*cluster.Election, error) {
	if x.o.group == cluster.DefaultGroup {
		return x.node.Default(), nil
	}
	cfg := x.cfg.Election
	cfg.AwaitCampaign = true
	return x.node.Election(x.o.group, cfg)
}

// campaign lets the command run in every leadership of this node.
func (x *executor) campaign(ctx context.Context) error {
	l, err := x.election.Campaign(ctx)
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

// lead runs the command, and again as the policy wants it, until it is not to run here
// any more. It reports whether it has ended for good, with what.
func (x *executor) lead(ctx context.Context, l *cluster.Leadership) (status error, ended bool) {
	for {
		result, told := x.turn(ctx, l)
		switch {
		case ctx.Err() != nil:
			return nil, true
		case !told && !x.again(result):
			return exitStatus(result.Code), true
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

// again reports whether a command that has ended by itself is to start again.
func (x *executor) again(r guard.Result) bool {
	return x.o.restart == restartAlways || x.o.restart == restartOnFailure && r.Code != 0
}

// turn runs the command once. When it returns, the command and all its descendants are
// gone; told is whether it was told to end, and did not end by itself.
func (x *executor) turn(ctx context.Context, l *cluster.Leadership) (result guard.Result, told bool) {
	env, err := x.commandEnvironment(l, x.o.group)
	if err != nil {
		return guard.Result{}, true // the leadership is over already
	}
	x.forget()
	c, err := x.start(l, env)
	if err != nil {
		x.log.Error("command not started", "group", x.o.group, "error", err)
		return guard.Result{Code: guard.CodeNotExecutable, Err: err}, false
	}
	x.log.Info("command started", "group", x.o.group, "term", l.Term())
	result, told = x.watch(ctx, l, c)
	x.report(l, result, told)
	return result, told || result.Expired
}

// forget drops signals that came while no command ran.
func (x *executor) forget() {
	for len(x.signals) > 0 {
		<-x.signals
	}
}

// start starts the command under its guard.
func (x *executor) start(l *cluster.Leadership, env []string) (*guard.Command, error) {
	held, err := guard.Holding(x.node.Status().MeshAddr, x.cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("keep what proves that the command is gone: %w", err)
	}
	defer guard.Release(held)
	cfg := guard.Config{
		Self: []string{"/proc/self/exe", "guard"}, Args: x.o.command, Env: env,
		Deadline: l.Deadline, Margin: x.o.killMargin, Grace: x.o.shutdown, Held: held,
	}
	if x.o.passStdin {
		cfg.Stdin = os.Stdin
	}
	return x.o.evidence.Start(cfg)
}

// renewals is how often the guard is told of the deadline while there is time between
// the two margins: often enough that one or two may be late.
const renewals = 5

// watch moves the command's deadline on with the lease, and tells the command to end
// when the leadership ends or ctx does. It returns when all of the command is gone.
func (x *executor) watch(ctx context.Context, l *cluster.Leadership, c *guard.Command) (result guard.Result, told bool) {
	tick := time.NewTicker((x.cfg.Election.StopMargin - x.o.killMargin) / renewals)
	defer tick.Stop()
	ending, leaving := l.Context().Done(), ctx.Done()
	var late <-chan time.Time
	stop := func() {
		c.Renew()
		c.Stop()
		told, late = true, time.After(x.o.shutdown)
	}
	for {
		select {
		case <-c.Done():
			return c.Result(), told
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
			x.log.Warn("command killed, since it had not ended within --shutdown-timeout", "group", x.o.group, "term", l.Term())
			c.Kill()
		}
	}
}

// report logs how the command ended.
func (x *executor) report(l *cluster.Leadership, r guard.Result, told bool) {
	fields := []any{"group", x.o.group, "term", l.Term(), "code", r.Code, "told", told}
	switch {
	case r.Err != nil:
		x.log.Error("command failed to run under its guard", append(fields, "error", r.Err)...)
	case r.Expired:
		x.log.Warn("command killed before the end of its lease", fields...)
	default:
		x.log.Info("command ended", fields...)
	}
}
