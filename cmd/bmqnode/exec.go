package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/exec"
)

func execCommand() *cobra.Command {
	var o exec.Options
	var file string
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run one node, and a command while it leads",
		Long: "Run one node as 'bmqnode run' does, and a command while, and only while, it\n" +
			"leads. Before its lease ends the command gets SIGTERM, then SIGKILL with all its\n" +
			"descendants; this holds also if bmqnode itself is killed or stopped. The command\n" +
			"finds BMQ_TERM, BMQ_LSN (a fencing token), BMQ_LEASE_DEADLINE and others in its\n" +
			"environment. Its exit status is passed on.",
		Example: "  bmqnode exec --node a --voters a,b,c --data-dir /var/lib/bmqnode \\\n" +
			"    -- /usr/bin/scheduler --verbose\n" +
			"  bmqnode exec --config /etc/bmqnode.yaml --restart on-failure \\\n" +
			"    -- sh -c 'exec my-program'",
		Args: usageArgs(func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no command to run; it follows the flags, after --")
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				if err := config.ApplyFile(file, cmd.Flags()); err != nil {
					return err
				}
			}
			o.Command = args
			cfg, err := o.Resolve()
			if err != nil {
				return err
			}
			cfg.Version = version()
			return exec.Run(cmd.Context(), cfg, &o)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().SetInterspersed(false) // flags after the command are the command's
	cmd.Flags().StringVar(&file, "config", "", "YAML file of options")
	o.Register(cmd.Flags())
	return cmd
}

// supervisorCommand is the process that exec puts between itself and its command.
func supervisorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "supervisor", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return exec.ExitStatus(exec.Main(args)) },
	}
}
