package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

func pauseCommand() *cobra.Command {
	var c remote.Cluster
	var span time.Duration
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Keep leadership where it is for a while, during maintenance",
		Long: "Keep leadership where it is for a while, in all elections: for work on machines\n" +
			"or on the network. The leader leads on, and is back after a restart or a loss of\n" +
			"the quorum; no other node stands, whatever happens to it. Every node is told,\n" +
			"and remembers it over a restart. 'bmqnode transfer NODE' still works.\n\n" +
			"If a voter could not be told, the exit status is 1, and that one may stand.",
		Example: "  bmqnode pause --for 30m",
		Args:    usageArgs(noArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if span <= 0 || span > 24*time.Hour {
				return config.Usage(fmt.Errorf("--for is %s, but must be positive and at most 24h", span))
			}
			told, err := c.Pause(cmd.Context(), span)
			return printTold(cmd.OutOrStdout(), &c, told, err, paused)
		},
	}
	cmd.Flags().DurationVar(&span, "for", time.Hour, "how long at most, up to 24h")
	reach(cmd, &c, 0)
	return cmd
}

func resumeCommand() *cobra.Command {
	var c remote.Cluster
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "End the pause of elections",
		Long: "End the pause of elections on every node. Without a leader, one is elected\n" +
			"within seconds. If a voter could not be told, the exit status is 1.",
		Args: usageArgs(noArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			told, err := c.Resume(cmd.Context())
			return printTold(cmd.OutOrStdout(), &c, told, err, paused)
		},
	}
	reach(cmd, &c, 0)
	return cmd
}

// paused says whether elections are paused on a node that was told so, or told their end.
func paused(a remote.Answer) string {
	text := "elections go on"
	if until := a.Status.PausedUntil; !until.IsZero() {
		text = "elections are paused until " + until.Format(time.RFC3339)
	}
	return fmt.Sprintf("%s: %s", a.Node, text)
}

func setCommand() *cobra.Command {
	var c remote.Cluster
	var priority int
	var notCandidate bool
	var level string
	cmd := &cobra.Command{
		Use:   "set NODE",
		Short: "Change settings of a node that runs, until it restarts",
		Long: "Change settings of a node that runs, in all its elections. The flags mean what\n" +
			"they mean to 'bmqnode run'. Nothing is written: after a restart the node has\n" +
			"what its file or its flags say.",
		Example: "  bmqnode set n2 --priority 5\n  bmqnode set n2 --not-candidate\n" +
			"  bmqnode set n2 --log-level debug",
		Args: usageArgs(cobra.ExactArgs(1)),
	}
	f := cmd.Flags()
	f.IntVar(&priority, "priority", 0, "ranks nodes that stand at the same moment, higher first")
	f.BoolVar(&notCandidate, "not-candidate", false,
		"vote, but do not stand; a leader hands over (=false: stand again)")
	f.StringVar(&level, "log-level", "", "trace, debug, info, warn or error")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		req := admin.SettingsRequest{LogLevel: level}
		if f.Changed("priority") {
			req.Priority = &priority
		}
		if candidate := !notCandidate; f.Changed("not-candidate") {
			req.Candidate = &candidate
		}
		if req == (admin.SettingsRequest{}) {
			return config.Usage(errors.New("name what is to be set; see 'bmqnode set --help'"))
		}
		told, err := c.Set(cmd.Context(), cluster.NodeID(args[0]), req)
		return printTold(cmd.OutOrStdout(), &c, told, err, func(a remote.Answer) string {
			g := a.Status.Groups[0]
			return fmt.Sprintf("%s has priority %d, is %s and logs at level %s, until it restarts",
				a.Node, g.Priority, standing(g.Candidate), a.Status.LogLevel)
		})
	}
	reach(cmd, &c, 1)
	return cmd
}

func standing(candidate bool) string {
	if candidate {
		return "a candidate"
	}
	return "no candidate"
}
