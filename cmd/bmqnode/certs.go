package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
)

func certsCommand() *cobra.Command {
	var dir, cluster string
	var operators []string
	var valid time.Duration
	var plain bool
	cmd := &cobra.Command{
		Use:  "certs --dir DIR [NODE ...]",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, nodes []string) error {
			switch {
			case dir == "":
				return config.Usage(errors.New("--dir is empty, but must be a directory"))
			case valid <= 0:
				return config.Usage(fmt.Errorf("--valid is %s, but must be positive", valid))
			}
			if plain {
				if err := certs.AcceptPlain(dir); err != nil {
					return err
				}
			}
			made, err := certs.Issue(dir, cluster, append(nodes, certs.Operators(operators)...), valid)
			for _, m := range made {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, valid until %s\n",
					m.Node, m.Dir, m.Until.UTC().Format(time.RFC3339))
			}
			return err
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&dir, "dir", "", "directory of the CA and of all others' directories (required)")
	f.StringVar(&cluster, "cluster", "", "its name (default: the CA's, or "+certs.DefaultCluster+")")
	f.StringSliceVar(&operators, "operator", nil, "names of people or programs that may operate "+
		"nodes with 'bmqnode --tls-dir DIR/operator/NAME'")
	f.DurationVar(&valid, "valid", 365*24*time.Hour, "time after which they end; a CA has ten years")
	f.BoolVar(&plain, "accept-plain", false, "for a cluster that runs without TLS and moves to it: "+
		"let nodes accept those that have none, by a file of that name in their directories")
	return cmd
}
