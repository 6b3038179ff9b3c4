package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/recovery"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// explainEmergency says loudly what is about to happen and what must be true for it.
func explainEmergency(w io.Writer, dir string, e recovery.Emergency, o recovery.Outcome) {
	fmt.Fprintf(w, "%s for node %s of cluster %s, data directory %s\n\n", console.Alert("EMERGENCY"), o.Node, o.Cluster, dir)
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(tw, "  lost for good\t%s\n", join(e.Lost))
	fmt.Fprintf(tw, "  can vote until now\t%s\t%d needed to elect\n", join(o.Before), elector.Majority(len(o.Before)))
	fmt.Fprintf(tw, "  can vote from now on\t%s\t%d needed to elect\n", join(o.Voters), o.Quorum)
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
`, join(e.Lost), join(o.Voters))
}

// nextStep is what to do after the record was written.
func nextStep(e recovery.Emergency, o recovery.Outcome) string {
	if e.Retire {
		return fmt.Sprintf("This directory is retired: node %s does not start on it any more.", o.Node)
	}
	others := slices.DeleteFunc(slices.Clone(o.Voters), func(id cluster.NodeID) bool { return id == o.Node })
	if len(others) == 0 {
		return fmt.Sprintf("Start node %s: it will lead alone.", o.Node)
	}
	return fmt.Sprintf("Now the same on %s, then start them all.", join(others))
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
		fmt.Fprintln(w, recordOf(e))
		for _, r := range e.Readmitted {
			fmt.Fprintf(w, "  %s readmitted at %s\n", r.Node, r.Time.Format(time.RFC3339))
		}
	}
	return nil
}

// recordOf is one emergency in a line.
func recordOf(e cluster.EmergencyStatus) string {
	text := fmt.Sprintf("%s of the voters %s declared lost at %s", join(e.Lost), join(e.Voters), e.Time.Format(time.RFC3339))
	if e.Reason != "" {
		text += fmt.Sprintf(" (%s)", e.Reason)
	}
	switch gone := e.Missing(); {
	case len(gone) == 0:
		return text + "; all readmitted"
	case len(gone) < len(e.Lost):
		return text + "; still missing: " + join(gone)
	}
	return text
}

// emergencyRemarks says of each emergency on record which nodes know of it. It was
// declared on each of them in turn, so the times differ.
func emergencyRemarks(answers []answerOf) (lines []string) {
	var keys []string
	text, knowing := map[string]string{}, map[string][]cluster.NodeID{}
	for _, a := range answers {
		if a.Status == nil {
			continue
		}
		for _, e := range a.Status.Emergencies {
			key := fmt.Sprint(e.Voters, e.Lost, e.Missing(), e.Reason)
			if text[key] == "" {
				keys, text[key] = append(keys, key), emergencyMark(e)+" "+recordOf(e)
			}
			knowing[key] = append(knowing[key], a.Node)
		}
	}
	for _, key := range keys {
		lines = append(lines, text[key]+"; on record on "+join(knowing[key]))
	}
	return lines
}

// emergencyMark is loud for as long as voters are missing.
func emergencyMark(e cluster.EmergencyStatus) string {
	if len(e.Missing()) > 0 {
		return console.Alert("EMERGENCY:")
	}
	return "past emergency:"
}

func join(ids []cluster.NodeID) string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = string(id)
	}
	return strings.Join(all, ", ")
}
