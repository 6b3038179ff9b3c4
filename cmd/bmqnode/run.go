package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/doctor"
	"github.com/bmqelect/bmqelect/internal/daemon/sdnotify"
)

func runCommand() *cobra.Command {
	var o options
	var file string
	var groups []string
	var check bool
	cmd := &cobra.Command{
		Use:   "run [--check [FILE ...]]",
		Short: "Run one node until SIGTERM or Ctrl-C, then hand over and exit",
		Long: "Run one node until SIGTERM or Ctrl-C, then hand over and exit.\n" +
			"The same command serves every start. Options come from flags or from a YAML\n" +
			"file whose keys are the flags' names; flags win.\n\n" +
			"With --check it starts nothing. It names every problem of the options, the data\n" +
			"directory, the addresses and the names to join, one a line, and exits with 1 if\n" +
			"there is any. Of several FILEs, one for each node, it compares what must be the\n" +
			"same on every node; the first is the one of this machine.",
		Example: "  bmqnode run --node a --voters a,b,c --data-dir /var/lib/bmqnode \\\n" +
			"    --join b.example:7400 --gossip-addr 0.0.0.0:7400 --mesh-addr 0.0.0.0:7401\n" +
			"  bmqnode run --config /etc/bmqnode.yaml\n" +
			"  bmqnode run --check a.yaml b.yaml c.yaml",
		Args: usageArgs(func(cmd *cobra.Command, args []string) error {
			if check {
				return nil
			}
			return cobra.NoArgs(cmd, args)
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			var misread error
			if file != "" && len(args) == 0 {
				misread = applyFile(file, cmd.Flags())
			}
			switch {
			case len(args) > 0 && cmd.Flags().NFlag() > 1:
				return usageError{errors.New("--check takes files or flags, not both")}
			case len(args) > 0:
				return checkFiles(cmd.Context(), cmd.OutOrStdout(), args)
			case check:
				return checkNode(cmd.Context(), cmd.OutOrStdout(), cmp.Or(file, "flags"), &o, misread)
			case misread != nil:
				return usageError{misread}
			}
			cfg, err := o.resolve()
			if err != nil {
				return usageError{err}
			}
			return run(cmd.Context(), cfg, &o, groups)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&file, "config", "", "YAML file of options")
	cmd.Flags().BoolVar(&check, "check", false, "name what is wrong with the options and this machine, and start nothing")
	o.register(cmd.Flags())
	cmd.Flags().StringSliceVar(&groups, "groups", nil, "further elections to take part in, by name, the same on every node")
	return cmd
}

// post is a running node with all that belongs to it.
type post struct {
	*options
	node  *cluster.Node
	cfg   cluster.Config
	side  *adminSide
	log   hclog.Logger
	hooks sync.WaitGroup // they end with the node
}

// run runs a node until ctx ends or the node fails.
func run(ctx context.Context, cfg cluster.Config, o *options, groups []string) error {
	return serve(ctx, cfg, o, func(ctx context.Context, p *post) error {
		for _, group := range groups {
			if _, err := p.node.Election(group, cfg.Election); err != nil {
				return fmt.Errorf("--groups: %w", err)
			}
		}
		p.followWithHooks(p.node.Default())
		select {
		case <-ctx.Done():
		case <-p.node.Done():
		}
		return nil
	})
}

// serve runs a node for as long as work goes on. It returns why the node failed, or
// else what work returned.
func serve(ctx context.Context, cfg cluster.Config, o *options, work func(context.Context, *post) error) error {
	log, err := newLogger(o)
	if err != nil {
		return usageError{err}
	}
	cfg.Logger = log
	if err := sdnotify.Send("STATUS=starting"); err != nil {
		return fmt.Errorf("notify socket of the service manager, NOTIFY_SOCKET: %w", err)
	}
	side, err := o.admin.open()
	if err != nil {
		return doctor.Explain(err)
	}
	cfg.AdminAddr = side.told
	node, err := cluster.Start(ctx, cfg)
	if err != nil {
		side.close()
		return doctor.Explain(err)
	}
	server := side.serve(node, cfg, log.Named("admin"))
	stopping := sync.OnceFunc(supervise(node, log))
	context.AfterFunc(ctx, stopping) // the work may take its time to end
	p := &post{options: o, node: node, cfg: cfg, side: side, log: log}
	p.hooks.Go(func() { watchForDuplicate(node, log) })
	outcome := work(ctx, p)
	defer time.AfterFunc(o.shutdown+lastPatience, func() { os.Exit(exitFailure) }).Stop()
	stopping()
	failure := node.Err()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.shutdown)
	defer cancel()
	if err := node.Close(ctx); err != nil {
		log.Warn("not a clean end", "error", err)
	}
	if err := server.Close(ctx); err != nil {
		log.Warn("requests were cut off", "error", err)
	}
	p.hooks.Wait()
	if failure != nil {
		return failure
	}
	return outcome
}

// lastPatience is how long after --shutdown-timeout the process ends by itself at the
// latest: a log that nobody reads may hold up whoever would say what hangs.
const lastPatience = 2 * time.Second

// checkLogLevel reads --log-level.
func (o *options) checkLogLevel() (hclog.Level, error) {
	level := hclog.LevelFromString(o.logLevel)
	if level == hclog.NoLevel {
		return level, fmt.Errorf("--log-level is %q, but must be trace, debug, info, warn or error", o.logLevel)
	}
	return level, nil
}

func newLogger(o *options) (hclog.Logger, error) {
	level, err := o.checkLogLevel()
	if err != nil {
		return nil, err
	}
	out, err := logOutput(o.logFile)
	if err != nil {
		return nil, err
	}
	options := &hclog.LoggerOptions{Level: level, Output: out, JSONFormat: o.logFormat == "json"}
	if term.IsTerminal(int(out.Fd())) && os.Getenv("NO_COLOR") == "" {
		options.Color, options.ColorHeaderAndFields = hclog.ForceColor, true
	}
	return hclog.New(options), nil
}

// logOutput is where the log goes: to the end of a file, or to stderr if it is "".
func logOutput(file string) (*os.File, error) {
	if file == "" {
		return os.Stderr, nil
	}
	// Not to wait for the reader of a FIFO.
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--log-file: %w", err)
	}
	return out, nil
}
