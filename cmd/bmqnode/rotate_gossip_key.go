package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

func rotateGossipKeyCommand() *cobra.Command {
	var c remote.Cluster
	var dir string
	var plain bool
	cmd := &cobra.Command{
		Use:   "rotate-gossip-key --dir DIR",
		Short: "Give all nodes a new key of gossip while they run",
		Long: "Give all nodes a new key of gossip while they run, without a gap: all add it,\n" +
			"then all use it, then all remove the others. Gossip that is not encrypted yet is\n" +
			"so then. Each node writes its key into gossip.key in its --tls-dir, and this\n" +
			"command does so in DIR, that of 'bmqnode certs'. If a node cannot be told, it\n" +
			"stops before the next step; nothing is lost then, and it can be repeated.\n\n" +
			"Without TLS the key goes only over loopback, to the addresses in --admin.",
		Example: "  bmqnode rotate-gossip-key --dir pki --admin n1:7402 \\\n" +
			"    --tls-dir pki/operator/alice",
		Args: usageArgs(noArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			done := stepsDone(plain)
			var all []remote.Answer
			err = c.RotateGossipKey(cmd.Context(), dir, key, func(step certs.GossipStep, a remote.Answer) {
				all = append(all, a)
				switch {
				case c.JSON:
				case a.Error != "":
					fmt.Fprintf(cmd.OutOrStdout(), "%s is skipped: %s\n", a.Node, a.Error)
				default:
					fmt.Fprintln(cmd.OutOrStdout(), a.Node, done[step])
				}
			})
			if c.JSON && len(all) > 0 {
				err = errors.Join(err, console.JSON(cmd.OutOrStdout(), all))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory of the CA and of the nodes' directories (required)")
	cmd.Flags().BoolVar(&plain, "plain", false, "stop encrypting gossip instead")
	reach(cmd, &c, 0)
	return cmd
}

// stepsDone says what a node does after each step of a rotation.
func stepsDone(plain bool) map[certs.GossipStep]string {
	done := map[certs.GossipStep]string{
		certs.GossipAdd: "accepts the new key, too", certs.GossipUse: "encrypts with it",
		certs.GossipRemove: "accepts nothing else",
	}
	if plain {
		done[certs.GossipAdd], done[certs.GossipUse] = "accepts gossip without encryption, too",
			"encrypts nothing"
	}
	return done
}
