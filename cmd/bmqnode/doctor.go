package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/doctor"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

// doctorOptions are the flags of `doctor`.
type doctorOptions struct {
	remote.Cluster
	strict, quiet bool
	timeout       time.Duration
}

func doctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor [ADDR ...]",
		Short: "Find what is wrong with a cluster that runs",
		Long: "Ask every node of a cluster, and name what is wrong, why it matters and how to\n" +
			"fix it. ADDR is the admin address of any node, as with --admin; the others are\n" +
			"found through it. It exits with 0 if nothing fails, with 1 if something does\n" +
			"(with --strict: on warnings, too), with 2 if it was called wrongly.\n\n" +
			"Before a node is started, 'bmqnode run --check' examines its configuration.",
		Example: "  bmqnode doctor 10.0.0.1:7402",
		RunE:    o.run,
	}
	f := cmd.Flags()
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "most time for the answers of all nodes")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 on warnings, too")
	f.BoolVar(&o.quiet, "quiet", false, "leave out what is in order")
	reach(cmd, &o.Cluster, 0)
	return cmd
}

func (o *doctorOptions) run(cmd *cobra.Command, args []string) error {
	if o.timeout <= 0 {
		return config.Usage(fmt.Errorf("--timeout is %s, but must be positive", o.timeout))
	}
	if len(args) > 0 {
		o.Addrs = args
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
	defer cancel()
	report, err := o.Examine(ctx, len(args) > 0 || cmd.Flags().Changed("admin"))
	if err != nil {
		return err
	}
	if o.quiet {
		inOrder := func(c doctor.Check) bool { return c.Level == doctor.OK }
		report.Checks = slices.DeleteFunc(report.Checks, inOrder)
	}
	if o.JSON {
		err = console.JSON(cmd.OutOrStdout(), report)
	} else {
		err = report.Print(cmd.OutOrStdout(), screenWidth(100))
	}
	if err != nil {
		return err
	}
	return report.Err(o.strict)
}
