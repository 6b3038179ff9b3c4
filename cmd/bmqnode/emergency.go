package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/recovery"
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
		Short: "Give up voters that are lost for good, so that the others can elect",
		Long: "Give up voters that are lost for good, so that the others can elect a leader although\n" +
			"they are no quorum. To be run on every voter that is left, while its node is stopped.\n" +
			"Without --confirm it says what would happen, and changes nothing.",
		Example: "  bmqnode emergency --data-dir /var/lib/bmqnode --voters a,b,c,d,e --lost c,d,e\n" +
			"  bmqnode emergency --config /etc/bmqnode.yaml --lost c,d,e --confirm bees --reason 'fire'\n" +
			"  bmqnode emergency --config /etc/bmqnode.yaml --show\n" +
			"  bmqnode emergency --config /etc/bmqnode.yaml --readmit c --confirm bees",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *emergencyOptions) register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&o.file, "config", "", "YAML file of the node's options, in place of the next three")
	f.StringVar(&o.dir, "data-dir", "", "directory of the durable state of the stopped node")
	f.StringSliceVar(&o.voters, "voters", nil, "the voters as they are configured")
	f.StringVar(&o.node, "node", "", "name of the node; refuses the directory of another one")
	f.StringSliceVar(&o.lost, "lost", nil, "those of the voters that will never come back")
	f.StringVar(&o.reason, "reason", "", "kept on record")
	f.StringVar(&o.confirm, "confirm", "", "name of the cluster: yes, do it")
	f.BoolVar(&o.retire, "retire", false, "the directory is that of a lost voter: let it never start again")
	f.StringVar(&o.readmit, "readmit", "", "a lost voter that was replaced and is to vote again; one at a time")
	f.BoolVar(&o.show, "show", false, "show what is on record")
}

func (o *emergencyOptions) run(cmd *cobra.Command) error {
	if err := o.resolve(); err != nil {
		return usageError{err}
	}
	switch out := cmd.OutOrStdout(); {
	case o.show:
		return showEmergencies(out, o.dir)
	case o.readmit != "":
		return o.readmitOne(out)
	default:
		return o.declare(out)
	}
}

// resolve takes from the file what the flags leave open, and names what lacks.
func (o *emergencyOptions) resolve() error {
	if err := o.readFile(); err != nil {
		return err
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
		errs = append(errs, errors.New("--data-dir is empty, but must be the directory of the node's durable state"))
	}
	if len(o.lost) > 0 && len(o.voters) == 0 {
		errs = append(errs, errors.New("--voters is empty, but must be the voters as they are configured"))
	}
	return errors.Join(errs...)
}

// readFile reads the configuration that `run` starts the node with.
func (o *emergencyOptions) readFile() error {
	if o.file == "" {
		return nil
	}
	var node options
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	node.register(flags)
	if err := applyFile(o.file, flags); err != nil {
		return err
	}
	o.dir, o.node = cmp.Or(o.dir, node.config.DataDir), cmp.Or(o.node, node.node)
	if len(o.voters) == 0 {
		o.voters = node.voters
	}
	o.cluster = node.config.Cluster
	return nil
}

func (o *emergencyOptions) emergency() recovery.Emergency {
	return recovery.Emergency{
		Cluster: o.confirm, Node: cluster.NodeID(o.node), Voters: nodeIDs(o.voters), Lost: nodeIDs(o.lost),
		Reason: o.reason, Retire: o.retire,
	}
}

func nodeIDs(names []string) (ids []cluster.NodeID) {
	for _, name := range names {
		ids = append(ids, cluster.NodeID(name))
	}
	return ids
}

// declare says what the emergency means, and if it is confirmed records it.
func (o *emergencyOptions) declare(w io.Writer) error {
	e := o.emergency()
	outcome, err := recovery.CheckLost(o.dir, e)
	if err != nil {
		return err
	}
	if o.cluster != "" && o.cluster != outcome.Cluster {
		return fmt.Errorf("data directory %s belongs to cluster %q, %s is for cluster %q", o.dir, outcome.Cluster, o.file, o.cluster)
	}
	explainEmergency(w, o.dir, e, outcome)
	if err := o.confirmed(outcome.Cluster); err != nil {
		return err
	}
	if err := recovery.DeclareLost(o.dir, e); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s on record since %s. %s\n", join(e.Lost), time.Now().UTC().Format(time.RFC3339), nextStep(e, outcome))
	return nil
}

// confirmed is the last question before something is changed.
func (o *emergencyOptions) confirmed(name string) error {
	switch o.confirm {
	case name:
		return nil
	case "":
		return usageError{fmt.Errorf("nothing was changed; if all of this is so, add --confirm %s", name)}
	}
	return usageError{fmt.Errorf("nothing was changed: --confirm is %q, but must be %q, the name of the cluster", o.confirm, name)}
}

func (o *emergencyOptions) readmitOne(w io.Writer) error {
	if o.confirm == "" {
		return usageError{errors.New("nothing was changed; add --confirm with the name of the cluster")}
	}
	if err := recovery.Readmit(o.dir, o.confirm, cluster.NodeID(o.readmit)); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s may vote again, as node %s sees it from its next start on.\n"+
		"Do the same on every voter that is left, start them, and only then start %s, on an empty data directory.\n",
		o.readmit, cmp.Or(o.node, "in "+o.dir), o.readmit)
	return nil
}
