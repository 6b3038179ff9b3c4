// Package emergency is the command of that name. It explains what giving voters up means, records
// it in the data directory of a stopped node if the user confirms it, and shows what is on record.
package emergency

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/recovery"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/daemon/ask"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/exec"
)

// Options say which emergency is meant. Register fills them in, as the flags are parsed.
type Options struct {
	file, dir, node          string
	voters, lost             []string
	reason, confirm, readmit string
	retire, show             bool

	cluster string // its name in file
}

// Register adds the flags.
func (o *Options) Register(f *pflag.FlagSet) {
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
}

// Run does what is asked, and writes to w what it did or would do. If the error is a
// config.UsageError, nothing was changed.
func (o *Options) Run(w io.Writer) error {
	if err := o.resolve(); err != nil {
		return err
	}
	switch {
	case o.show:
		return show(w, o.dir)
	case o.readmit != "":
		return o.takeBack(w)
	}
	return o.declare(w)
}

// resolve takes from the file what the flags leave open, and names what is missing.
func (o *Options) resolve() error {
	if o.file != "" {
		var node exec.Options // the file may be for 'exec' or for 'run'
		flags := pflag.NewFlagSet("file", pflag.ContinueOnError)
		node.Register(flags)
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
	var wrong config.Mistakes
	wrong.Want(asked == 1, "say one of --lost, --readmit and --show")
	wrong.Want(o.dir != "",
		"--data-dir is empty, but must be the directory of the node's durable state")
	wrong.Want(len(o.lost) == 0 || len(o.voters) > 0,
		"--voters is empty, but must be the voters as they are configured")
	return wrong.Err()
}

// declare explains the emergency, and records it if the user confirms it.
func (o *Options) declare(w io.Writer) error {
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
	explain(w, o.dir, e, outcome)
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
	fmt.Fprintf(w, "\n%s on record since %s. %s\n", words.List(e.Lost),
		time.Now().UTC().Format(time.RFC3339), nextStep(e, outcome))
	return nil
}

func (o *Options) takeBack(w io.Writer) error {
	if o.confirm == "" {
		return config.Usage(errors.New(
			"nothing was changed; add --confirm with the name of the cluster"))
	}
	if err := recovery.Readmit(o.dir, o.confirm, cluster.NodeID(o.readmit)); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s may vote again, as node %s sees it from its next start on.\n"+
		"Do the same on every voter that is left, start them, and only then start %s, "+
		"on an empty data directory.\n"+
		"Elections with a record count it after 'bmqnode voters add %s'.\n",
		o.readmit, cmp.Or(o.node, "in "+o.dir), o.readmit, o.readmit)
	return nil
}

// explain says what is about to happen, and what must be true for it.
func explain(w io.Writer, dir string, e recovery.Emergency, o recovery.Outcome) {
	lost, before, voters := words.List(e.Lost), words.List(o.Before), words.List(o.Voters)
	table := console.Columns([]string{
		"  lost for good \t" + lost,
		fmt.Sprintf("  can vote until now \t%s \t%d needed to elect", before,
			elector.Majority(len(o.Before))),
		fmt.Sprintf("  can vote from now on \t%s \t%d needed to elect", voters, o.Quorum),
	})
	if len(o.Records) > 0 {
		table = append(table, "  records here          "+strings.Join(o.Records, ", "))
	}
	fmt.Fprintf(w, "%s for node %s of cluster %s, data directory %s\n\n%s\n",
		console.Alert("EMERGENCY"), o.Node, o.Cluster, dir, strings.Join(table, "\n"))
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
	if len(o.Records) > 0 {
		fmt.Fprintf(w, "Of each record the newest that %s have goes on. A newer one that was committed is LOST.\n",
			voters)
	}
}

func nextStep(e recovery.Emergency, o recovery.Outcome) string {
	if e.Retire {
		return fmt.Sprintf("This directory is retired: node %s does not start on it any more.", o.Node)
	}
	isThis := func(id cluster.NodeID) bool { return id == o.Node }
	others := slices.DeleteFunc(slices.Clone(o.Voters), isThis)
	if len(others) == 0 {
		return fmt.Sprintf("Start node %s: it will lead alone.", o.Node)
	}
	return fmt.Sprintf("Now the same on %s, then start them all.", words.List(others))
}

func show(w io.Writer, dir string) error {
	all, err := recovery.Emergencies(dir)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintf(w, "no emergency on record in %s\n", dir)
	}
	for _, e := range all {
		fmt.Fprintln(w, ask.EmergencyText(e))
		for _, r := range e.Readmitted {
			fmt.Fprintf(w, "  %s readmitted at %s\n", r.Node, r.Time.Format(time.RFC3339))
		}
	}
	return nil
}
