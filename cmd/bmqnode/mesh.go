package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/shell"
	"github.com/bmqelect/bmqelect/scouting"
)

func meshCommand() *cobra.Command {
	c := shell.Config{Command: ownCommand}
	cmd := &cobra.Command{
		Use: "mesh",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.Check(); err != nil {
				return err
			}
			c.In, c.Out = cmd.InOrStdin(), cmd.OutOrStdout()
			return shell.Run(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&c.Nodes, "nodes", 5,
		fmt.Sprintf("number of nodes, 1 to %d; they are named n1, n2, ...", scouting.MaxVoters))
	f.StringVar(&c.Dir, "dir", "", "directory for configurations, state and logs, kept "+
		"(default: a temporary one, removed)")
	f.IntVar(&c.BasePort, "base-port", 7400,
		"first of three ports per node; the next free ones are taken if these are not")
	f.StringVar(&c.Profile, "profile", "article",
		"set of timers: "+strings.Join(elector.ProfileNames(), ", "))
	f.BoolVar(&c.NoScouting, "unsafe-no-scouting", false,
		"the algorithm before its scouting extension, to see what goes wrong")
	return cmd
}

// ownCommand runs a command of this program, and returns what it prints.
func ownCommand(ctx context.Context, args ...string) (output string, err error) {
	cmd := root()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(ctx)
	return out.String(), err
}
