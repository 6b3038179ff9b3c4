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

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/doctor"
)

// doctorOptions are the flags of `doctor`.
type doctorOptions struct {
	remote  remote
	asJSON  bool
	strict  bool
	quiet   bool
	timeout time.Duration
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
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.timeout <= 0 {
				return usageError{fmt.Errorf("--timeout is %s, but must be positive", o.timeout)}
			}
			if len(args) > 0 {
				o.remote.addrs = args
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
			defer cancel()
			report, err := o.examine(ctx, len(args) > 0 || cmd.Flags().Changed("admin"))
			if err != nil {
				return err
			}
			if err := o.show(cmd.OutOrStdout(), report); err != nil {
				return err
			}
			fails, warnings := report.Count(doctor.Fail), report.Count(doctor.Warn)
			switch {
			case fails > 0:
				return fmt.Errorf("%s, %s", counted(fails, "failure"), counted(warnings, "warning"))
			case warnings > 0 && o.strict:
				return errors.New(counted(warnings, "warning"))
			}
			return nil
		},
	}
	o.remote.register(cmd)
	f := cmd.Flags()
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "most time for the answers of all nodes")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 on warnings, too")
	f.BoolVar(&o.quiet, "quiet", false, "leave out what is in order")
	f.BoolVar(&o.asJSON, "json", false, "print the report as JSON")
	return cmd
}

// examine asks the nodes at the given addresses, and the members that these know. An
// address that nobody named need not answer.
func (o *doctorOptions) examine(ctx context.Context, named bool) (doctor.Report, error) {
	var all []answerOf
	o.remote.figures = true
	if err := o.remote.walk(ctx, true, func(a answerOf) bool {
		all = append(all, a)
		return false
	}); err != nil {
		return doctor.Report{}, err
	}
	if !slices.ContainsFunc(all, func(a answerOf) bool { return a.Status != nil }) {
		return doctor.Report{}, nobodyAnswers("name one that runs with --admin", all)
	}
	var answers []doctor.Answer
	for _, a := range all {
		// The silence at an address may be told as that of a node already.
		askedAsMember := slices.ContainsFunc(all, func(b answerOf) bool { return b.Node != "" && b.via == a.via })
		switch {
		case a.Status != nil:
		case a.given && (!named || askedAsMember):
			continue
		case !a.given && !isMissed(a.Node, all) && !(named && slices.Contains(o.remote.addrs, a.via)):
			continue
		}
		answers = append(answers, doctor.Answer{
			Node: a.Node, Addr: a.via, Status: a.Status, Error: a.Error,
			Figures: a.figures.Values, AheadLeast: a.figures.AheadLeast, AheadMost: a.figures.AheadMost,
		})
	}
	return doctor.Examine(answers), nil
}

// isMissed leaves out an observer that has left, and a node that answered at another
// address than the one that others know.
func isMissed(id cluster.NodeID, among []answerOf) bool {
	missed := false
	for _, a := range among {
		if a.Status == nil {
			continue
		}
		if a.Node == id {
			return false
		}
		for _, m := range a.Status.Members {
			missed = missed || m.Node == id && (m.Voter || m.Gossip == "alive" || m.Link == "up")
		}
	}
	return missed
}

// show prints the report as text or as JSON.
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

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
