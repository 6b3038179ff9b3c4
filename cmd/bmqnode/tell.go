package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/ask"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// telling is asking for commands that tell nodes to do something. It prints a line for each node
// that did it, and returns why others did not.
func telling(
	cmd *cobra.Command, nodes int,
	tell func(context.Context, *ask.Cluster, []string) ([]ask.Answer, error),
	line func(ask.Answer, []string) string,
) *cobra.Command {
	return asking(cmd, nodes, func(cmd *cobra.Command, c *ask.Cluster, args []string) error {
		told, err := tell(cmd.Context(), c, args)
		if c.JSON && len(told) > 0 {
			return errors.Join(err, console.JSON(cmd.OutOrStdout(), told))
		}
		for _, a := range told {
			fmt.Fprintln(cmd.OutOrStdout(), line(a, args))
		}
		return err
	})
}

func pauseCommand() *cobra.Command {
	var span time.Duration
	cmd := &cobra.Command{Use: "pause"}
	cmd.Flags().DurationVar(&span, "for", time.Hour, "how long at most, up to 24h")
	return telling(cmd, 0,
		func(ctx context.Context, c *ask.Cluster, _ []string) ([]ask.Answer, error) {
			if span <= 0 || span > 24*time.Hour {
				return nil, config.Usage(
					fmt.Errorf("--for is %s, but must be positive and at most 24h", span))
			}
			return c.TellAll(ctx, admin.PauseRequest{For: span.String()})
		}, paused)
}

func resumeCommand() *cobra.Command {
	return telling(&cobra.Command{Use: "resume"}, 0,
		func(ctx context.Context, c *ask.Cluster, _ []string) ([]ask.Answer, error) {
			return c.TellAll(ctx, admin.ResumeRequest{})
		}, paused)
}

// paused says whether elections are paused on a node.
func paused(a ask.Answer, _ []string) string {
	text := "elections go on"
	if until := a.Status.PausedUntil; !until.IsZero() {
		text = "elections are paused until " + until.Format(time.RFC3339)
	}
	return fmt.Sprintf("%s: %s", a.Node, text)
}

func setCommand() *cobra.Command {
	var priority int
	var notCandidate bool
	var level string
	cmd := &cobra.Command{Use: "set NODE"}
	f := cmd.Flags()
	f.IntVar(&priority, "priority", 0, "ranks nodes that stand at the same moment, higher first")
	f.BoolVar(&notCandidate, "not-candidate", false,
		"vote, but do not stand; a leader hands over (=false: stand again)")
	f.StringVar(&level, "log-level", "", "trace, debug, info, warn or error")
	return telling(cmd, 1,
		func(ctx context.Context, c *ask.Cluster, args []string) ([]ask.Answer, error) {
			req := admin.SettingsRequest{LogLevel: level}
			if f.Changed("priority") {
				req.Priority = &priority
			}
			if candidate := !notCandidate; f.Changed("not-candidate") {
				req.Candidate = &candidate
			}
			if req == (admin.SettingsRequest{}) {
				return nil, config.Usage(errors.New("name what is to be set; see 'bmqnode set --help'"))
			}
			return c.Set(ctx, cluster.NodeID(args[0]), req)
		}, func(a ask.Answer, _ []string) string {
			g, stands := a.Status.Groups[0], "no candidate"
			if g.Candidate {
				stands = "a candidate"
			}
			return fmt.Sprintf("%s has priority %d, is %s and logs at level %s, until it restarts",
				a.Node, g.Priority, stands, a.Status.LogLevel)
		})
}

func forgetCommand() *cobra.Command {
	var here bool
	var timeout time.Duration
	cmd := &cobra.Command{Use: "forget NODE"}
	cmd.Flags().BoolVar(&here, "here", false, "only at the node that answers at --admin, if the "+
		"others cannot be asked from this machine")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "longest wait for all answers")
	return telling(cmd, 1,
		func(ctx context.Context, c *ask.Cluster, args []string) ([]ask.Answer, error) {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			told, err := c.Forget(ctx, cluster.NodeID(args[0]), here)
			if errors.Is(err, ask.ErrNothingToForget) { // as after a proven death
				fmt.Fprintln(cmd.ErrOrStderr(), err)
				return nil, nil
			}
			return told, err
		}, func(a ask.Answer, args []string) string {
			return fmt.Sprintf("%s takes in the next process that is called %s", a.Node, args[0])
		})
}

func faultCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "fault"}
	add := func(
		nodes int, use, done string,
		do func(context.Context, *ask.Cluster, []cluster.NodeID) ([]ask.Answer, error),
	) {
		cmd.AddCommand(asking(&cobra.Command{Use: use}, nodes, func(
			cmd *cobra.Command, c *ask.Cluster, args []string,
		) error {
			ids := config.NodeIDs(args)
			told, err := do(cmd.Context(), c, ids)
			switch {
			case c.JSON && len(told) > 0:
				err = errors.Join(err, console.JSON(cmd.OutOrStdout(), told))
			case err == nil && !c.JSON:
				names := make([]any, nodes)
				for i, id := range ids {
					names[i] = id
				}
				fmt.Fprintf(cmd.OutOrStdout(), done+"\n", names...)
			}
			return err
		}))
	}
	type ids = []cluster.NodeID
	add(2, "cut NODE NODE", "%s and %s do not hear each other",
		func(ctx context.Context, c *ask.Cluster, n ids) ([]ask.Answer, error) {
			return c.Cut(ctx, n[0], n[1])
		})
	add(1, "isolate NODE", "%s hears nobody and nobody hears it",
		func(ctx context.Context, c *ask.Cluster, n ids) ([]ask.Answer, error) {
			return c.Isolate(ctx, n[0])
		})
	add(0, "heal", "every link is healed",
		func(ctx context.Context, c *ask.Cluster, _ ids) ([]ask.Answer, error) { return c.Heal(ctx) })
	return cmd
}

// leading is the leader of an election, and how to ask it.
type leading struct {
	*admin.Client
	node  cluster.NodeID
	group string
	json  bool
	gone  error // there is no leader: this is the node that knows the newest record
}

// asked is who may be asked in place of the leader.
type asked int

const (
	leaderOnly asked = iota
	follower         // if the leader cannot be asked from here
	anybody          // without a leader, too
)

// tellingLeader is asking for commands that tell the leader of an election something, and wait. It
// prints what tell returns: an object as JSON, such as the status of the node that led, or a
// sentence.
func tellingLeader(
	cmd *cobra.Command, nodes int, who asked, wait string,
	tell func(context.Context, leading, []string) (st any, done string, err error),
) *cobra.Command {
	var timeout time.Duration
	var group string
	cmd.Flags().StringVar(&group, "group", cluster.DefaultGroup, "election whose leader is meant")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "longest wait for "+wait)
	return asking(cmd, nodes, func(cmd *cobra.Command, c *ask.Cluster, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		node, client, gone := c.AtLeader(ctx, group, who != leaderOnly)
		if gone != nil && (who != anybody || client == nil) {
			return gone
		}
		st, done, err := tell(ctx, leading{client, node, group, c.JSON, gone}, args)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return console.JSON(cmd.OutOrStdout(), st)
		}
		_, err = io.WriteString(cmd.OutOrStdout(), done)
		return err
	})
}

func transferCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "transfer [NODE]",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.Flags().Changed("to") {
				return errors.New("say NODE or --to, not both")
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the same as NODE (default: the best follower)")
	return tellingLeader(cmd, 1, leaderOnly, "the new leader", func(
		ctx context.Context, l leading, args []string,
	) (any, string, error) {
		if len(args) > 0 {
			to = args[0]
		}
		began := time.Now()
		st, err := l.Tell(ctx, admin.TransferRequest{To: cluster.NodeID(to), Group: l.group})
		g := admin.GroupIn(st, l.group)
		return st, fmt.Sprintf("%s leads in term %d, handed over by %s in %s\n",
			g.Leader, g.Term, l.node, time.Since(began).Round(time.Millisecond)), err
	})
}

func stepDownCommand() *cobra.Command {
	var rest time.Duration
	cmd := &cobra.Command{Use: "step-down"}
	cmd.Flags().DurationVar(&rest, "for", 30*time.Second,
		"how long it is not to stand again, at most 24h")
	return tellingLeader(cmd, 0, leaderOnly, "its work to stop", func(
		ctx context.Context, l leading, _ []string,
	) (any, string, error) {
		st, err := l.Tell(ctx, admin.StepDownRequest{For: rest.String(), Group: l.group})
		if err != nil || l.json {
			return st, "", err
		}
		next := "no successor yet"
		if g := l.successor(ctx); g.Leader != "" {
			next = fmt.Sprintf("%s leads in term %d", g.Leader, g.Term)
		}
		return st, fmt.Sprintf("%s leads no more; %s\n", l.node, next), nil
	})
}

// successor waits shortly for a new leader, and returns the old one's view of the election. Its
// Leader is "" if there is no new leader yet.
func (l leading) successor(ctx context.Context) cluster.GroupStatus {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	for {
		st, err := l.StatusOf(ctx, cluster.Selection{Group: l.group})
		g := admin.GroupIn(st, l.group)
		if err == nil && g.Leader != "" && g.Leader != l.node {
			return g
		}
		select {
		case <-ctx.Done():
			return cluster.GroupStatus{}
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func rotateGossipKeyCommand() *cobra.Command {
	var dir string
	var plain bool
	cmd := &cobra.Command{Use: "rotate-gossip-key --dir DIR"}
	cmd.Flags().StringVar(&dir, "dir", "", "directory of the CA and of the nodes' directories (required)")
	cmd.Flags().BoolVar(&plain, "plain", false, "stop encrypting gossip instead")
	return asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, _ []string) error {
		finishUnread()
		if dir == "" {
			return config.Usage(errors.New("--dir is empty, but must be that of 'bmqnode certs'"))
		}
		key, again, err := certs.NextGossipKey(dir)
		switch {
		case err != nil:
			return err
		case plain:
			key = certs.GossipKey{}
		case again:
			fmt.Fprintln(cmd.ErrOrStderr(), "this ends the rotation to the last key in", dir+
				"; repeat the command if somebody who has that key was revoked since")
		}
		var all []ask.Answer
		err = c.RotateGossipKey(cmd.Context(), dir, key, func(step certs.GossipStep, a ask.Answer) {
			all = append(all, a)
			switch {
			case c.JSON:
			case a.Error != "":
				fmt.Fprintf(cmd.OutOrStdout(), "%s is skipped: %s\n", a.Node, a.Error)
			default:
				fmt.Fprintln(cmd.OutOrStdout(), a.Node, stepDone(step, plain))
			}
		})
		if c.JSON && len(all) > 0 {
			err = errors.Join(err, console.JSON(cmd.OutOrStdout(), all))
		}
		return err
	})
}

func stepDone(step certs.GossipStep, plain bool) string {
	switch {
	case step == certs.GossipAdd && plain:
		return "accepts gossip without encryption, too"
	case step == certs.GossipAdd:
		return "accepts the new key, too"
	case step == certs.GossipUse && plain:
		return "encrypts nothing"
	case step == certs.GossipUse:
		return "encrypts with it"
	}
	return "accepts nothing else"
}
