package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/service"
)

func runCommand() *cobra.Command {
	var o config.Options
	var file string
	var groups []string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run one node until SIGTERM or Ctrl-C, then hand over and exit",
		Long: "Run one node until SIGTERM or Ctrl-C, then hand over and exit. The same command\n" +
			"serves every start. Options come from flags or from a YAML file whose keys are\n" +
			"the flags' names; flags win.",
		Example: "  bmqnode run --node a --voters a,b,c --data-dir /var/lib/bmqnode \\\n" +
			"    --join b.example:7400 --gossip-addr 0.0.0.0:7400 --mesh-addr 0.0.0.0:7401\n" +
			"  bmqnode run --config /etc/bmqnode.yaml",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file != "" {
				if err := config.ApplyFile(file, cmd.Flags()); err != nil {
					return err
				}
			}
			cfg, err := o.Resolve()
			if err != nil {
				return err
			}
			cfg.Version = version()
			return service.Run(cmd.Context(), cfg, &o, runNode(groups))
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&file, "config", "", "YAML file of options")
	o.Register(cmd.Flags())
	cmd.Flags().StringSliceVar(&groups, "groups", nil,
		"further elections to take part in, by name, the same on every node")
	return cmd
}

// runNode takes part in the elections until ctx ends or the node fails.
func runNode(groups []string) func(context.Context, *service.Daemon) error {
	return func(ctx context.Context, d *service.Daemon) error {
		for _, group := range groups {
			if _, err := d.Node.Election(group, d.Config.Election); err != nil {
				return fmt.Errorf("--groups: %w", err)
			}
		}
		d.FollowWithHooks(d.Node.Default())
		select {
		case <-ctx.Done():
		case <-d.Node.Done():
		}
		return nil
	}
}
