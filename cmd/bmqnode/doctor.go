package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/doctor"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

// doctorOptions are the flags of `doctor`.
type doctorOptions struct {
	remote  remote.Cluster
	files   []string
	asJSON  bool
	strict  bool
	quiet   bool
	timeout time.Duration
}

func doctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor [--config FILE ...] [-- flags of run]",
		Short: "Find what is wrong with a cluster that runs, or with one that is planned",
		Long: "Find what is wrong with a cluster, why it matters, and how to mend it.\n\n" +
			"Without files it asks every node of the cluster that runs. With files it examines them\n" +
			"before anything is started: each by itself, all against each other, and what this machine\n" +
			"has of it: ports, addresses, directories, disk. Instead of a file, the flags of 'run' can\n" +
			"be given after two dashes. It ends with 0 if nothing fails, 1 if something does (with\n" +
			"--strict: or is to be looked at), 2 if it was called wrongly.",
		Example: "  bmqnode doctor --admin 10.0.0.1:7402\n" +
			"  bmqnode doctor --config a.yaml,b.yaml,c.yaml\n" +
			"  bmqnode doctor -- --config /etc/bmqnode.yaml --lease 2s",
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := o.examine(cmd, args)
			if err != nil {
				return err
			}
			if err := o.show(cmd.OutOrStdout(), report); err != nil {
				return err
			}
			return o.verdict(report)
		},
	}
	o.remote.Register(cmd.Flags())
	f := cmd.Flags()
	f.StringSliceVar(&o.files, "config", nil, "YAML files of a planned cluster's nodes, as for 'run'; that of this machine first")
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "most time for the answers of nodes and of the network")
	f.BoolVar(&o.strict, "strict", false, "end with 1 on warnings, too")
	f.BoolVar(&o.quiet, "quiet", false, "leave out what is as it should be")
	f.BoolVar(&o.asJSON, "json", false, "print the report as JSON")
	return cmd
}

// examine looks at what is planned if there is a plan, and else at what runs.
func (o *doctorOptions) examine(cmd *cobra.Command, args []string) (doctor.Report, error) {
	if o.timeout <= 0 {
		return doctor.Report{}, config.Usage(fmt.Errorf("--timeout is %s, but must be positive", o.timeout))
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
	defer cancel()
	var flags []string
	files := slices.Concat(o.files, args)
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		files, flags = slices.Concat(o.files, args[:at]), args[at:]
	}
	if len(files) == 0 && len(flags) == 0 {
		return o.examineRunning(ctx, cmd.Flags().Changed("admin"))
	}
	return o.examinePlanned(ctx, files, flags)
}

// show prints the report for people, or for programs.
func (o *doctorOptions) show(w io.Writer, report doctor.Report) error {
	if o.quiet {
		report.Checks = slices.DeleteFunc(report.Checks, func(c doctor.Check) bool { return c.Level == doctor.OK })
	}
	if o.asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	return printReport(w, report)
}

// verdict is the error that ends the command, if it is to end with one.
func (o *doctorOptions) verdict(report doctor.Report) error {
	fails, warnings := report.Count(doctor.Fail), report.Count(doctor.Warn)
	switch {
	case fails > 0:
		return fmt.Errorf("%s to mend, %s", counted(fails, "failure"), counted(warnings, "warning"))
	case warnings > 0 && o.strict:
		return errors.New(counted(warnings, "warning"))
	}
	return nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
