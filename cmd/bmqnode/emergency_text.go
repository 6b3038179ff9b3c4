package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/recovery"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

// explainEmergency says loudly what is about to happen and what must be true for it.
func explainEmergency(w io.Writer, dir string, e recovery.Emergency, o recovery.Outcome) {
	lost, before, voters := console.List(e.Lost), console.List(o.Before), console.List(o.Voters)
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
	return fmt.Sprintf("Now the same on %s, then start them all.", console.List(others))
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
