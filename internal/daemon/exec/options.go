// Package exec runs a command while, and only while, a node leads: one supervised process in each
// leadership, or several in turn if it is restarted. It needs Linux.
package exec

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
)

// Options are the options of a node with a command. Register fills in all except Command.
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

// Resolve returns the node's configuration with the margins filled in, or every mistake in the
// options as a config.UsageError.
func (o *Options) Resolve() (cluster.Config, error) {
	cfg, err := o.Options.Resolve()
	if err != nil {
		return cfg, err
	}
	var wrong config.Mistakes
	e := &cfg.Election
	if e.StopMargin == 0 {
		e.StopMargin = (e.Timing.Lease - e.Timing.HeartbeatBroadcast) / 2
	}
	if o.killMargin == 0 {
		o.killMargin = e.StopMargin / 2
	}
	wrong.Want(o.killMargin > 0 && o.killMargin < e.StopMargin, "--kill-margin is %s, but must be "+
		"positive and shorter than --stop-margin, %s", o.killMargin, e.StopMargin)
	wrong.Want(slices.Contains(restartPolicies, o.restart), "--restart is %q, but must be %s",
		o.restart, strings.Join(restartPolicies, ", "))
	wrong.Want(o.delay >= 0, "--restart-delay is %s, but must not be negative", o.delay)
	wrong.Want(o.Shutdown > 0, "--shutdown-timeout is %s, but must be positive", o.Shutdown)
	wrong.Want(!e.UnsafeNoScouting, "--unsafe-no-scouting has no lease, so nothing would say by "+
		"when the command must have ended")
	const never = "a node that never leads would never run the command"
	wrong.Want(!e.NotCandidate, "--not-candidate: %s", never)
	wrong.Want(slices.Contains(cfg.Voters, cfg.Node), "--node %s is not among --voters: %s",
		cfg.Node, never)
	return cfg, wrong.Err()
}

// ExitStatus is an error that ends bmqnode with that status and without a message.
type ExitStatus int

// Error names the status.
func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }
