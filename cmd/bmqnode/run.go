package main

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/certify"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/exec"
	"github.com/bmqelect/bmqelect/internal/daemon/service"
)

// runOptions are the flags of `run`.
type runOptions struct {
	config.Options
	file           string
	check, compare bool
}

func runCommand() *cobra.Command {
	o := runOptions{}
	cmd := &cobra.Command{
		Use:   "run [--check [FILE ...]]",
		Short: "Run a node until SIGTERM or Ctrl-C, then hand over and exit",
		Long: "Run one node until SIGTERM or Ctrl-C, then hand over and exit.\n" +
			"The same command serves every start. Options come from flags or from a YAML\n" +
			"file whose keys are the flags' names; flags win.\n\n" +
			"With --check it starts nothing. It names every problem of the options, the data\n" +
			"directory, the addresses and the names to join, one a line, and exits with 1 if\n" +
			"there is any. Of several FILEs, one for each node, it compares what must be the\n" +
			"same on every node; the first is the one of this machine, unless --compare says\n" +
			"that none is.",
		Example: "  bmqnode run --node a --voters a,b,c --data-dir /var/lib/bmqnode \\\n" +
			"    --tls-dir tls --join b:7400 \\\n" +
			"    --gossip-addr 0.0.0.0:7400 --mesh-addr 0.0.0.0:7401\n" +
			"  bmqnode run --config /etc/bmqnode.yaml\n" +
			"  bmqnode run --check a.yaml b.yaml c.yaml",
		Args: usageArgs(func(cmd *cobra.Command, args []string) error {
			if o.check {
				return nil
			}
			return noArgs(cmd, args)
		}),
		RunE: o.run,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.file, "config", "", "YAML file of options")
	f.BoolVar(&o.check, "check", false,
		"name what is wrong with the options and this machine, and start nothing")
	f.BoolVar(&o.compare, "compare", false,
		"with --check and files: only compare them, none is of this machine")
	o.Register(f)
	return cmd
}

func (o *runOptions) checkFiles(cmd *cobra.Command, files []string) error {
	given := cmd.Flags().NFlag()
	if o.compare {
		given--
	}
	switch {
	case o.compare && (!o.check || len(files) < 2):
		return config.Usage(errors.New("--compare goes with --check and two files or more"))
	case given > 1:
		return config.Usage(errors.New("--check takes files or flags, not both"))
	}
	return service.CheckFiles(cmd.Context(), cmd.OutOrStdout(), files, !o.compare)
}

func (o *runOptions) run(cmd *cobra.Command, args []string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if len(args) > 0 || o.compare {
		return o.checkFiles(cmd, args)
	}
	var misread error
	if o.file != "" {
		misread = config.ApplyFile(o.file, cmd.Flags())
	}
	if o.check {
		return service.CheckNode(ctx, out, cmp.Or(o.file, "flags"), &o.Options, misread)
	}
	if misread != nil {
		return misread
	}
	cfg, err := o.Resolve()
	if err != nil {
		return err
	}
	cfg.Version = version()
	if o.RealTime {
		service.RealTime(cmd.ErrOrStderr())
	}
	switch {
	case o.Supervised && !certify.IsChild():
		code, err := certify.Run(os.Args[1:])
		if err != nil {
			return err
		}
		return exec.ExitStatus(code)
	case o.Supervised:
		if cfg.HoldEvidence, err = certify.Hold(); err != nil {
			return err
		}
	}
	return service.Run(ctx, cfg, &o.Options, func(ctx context.Context, d *service.Daemon) error {
		if err := d.JoinGroups(""); err != nil {
			return err
		}
		if d.Reloads() {
			d.ReloadAtHangup()
		}
		d.FollowWithHooks(d.Node.Default())
		select {
		case <-ctx.Done():
		case <-d.Node.Done():
		}
		return nil
	})
}
