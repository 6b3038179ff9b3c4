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

type runOptions struct {
	config.Options
	file           string
	check, compare bool
}

func runCommand() *cobra.Command {
	o := runOptions{}
	cmd := &cobra.Command{
		Use: "run [--check [FILE ...]]",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.check {
				return nil
			}
			return noArgs(cmd, args)
		},
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
	var nodes []service.Checked
	for _, file := range files {
		nodes = append(nodes, service.FromFile(file))
	}
	return service.Check(cmd.Context(), cmd.OutOrStdout(), !o.compare, nodes...)
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
		return service.Check(ctx, out, true,
			service.Checked{Name: cmp.Or(o.file, "flags"), Options: &o.Options, Misread: misread})
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
		d.PrepareWithHook(d.Node.Default())
		select {
		case <-ctx.Done():
		case <-d.Node.Done():
		}
		return nil
	})
}

func execCommand() *cobra.Command {
	var o exec.Options
	var file string
	cmd := &cobra.Command{
		Use: "exec [flags] -- COMMAND [ARGUMENT...]",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no command to run; it follows the flags, after --")
			}
			return nil
		},
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
	cmd.Flags().SetInterspersed(false) // what follows the command belongs to the command
	cmd.Flags().StringVar(&file, "config", "", "YAML file of options")
	o.Register(cmd.Flags())
	return cmd
}

// supervisorCommand runs in the process between exec and its command.
func supervisorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "supervisor", Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return exec.ExitStatus(exec.Main(args)) },
	}
}
