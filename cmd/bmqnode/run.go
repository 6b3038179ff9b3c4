package main

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/sdnotify"
)

func runCommand() *cobra.Command {
	var o options
	var file string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run one node until SIGTERM or Ctrl-C, then hand over and exit",
		Long: "Run one node until SIGTERM or Ctrl-C, then hand over and exit.\n" +
			"The same command serves every start, the first and the hundredth. Options come from\n" +
			"flags or from a YAML file whose keys are the flags' names; flags win.",
		Example: "  bmqnode run --node a --voters a,b,c --data-dir /var/lib/bmqnode \\\n" +
			"    --join b.example:7400 --gossip-addr 0.0.0.0:7400 --mesh-addr 0.0.0.0:7401\n" +
			"  bmqnode run --config /etc/bmqnode.yaml",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file != "" {
				if err := applyFile(file, cmd.Flags()); err != nil {
					return usageError{err}
				}
			}
			cfg, err := o.resolve()
			if err != nil {
				return usageError{err}
			}
			return run(cmd.Context(), cfg, &o)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&file, "config", "", "YAML file of options")
	o.register(cmd.Flags())
	return cmd
}

// run runs a node until ctx ends or the node fails.
func run(ctx context.Context, cfg cluster.Config, o *options) error {
	log, err := newLogger(o)
	if err != nil {
		return usageError{err}
	}
	cfg.Logger = log
	manager, err := sdnotify.FromEnvironment()
	if err != nil {
		return err
	}
	side, err := o.admin.open()
	if err != nil {
		return err
	}
	cfg.AdminAddr = side.told
	node, err := cluster.Start(ctx, cfg)
	if err != nil {
		side.close()
		return err
	}
	server := side.serve(node, cfg, log.Named("admin"))
	stopping := superviseBy(manager, node, log)
	select {
	case <-ctx.Done():
	case <-node.Done():
	}
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
	return failure
}

func newLogger(o *options) (hclog.Logger, error) {
	level := hclog.LevelFromString(o.logLevel)
	if level == hclog.NoLevel {
		return nil, fmt.Errorf("--log-level is %q, but must be trace, debug, info, warn or error", o.logLevel)
	}
	options := &hclog.LoggerOptions{Level: level, Output: os.Stderr, JSONFormat: o.logFormat == "json"}
	if term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("NO_COLOR") == "" {
		options.Color, options.ColorHeaderAndFields = hclog.ForceColor, true
	}
	return hclog.New(options), nil
}
