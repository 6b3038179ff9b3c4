package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/ask"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/lsn"
)

func recordCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "record"}
	cmd.AddCommand(recordGetCommand(), recordPutCommand(), recordWatchCommand())
	return cmd
}

func recordGetCommand() *cobra.Command {
	var file string
	var newest bool
	cmd := &cobra.Command{Use: "get"}
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write to (default: stdout)")
	cmd.Flags().BoolVar(&newest, "newest", false,
		"fail unless the leader says that it is the newest")
	return tellingLeader(cmd, 0, anybody, "the answer", func(
		ctx context.Context, l leading, _ []string,
	) (any, string, error) {
		rec, err := l.record(ctx, newest, cmd.ErrOrStderr())
		if err != nil || file == "" || l.json {
			return rec, string(rec.Value), err
		}
		return rec, fmt.Sprintf("%s: value %s, %s\n", file, rec.ValueLSN,
			console.Count(len(rec.Value), "byte")), os.WriteFile(file, rec.Value, 0o600)
	})
}

// record returns the newest committed record. If no leader says which that is, it is the newest
// that the node knows, and warn is told so; with newest that is an error.
func (l leading) record(ctx context.Context, newest bool, warn io.Writer) (admin.Record, error) {
	rec, err := admin.Record{}, l.gone
	if err == nil {
		end, _ := ctx.Deadline()
		half, cancel := context.WithTimeout(ctx, time.Until(end)/2) // the rest: for the next
		defer cancel()
		rec, err = l.Record(half, l.group, true)
	}
	if err == nil || newest {
		return rec, err
	}
	rec, failed := l.Record(ctx, l.group, false)
	if failed == nil {
		fmt.Fprintf(warn, "as %s knows it, perhaps not the newest: %v\n", l.node, err)
	}
	return rec, failed
}

func recordPutCommand() *cobra.Command {
	var match lsn.LSN
	cmd := &cobra.Command{Use: "put FILE", Args: cobra.ExactArgs(1)}
	cmd.Flags().TextVar(&match, "if-match", match, "only if the present value has this `LSN`; 0.0: "+
		"only if there is none")
	cmd.Flags().Lookup("if-match").DefValue = "" // so that help shows no default
	tellingLeader(cmd, 0, follower, "a quorum", func(
		ctx context.Context, l leading, args []string,
	) (any, string, error) {
		value, err := readValue(cmd.InOrStdin(), args[0])
		if err != nil {
			return nil, "", config.Usage(err)
		}
		only := &match
		if !cmd.Flags().Changed("if-match") {
			only = nil
		}
		done, err := l.Publish(ctx, l.group, value, only)
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w: it is not known whether the value was written; 'bmqnode record get' "+
				"--newest' tells once there is a leader with a quorum", err)
		}
		return done, fmt.Sprintf("value %s, %s: a quorum keeps it\n", done.LSN,
			console.Count(len(value), "byte")), err
	})
	cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	return cmd
}

// readValue reads a file, or the standard input for "-".
func readValue(in io.Reader, file string) ([]byte, error) {
	if file == "-" {
		file = "the standard input"
	} else {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	value, err := io.ReadAll(io.LimitReader(in, cluster.MaxValue+1))
	if err == nil && len(value) > cluster.MaxValue {
		err = fmt.Errorf("%s has more than %d bytes, the limit of a value", file, cluster.MaxValue)
	}
	return value, err
}

func recordWatchCommand() *cobra.Command {
	var group string
	cmd := &cobra.Command{Use: "watch"}
	groupFlag(cmd, &group)
	return asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, _ []string) error {
		out := cmd.OutOrStdout()
		return c.WatchRecord(cmd.Context(), group, func(rec admin.Record) {
			if c.JSON {
				_ = json.NewEncoder(out).Encode(rec) // an error means that nobody reads any more
				return
			}
			fmt.Fprintln(out, time.Now().Format("15:04:05.000"), ask.RecordLine(rec))
		})
	})
}

func groupFlag(cmd *cobra.Command, group *string) {
	cmd.Flags().StringVar(group, "group", cluster.DefaultGroup, "the election that is meant")
}

func votersCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "voters", Args: noSuchCommand, SuggestionsMinimumDistance: 2}
	tellingLeader(cmd, 0, anybody, "the answer", func(
		ctx context.Context, l leading, _ []string,
	) (any, string, error) {
		st, err := l.StatusOf(ctx, cluster.Selection{Group: l.group})
		g := admin.GroupIn(st, l.group)
		return g, ask.VotersTable(st, g), err
	})
	one := func(args []string) cluster.NodeID { return cluster.NodeID(args[0]) }
	cmd.AddCommand(
		changingVoters("add NODE", 1, func(args []string) admin.VotersRequest {
			return admin.VotersRequest{Add: one(args)}
		}),
		changingVoters("remove NODE", 1, func(args []string) admin.VotersRequest {
			return admin.VotersRequest{Remove: one(args)}
		}),
		changingVoters("replace NODE [BY]", 2, func(args []string) admin.VotersRequest {
			return admin.VotersRequest{Replace: one(args), By: one(args[len(args)-1:])}
		}),
	)
	return cmd
}

// listed is of how many elections the steps are printed one by one, as status lists them.
const listed = 32

// voterSteps prints the steps of a change: those of the first elections, and the sum of all others.
type voterSteps struct {
	out    io.Writer
	groups map[string]bool // whose steps are printed
	more   map[string]int  // of the others, by text
	said   time.Time       // when their sum was printed last
}

func (v *voterSteps) print(step cluster.VoterStep) {
	if v.groups[step.Group] || len(v.groups) < listed {
		v.groups[step.Group] = true
		fmt.Fprintf(v.out, "%s: %s\n", step.Group, step.Text)
		return
	}
	if v.more[step.Text]++; time.Since(v.said) > time.Second {
		v.sum()
	}
}

func (v *voterSteps) sum() {
	v.said = time.Now()
	for _, text := range slices.Sorted(maps.Keys(v.more)) {
		fmt.Fprintf(v.out, "%d elections more: %s\n", v.more[text], text)
	}
}

// changingVoters is a command that asks a node to change the voters, and prints the steps.
func changingVoters(
	use string, most int, request func([]string) admin.VotersRequest,
) *cobra.Command {
	var dryRun bool
	var timeout time.Duration
	cmd := &cobra.Command{Use: use}
	if most > 1 {
		cmd.Args = cobra.RangeArgs(1, most)
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be done, or what is wrong")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "longest wait for the next step")
	return asking(cmd, most, func(cmd *cobra.Command, c *ask.Cluster, args []string) error {
		finishUnread()
		ctx, end := context.WithCancelCause(cmd.Context())
		wait := time.AfterFunc(timeout, func() { end(context.DeadlineExceeded) })
		defer wait.Stop()
		_, client, err := c.AtLeader(ctx, cluster.DefaultGroup, true)
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		req, out := request(args), cmd.OutOrStdout()
		req.DryRun = dryRun
		steps := voterSteps{out: out, groups: map[string]bool{}, more: map[string]int{}, said: time.Now()}
		err = client.ChangeVoters(ctx, req, func(step cluster.VoterStep) {
			wait.Reset(timeout)
			if c.JSON {
				_ = json.NewEncoder(out).Encode(step) // an error means that nobody reads any more
				return
			}
			steps.print(step)
		})
		steps.sum()
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: the change may be done yet, and the command can be repeated",
				context.Cause(ctx))
		case err == nil && dryRun && !c.JSON:
			fmt.Fprintln(out, "nothing was changed")
		}
		return err
	})
}
