package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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
	var group, file string
	cmd := &cobra.Command{Use: "get"}
	groupFlag(cmd, &group)
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write to (default: stdout)")
	return asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, _ []string) error {
		rec, err := c.Record(cmd.Context(), group)
		if rec.LSN.IsZero() {
			return err
		}
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "perhaps not the newest: %s\n", err)
		}
		switch {
		case c.JSON:
			return console.JSON(cmd.OutOrStdout(), rec)
		case file == "":
			_, err = cmd.OutOrStdout().Write(rec.Value)
			return err
		}
		if err := os.WriteFile(file, rec.Value, 0o600); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: value %s, %s\n", file, rec.ValueLSN,
			console.Count(len(rec.Value), "byte"))
		return err
	})
}

func recordPutCommand() *cobra.Command {
	var group, match string
	var timeout time.Duration
	cmd := &cobra.Command{Use: "put FILE", Args: cobra.ExactArgs(1)}
	groupFlag(cmd, &group)
	cmd.Flags().StringVar(&match, "if-match", "", "only if the present value has this LSN; 0.0: only "+
		"if there is none")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "longest wait for a quorum")
	asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, args []string) error {
		var at *lsn.LSN
		if match != "" {
			parsed, err := lsn.Parse(match)
			if err != nil {
				return config.Usage(fmt.Errorf("--if-match is %q, but must be an LSN such as 5.2", match))
			}
			at = &parsed
		}
		value, err := readValue(cmd.InOrStdin(), args[0])
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		client, err := c.NearLeader(ctx, group)
		if err != nil {
			return err
		}
		done, err := client.Publish(ctx, group, value, at)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("no answer within %s: it is not known whether the value was written; "+
				"'bmqnode record get' tells: %w", timeout, err)
		case err != nil:
			return err
		case c.JSON:
			return console.JSON(cmd.OutOrStdout(), done)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "value %s, %s: a quorum keeps it\n", done.LSN,
			console.Count(len(value), "byte"))
		return err
	})
	cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	return cmd
}

// readValue reads a file, or the standard input for "-".
func readValue(in io.Reader, file string) (value []byte, err error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, config.Usage(err)
		}
		defer f.Close()
		in = f
	}
	value, err = io.ReadAll(io.LimitReader(in, cluster.MaxValue+1))
	if err == nil && len(value) > cluster.MaxValue {
		err = config.Usage(fmt.Errorf("%s has more than %d bytes, the limit of a value", file,
			cluster.MaxValue))
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
		}, func(err error) { fmt.Fprintln(cmd.ErrOrStderr(), err) })
	})
}

func groupFlag(cmd *cobra.Command, group *string) {
	cmd.Flags().StringVar(group, "group", cluster.DefaultGroup, "the election that is meant")
}

func votersCommand() *cobra.Command {
	var group string
	cmd := &cobra.Command{Use: "voters", Args: noSuchCommand, SuggestionsMinimumDistance: 2}
	groupFlag(cmd, &group)
	asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, _ []string) error {
		voters, answers, err := c.Voters(cmd.Context(), group)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return console.JSON(cmd.OutOrStdout(), voters)
		}
		return ask.PrintVoters(cmd.OutOrStdout(), voters, answers)
	})
	each := func(of func(cluster.NodeID) admin.VotersRequest) func([]string) []admin.VotersRequest {
		return func(args []string) (all []admin.VotersRequest) {
			for _, id := range config.NodeIDs(args) {
				all = append(all, of(id))
			}
			return all
		}
	}
	cmd.AddCommand(
		changingVoters("add NODE...", cobra.MinimumNArgs(1),
			each(func(id cluster.NodeID) admin.VotersRequest { return admin.VotersRequest{Add: id} })),
		changingVoters("remove NODE...", cobra.MinimumNArgs(1),
			each(func(id cluster.NodeID) admin.VotersRequest { return admin.VotersRequest{Remove: id} })),
		changingVoters("replace NODE [BY]", cobra.RangeArgs(1, 2),
			func(args []string) []admin.VotersRequest {
				ids := config.NodeIDs(args)
				return []admin.VotersRequest{{Replace: ids[0], By: ids[len(ids)-1]}}
			}),
	)
	return cmd
}

// changingVoters is a command that changes the voters by some requests, one after the other.
func changingVoters(
	use string, args cobra.PositionalArgs, requests func([]string) []admin.VotersRequest,
) *cobra.Command {
	var dryRun bool
	var timeout time.Duration
	cmd := &cobra.Command{Use: use, Args: args}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be done, or what is wrong")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "longest wait for each voter")
	return asking(cmd, 2, func(cmd *cobra.Command, c *ask.Cluster, args []string) error {
		finishUnread()
		done := admin.VotersChanged{}
		for _, req := range requests(args) {
			req.DryRun = dryRun
			err := changeVoters(cmd.Context(), c, timeout, req, func(step cluster.VoterStep) {
				done.Steps = append(done.Steps, step)
				if !c.JSON {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", step.Group, step.Text)
				}
			})
			if err != nil {
				return err
			}
		}
		switch {
		case c.JSON:
			return console.JSON(cmd.OutOrStdout(), done)
		case dryRun:
			fmt.Fprintln(cmd.OutOrStdout(), "nothing was changed")
		default:
			fmt.Fprintln(cmd.OutOrStdout(), "now change 'voters' in the configuration of every node: "+
				"it is for elections that are opened later")
		}
		return nil
	})
}

func changeVoters(
	ctx context.Context, c *ask.Cluster, timeout time.Duration, req admin.VotersRequest,
	step func(cluster.VoterStep),
) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := c.NearLeader(ctx, cluster.DefaultGroup)
	if err != nil {
		return err
	}
	err = client.ChangeVoters(ctx, req, step)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("not done within %s; it may be done yet, and the command can be repeated: %w",
			timeout, err)
	}
	return err
}
