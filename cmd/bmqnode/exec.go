package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/guard"
)

// execOptions are the flags of `exec`, beside those of `run`.
type execOptions struct {
	options
	group      string
	restart    string
	delay      time.Duration
	killMargin time.Duration
	passStdin  bool
	command    []string
	evidence   guard.Evidence // of this node's life
}

// What happens when the command has ended by itself.
const (
	restartNever     = "never"
	restartOnFailure = "on-failure"
	restartAlways    = "always"
)

var restartPolicies = []string{restartNever, restartOnFailure, restartAlways}

func (o *execOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.group, "group", cluster.DefaultGroup, "election in which leadership is wanted")
	f.StringVar(&o.restart, "restart", restartNever, "start the command again when it has ended by itself: "+strings.Join(restartPolicies, ", "))
	f.DurationVar(&o.delay, "restart-delay", time.Second, "pause before that")
	f.DurationVar(&o.killMargin, "kill-margin", 0, "how long before the end of the lease all is killed (0: half of --stop-margin)")
	f.BoolVar(&o.passStdin, "pass-stdin", false, "let the command read stdin; it gets an empty one else")
	o.options.register(f)
}

func execCommand() *cobra.Command {
	var o execOptions
	var file string
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run one node, and a command while it leads",
		Long: "Run one node as 'bmqnode run' does, and a command while, and only while, it leads.\n" +
			"Before its lease ends the command gets SIGTERM, then SIGKILL with all its descendants; this\n" +
			"holds also if bmqnode itself is killed or stopped. The command finds BMQ_TERM, BMQ_LSN (a fencing\n" +
			"token), BMQ_LEASE_DEADLINE and others in its environment. Its exit status is passed on.",
		Example: "  bmqnode exec --node a --voters a,b,c --data-dir /var/lib/bmqnode -- /usr/bin/scheduler --verbose\n" +
			"  bmqnode exec --config /etc/bmqnode.yaml --restart on-failure -- sh -c 'exec my-program'",
		Args: usageArgs(someCommand),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				if err := applyFile(file, cmd.Flags()); err != nil {
					return usageError{err}
				}
			}
			o.command = args
			cfg, err := o.resolve()
			if err == nil {
				err = o.check(&cfg)
			}
			if err != nil {
				return usageError{err}
			}
			return o.run(cmd.Context(), cfg)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().SetInterspersed(false) // what follows the command is the command's
	cmd.Flags().StringVar(&file, "config", "", "YAML file of options")
	o.register(cmd.Flags())
	return cmd
}

func someCommand(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("no command to run; it follows the flags, after --")
	}
	return nil
}

// check names everything that is wrong with the flags, and fills in the margins.
func (o *execOptions) check(cfg *cluster.Config) error {
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
	want(o.killMargin > 0 && o.killMargin < e.StopMargin, "--kill-margin is %s, but must be positive and shorter than --stop-margin, %s", o.killMargin, e.StopMargin)
	want(slices.Contains(restartPolicies, o.restart), "--restart is %q, but must be %s", o.restart, strings.Join(restartPolicies, ", "))
	want(o.delay >= 0, "--restart-delay is %s, but must not be negative", o.delay)
	want(o.shutdown > 0, "--shutdown-timeout is %s, but must be positive", o.shutdown)
	want(!e.UnsafeNoScouting, "--unsafe-no-scouting has no lease, so nothing would say by when the command must have ended")
	want(!e.NotCandidate, "--not-candidate: a node that never leads would never run the command")
	want(slices.Contains(cfg.Voters, cfg.Node), "--node %s is not among --voters: a node that never leads would never run the command", cfg.Node)
	return errors.Join(errs...)
}

// run runs the node and the command. A command that is not there is found out now, not
// when this node leads at last.
func (o *execOptions) run(ctx context.Context, cfg cluster.Config) error {
	if _, err := exec.LookPath(o.command[0]); err != nil {
		fmt.Fprintln(os.Stderr, "bmqnode:", err)
		return exitStatus(guard.CodeOf(err))
	}
	cfg.HoldEvidence = o.evidence.Hold
	cfg.Election.AwaitCampaign = o.group == cluster.DefaultGroup
	return serve(ctx, cfg, &o.options, func(ctx context.Context, p *post) error {
		return o.attend(ctx, p)
	})
}

// exitStatus is an error that ends bmqnode with that status; what there was to say has
// been said.
type exitStatus int

// Error names the status.
func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// guardCommand is what exec puts between itself and its command.
func guardCommand() *cobra.Command {
	return &cobra.Command{
		Use: "guard", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return exitStatus(guard.Main(args)) },
	}
}
