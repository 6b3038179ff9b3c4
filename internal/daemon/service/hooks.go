package service

import (
	"context"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/command"
)

// PrepareWithHook runs the hook that prepares the application, if there is one, whenever the leader
// names this node as its successor, until the node has ended.
func (d *Daemon) PrepareWithHook(e *cluster.Election) {
	script := d.Options.Hooks.OnPrepare
	if script == "" {
		return
	}
	d.watchers.Go(func() { // it ends with the election
		_ = e.Prepare(context.Background(), func(ctx context.Context) error {
			d.prepared.Store(false)
			env := append(d.Environment(e.Group()), "BMQ_EVENT=prepare")
			output, err := runScript(ctx, script, env)
			if err == nil {
				d.Log.Info("hook ran", "group", e.Group(), "event", "prepare", "output", output)
				d.prepared.Store(true)
			} else if ctx.Err() == nil && output != "" {
				err = fmt.Errorf("%w: %s", err, output)
			}
			return err
		})
	})
}

// Prepared reports whether the hook that prepares the application has succeeded since the last
// call. Work that begins uses what was prepared, once.
func (d *Daemon) Prepared() bool { return d.prepared.Swap(false) }

// FollowWithHooks runs the hooks, if there are any, at every change of an election's leader, one at
// a time and in order, until the node has ended. While a hook runs it may miss changes, except the
// newest.
func (d *Daemon) FollowWithHooks(e *cluster.Election) {
	if d.Options.Hooks.OnLeader == "" && d.Options.Hooks.OnFollower == "" {
		return
	}
	d.watchers.Go(func() {
		var last cluster.Leader // no hook runs for the start without a leader
		for l := range e.Observe(context.Background()) {
			if l != last {
				d.runHook(e, l)
			}
			last = l
		}
		if last.Node == d.Config.Node {
			d.runHook(e, cluster.Leader{}) // the node ended while it led
		}
	})
}

func (d *Daemon) runHook(e *cluster.Election, l cluster.Leader) {
	event, script := "follower", d.Options.Hooks.OnFollower
	if l.Node == d.Config.Node {
		event, script = "leader", d.Options.Hooks.OnLeader
	}
	if script == "" {
		return
	}
	env := append(d.Environment(e.Group()), "BMQ_EVENT="+event, "BMQ_LEADER="+string(l.Node),
		"BMQ_LEADER_META="+l.Meta)
	if l.Node != "" {
		env = append(env, fmt.Sprintf("BMQ_TERM=%d", l.Term))
	}
	if l.Node == d.Config.Node {
		// The node may have lost the lead by now, or regained it: then there is no token.
		if next, err := e.NextLSN(); err == nil && next.Term == l.Term {
			env = append(env, "BMQ_LSN="+next.String())
		}
		if left := e.Status().LeaseLeft; left > 0 {
			env = append(env, LeaseVariable(time.Now().Add(left.Duration())))
		}
	}
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(context.Background(), d.Options.Hooks.Timeout,
		fmt.Errorf("killed after %s", d.Options.Hooks.Timeout))
	defer cancel()
	output, err := runScript(ctx, script, env)
	took := time.Since(began).Round(time.Millisecond)
	about := []any{"group", e.Group(), "event", event, "leader", l.Node, "term", l.Term,
		"took", took, "output", output}
	if err != nil {
		d.Log.Warn("hook failed", append(about, "error", err)...)
		return
	}
	d.Log.Info("hook ran", about...)
}

// LeaseVariable is the environment variable with the end of the lease at that moment; a renewal
// does not change it.
func LeaseVariable(end time.Time) string {
	return "BMQ_LEASE_DEADLINE=" + end.UTC().Format(time.RFC3339Nano)
}

// runScript runs a shell script, and kills its process group when ctx ends.
func runScript(ctx context.Context, script string, env []string) (output string, err error) {
	output, err = command.Run(ctx, env, "sh", "-c", script)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return output, err
}
