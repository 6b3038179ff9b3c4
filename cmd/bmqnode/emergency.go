package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/recovery"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/printable"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/exec"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

// emergencyOptions are the flags of `emergency`.
type emergencyOptions struct {
	file, dir, node, cluster string
	voters, lost             []string
	reason, confirm, readmit string
	retire, show             bool
}

func emergencyCommand() *cobra.Command {
	var o emergencyOptions
	cmd := &cobra.Command{
		Use:   "emergency",
		Short: "Give up voters that are lost for good: the others can elect",
		Long: "Give up voters that are lost for good, so that the others can elect a leader\n" +
			"although they are no quorum. Run it on every voter that is left, while its node\n" +
			"is stopped. Without --confirm it says what would happen, and changes nothing.",
		Example: "  bmqnode emergency --data-dir /var/lib/bmqnode --voters a,b,c,d,e --lost c,d,e\n" +
			"  bmqnode emergency --config /etc/bmqnode.yaml --lost c,d,e --confirm bees \\\n" +
			"    --reason 'fire'\n" +
			"  bmqnode emergency --config /etc/bmqnode.yaml --show\n" +
			"  bmqnode emergency --config /etc/bmqnode.yaml --readmit c --confirm bees",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.resolve(); err != nil {
				return config.Usage(err)
			}
			switch out := cmd.OutOrStdout(); {
			case o.show:
				return showEmergencies(out, o.dir)
			case o.readmit != "":
				return o.readmitOne(out)
			default:
				return o.declare(out)
			}
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.file, "config", "", "YAML file of the node's options, in place of the next three")
	f.StringVar(&o.dir, "data-dir", "", "directory of the durable state of the stopped node")
	f.StringSliceVar(&o.voters, "voters", nil, "the voters as they are configured")
	f.StringVar(&o.node, "node", "", "name of the node; refuses the directory of another one")
	f.StringSliceVar(&o.lost, "lost", nil, "the voters that will never come back")
	f.StringVar(&o.reason, "reason", "", "kept on record")
	f.StringVar(&o.confirm, "confirm", "", "name of the cluster: yes, do it")
	f.BoolVar(&o.retire, "retire", false,
		"the directory is that of a lost voter: let it never start again")
	f.StringVar(&o.readmit, "readmit", "",
		"a lost voter that was replaced and is to vote again; one at a time")
	f.BoolVar(&o.show, "show", false, "show what is on record")
	return cmd
}

// resolve takes from the file what the flags leave open, and names what is missing.
func (o *emergencyOptions) resolve() error {
	if o.file != "" {
		var node exec.Options // a file for 'exec' or for 'run'
		flags := pflag.NewFlagSet("file", pflag.ContinueOnError)
		node.Register(flags)
		flags.StringSlice("groups", nil, "")
		if err := config.ApplyFile(o.file, flags); err != nil {
			return err
		}
		o.dir, o.node = cmp.Or(o.dir, node.Cluster.DataDir), cmp.Or(o.node, node.Node)
		if len(o.voters) == 0 {
			o.voters = node.Voters
		}
		o.cluster = node.Cluster.Cluster
	}
	asked := 0
	for _, is := range []bool{len(o.lost) > 0, o.readmit != "", o.show} {
		if is {
			asked++
		}
	}
	var errs []error
	if asked != 1 {
		errs = append(errs, errors.New("say one of --lost, --readmit and --show"))
	}
	if o.dir == "" {
		errs = append(errs, errors.New(
			"--data-dir is empty, but must be the directory of the node's durable state"))
	}
	if len(o.lost) > 0 && len(o.voters) == 0 {
		errs = append(errs, errors.New(
			"--voters is empty, but must be the voters as they are configured"))
	}
	return errors.Join(errs...)
}

// declare says what the emergency means, and records it if it is confirmed.
func (o *emergencyOptions) declare(w io.Writer) error {
	e := recovery.Emergency{
		Cluster: o.confirm, Node: cluster.NodeID(o.node), Voters: config.NodeIDs(o.voters),
		Lost: config.NodeIDs(o.lost), Reason: o.reason, Retire: o.retire,
	}
	outcome, err := recovery.CheckLost(o.dir, e)
	if err != nil {
		return err
	}
	if o.cluster != "" && o.cluster != outcome.Cluster {
		return fmt.Errorf("data directory %s belongs to cluster %q, %s is for cluster %q",
			o.dir, outcome.Cluster, o.file, o.cluster)
	}
	explainEmergency(w, o.dir, e, outcome)
	switch o.confirm {
	case outcome.Cluster:
	case "":
		return config.Usage(fmt.Errorf("nothing was changed; if all of this is so, "+
			"add --confirm %s", outcome.Cluster))
	default:
		return config.Usage(fmt.Errorf("nothing was changed: --confirm is %q, but must be %q, "+
			"the name of the cluster", o.confirm, outcome.Cluster))
	}
	if err := recovery.DeclareLost(o.dir, e); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s on record since %s. %s\n", printable.List(e.Lost),
		time.Now().UTC().Format(time.RFC3339), nextStep(e, outcome))
	return nil
}

func (o *emergencyOptions) readmitOne(w io.Writer) error {
	if o.confirm == "" {
		return config.Usage(errors.New(
			"nothing was changed; add --confirm with the name of the cluster"))
	}
	if err := recovery.Readmit(o.dir, o.confirm, cluster.NodeID(o.readmit)); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s may vote again, as node %s sees it from its next start on.\n"+
		"Do the same on every voter that is left, start them, and only then start %s, "+
		"on an empty data directory.\n",
		o.readmit, cmp.Or(o.node, "in "+o.dir), o.readmit)
	return nil
}

// explainEmergency says loudly what is about to happen and what must be true for it.
func explainEmergency(w io.Writer, dir string, e recovery.Emergency, o recovery.Outcome) {
	lost, before, voters := printable.List(e.Lost), printable.List(o.Before), printable.List(o.Voters)
	fmt.Fprintf(w, "%s for node %s of cluster %s, data directory %s\n\n",
		console.Alert("EMERGENCY"), o.Node, o.Cluster, dir)
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(tw, "  lost for good\t%s\n", lost)
	fmt.Fprintf(tw, "  can vote until now\t%s\t%d needed to elect\n",
		before, elector.Majority(len(o.Before)))
	fmt.Fprintf(tw, "  can vote from now on\t%s\t%d needed to elect\n", voters, o.Quorum)
	tw.Flush()
	fmt.Fprintf(w, `
This gives up what keeps two leaders apart. Be sure that it is true:
  - %[1]s will never run again on their data directories: machines off, disks
    wiped or out. If they run, unseen by %[2]s, there can be TWO LEADERS.
    (A directory that turns up: mark it with --retire.)
  - The same is declared, with the same names, on every voter that is left: %[2]s.
  - Nobody has declared %[2]s lost on the other side of a partition.
It stays on record: in the status, the metrics and the log of every start. Fencing
tokens from now on are above all that %[1]s can have used.
`, lost, voters)
}

// nextStep is what to do after the record was written.
func nextStep(e recovery.Emergency, o recovery.Outcome) string {
	if e.Retire {
		return fmt.Sprintf("This directory is retired: node %s does not start on it any more.", o.Node)
	}
	isThis := func(id cluster.NodeID) bool { return id == o.Node }
	others := slices.DeleteFunc(slices.Clone(o.Voters), isThis)
	if len(others) == 0 {
		return fmt.Sprintf("Start node %s: it will lead alone.", o.Node)
	}
	return fmt.Sprintf("Now the same on %s, then start them all.", printable.List(others))
}

// showEmergencies prints what is on record in a data directory.
func showEmergencies(w io.Writer, dir string) error {
	all, err := recovery.Emergencies(dir)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintf(w, "no emergency on record in %s\n", dir)
	}
	for _, e := range all {
		fmt.Fprintln(w, remote.EmergencyText(e))
		for _, r := range e.Readmitted {
			fmt.Fprintf(w, "  %s readmitted at %s\n", r.Node, r.Time.Format(time.RFC3339))
		}
	}
	return nil
}
