package remote

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fatih/color"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/doctor"
)

// OfGroup leaves in each status one election alone, and no status where there is none of
// that name; "" leaves all.
func OfGroup(answers []Answer, group string) ([]Answer, error) {
	if group == "" {
		return answers, nil
	}
	found := false
	for i, a := range answers {
		if a.Status == nil {
			continue
		}
		g := admin.GroupIn(*a.Status, group)
		if g.Group == "" {
			answers[i].Status = nil
			answers[i].Error = fmt.Sprintf("it takes part in no election %q", group)
			continue
		}
		found = true
		st := *a.Status
		st.Groups = []cluster.GroupStatus{g}
		answers[i].Status = &st
	}
	if !found {
		return nil, config.Usage(fmt.Errorf("no node that answers takes part in an election %q",
			group))
	}
	return answers, nil
}

// PrintStatus writes a table, a line per node, and below it what needs words.
func PrintStatus(w io.Writer, answers []Answer) error {
	var table bytes.Buffer
	tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NODE\tROLE\tLEADER\tTERM\tLSN\tLEASE\tLINKS")
	for _, a := range answers {
		if a.Status == nil {
			fmt.Fprintf(tw, "%s\t-\t\t\t\t\t\n", a.Node)
			continue
		}
		g := a.Status.Groups[0]
		role, lease := g.Role, "-"
		if !slices.Contains(g.Voters, a.Node) {
			role += " (observer)"
		}
		if g.LeaseLeft > 0 {
			lease = g.LeaseLeft.Duration().Round(time.Millisecond).String()
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", a.Node, role,
			cmp.Or(string(g.Leader), "-"), g.Term, g.LSN, lease, links(a.Status.Members))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	lines := strings.Split(table.String(), "\n")
	fmt.Fprintln(w, color.New(color.Bold).Sprint(lines[0]))
	var remarks doctor.Remarks
	for i, a := range answers {
		tint := fmt.Sprint
		remark := a.Error
		if a.Status != nil {
			remark = a.Status.Failure
		}
		switch {
		case remark != "" || a.Status == nil:
			tint = color.New(color.FgRed).Sprint
		case a.Status.Groups[0].Leader == "":
			tint, remark = color.New(color.FgRed).Sprint, a.Status.Groups[0].Explanation
		case a.Status.Groups[0].Leading:
			tint = color.New(color.FgGreen).Sprint
		}
		fmt.Fprintln(w, tint(lines[i+1]))
		if remark != "" {
			remarks.Add(a.Node, remark)
		}
	}
	remarks.Each(func(nodes, text string) { fmt.Fprintf(w, "%s: %s\n", nodes, text) })
	statuses := statusesOf(answers)
	if text, _ := doctor.Pauses(statuses); text != "" {
		fmt.Fprintln(w, text)
	}
	for _, line := range slices.Concat(
		settings(statuses), stalls(statuses), detectors(statuses), qualities(statuses), faults(statuses),
		emergencies(statuses), certificates(statuses), unencrypted(statuses),
		causes(statuses),
	) {
		fmt.Fprintln(w, line)
	}
	return nil
}

// links says in a few columns how many members are connected, at what round-trip times,
// and which voters are not. --json has each link by itself.
func links(members []cluster.MemberStatus) string {
	var up []time.Duration
	var down []string
	for _, m := range members {
		switch {
		case m.Link == linkUp:
			up = append(up, m.RTT.Duration())
		case m.Voter:
			down = append(down, fmt.Sprintf("%s %s", m.Node, m.Link))
		}
	}
	text := "none"
	if len(up) > 0 {
		from, to := milliseconds(slices.Min(up)), milliseconds(slices.Max(up))
		if from != to {
			from += "-" + to
		}
		text = fmt.Sprintf("%d up, %s ms", len(up), from)
	}
	if len(down) > 0 {
		text += "; " + strings.Join(down, ", ")
	}
	return text
}

func milliseconds(d time.Duration) string {
	if d >= 10*time.Millisecond {
		return fmt.Sprint(d.Milliseconds())
	}
	return fmt.Sprintf("%.2g", float64(d)/float64(time.Millisecond))
}

// statusesOf are those of the nodes that answered.
func statusesOf(answers []Answer) (all []*cluster.Status) {
	for _, a := range answers {
		if a.Status != nil {
			all = append(all, a.Status)
		}
	}
	return all
}

// faults are the failures that were made on purpose, a line for each node.
func faults(statuses []*cluster.Status) (lines []string) {
	for _, st := range statuses {
		if st.Faults != "" {
			lines = append(lines, fmt.Sprintf("%s: cut on purpose: %s", st.Node, st.Faults))
		}
	}
	return lines
}

// settings are how voters rank and whether they stand, where that is not the usual or was set at
// run time.
func settings(statuses []*cluster.Status) (lines []string) {
	for _, st := range statuses {
		g, parts := st.Groups[0], []string(nil)
		tell := func(name, text string, unusual bool) {
			if slices.Contains(g.SetNow, name) {
				parts = append(parts, text+" (set at run time)")
			} else if unusual {
				parts = append(parts, text)
			}
		}
		tell("priority", fmt.Sprintf("priority %d", g.Priority), g.Priority != 0)
		stands := "a candidate"
		if !g.Candidate {
			stands = "no candidate"
		}
		tell("candidate", stands, !g.Candidate && slices.Contains(g.Voters, st.Node))
		if len(parts) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s", st.Node, strings.Join(parts, ", ")))
		}
	}
	return lines
}

// stalls names the nodes whose processes were held up.
func stalls(statuses []*cluster.Status) (lines []string) {
	for _, st := range statuses {
		if st.Stalls > 0 {
			lines = append(lines, fmt.Sprintf("%s: its process was held up %s in %s", st.Node,
				console.Count(int(st.Stalls), "time"), st.Uptime.Duration().Round(time.Second)))
		}
	}
	return lines
}

// detectors say by what nodes find out that the leader is silent.
func detectors(statuses []*cluster.Status) (lines []string) {
	var remarks doctor.Remarks
	for _, st := range statuses {
		if by := st.Groups[0].Detector; by != "" {
			remarks.Add(st.Node, "detector: "+by)
		}
	}
	remarks.Each(func(nodes, text string) { lines = append(lines, nodes+": "+text) })
	return lines
}

// qualities tell what becomes of the quality of service that is asked: a line for what that is,
// and one for each node.
func qualities(statuses []*cluster.Status) (lines []string) {
	for _, st := range statuses {
		g := st.Groups[0]
		q := g.QoS
		if q == nil {
			continue
		}
		if len(lines) == 0 {
			lines = append(lines, fmt.Sprintf("qos: %s", q.Asked))
		}
		short := func(s cluster.Seconds) string { return milliseconds(s.Duration()) + " ms" }
		switch {
		case g.Leading:
			lines = append(lines, fmt.Sprintf("%s: leads, with a heartbeat every %s (%s needed)", st.Node,
				short(q.Period), short(q.Wanted)))
		case q.Detect > 0:
			promise := console.Alert("not met:") + " " + strings.TrimPrefix(q.Unmet, "qos: ")
			if q.Met {
				promise = fmt.Sprintf("met: a mistake every %s, accuracy %.9g", span(q.Mistakes.Duration()),
					q.Accuracy)
			}
			lines = append(lines, fmt.Sprintf("%s: link from %s: loss %.2g %%, delay %s, deviation %s; "+
				"heartbeats every %s (%s needed); crash detected within %s; %s",
				st.Node, g.Leader, 100*q.Loss, short(q.Delay), short(q.Deviation), short(q.Period),
				short(q.Wanted), short(q.Detect), promise))
		}
	}
	return lines
}

// span writes a time of any length in its greatest unit.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 365*day:
		return fmt.Sprintf("%.3g years", float64(d)/float64(365*day))
	case d >= day:
		return fmt.Sprintf("%.3g days", float64(d)/float64(day))
	}
	return d.Round(time.Second).String()
}

// certificates tells the certificate that ends first, if there are any.
func certificates(statuses []*cluster.Status) []string {
	var first *cluster.Status
	for _, st := range statuses {
		if !st.CertificateEnd.IsZero() &&
			(first == nil || st.CertificateEnd.Before(first.CertificateEnd)) {
			first = st
		}
	}
	if first == nil {
		return nil
	}
	return []string{fmt.Sprintf("TLS: the certificate that ends first is that of %s, at %s",
		first.Node, first.CertificateEnd.UTC().Format(time.RFC3339))}
}

// unencrypted tells what is not encrypted, or need not be, in a cluster with TLS: what is left
// to be done to move to it.
func unencrypted(statuses []*cluster.Status) (lines []string) {
	var plain, gossip, links []string
	for _, st := range statuses {
		if st.CertificateEnd.IsZero() {
			continue
		}
		if st.AcceptsPlain {
			plain = append(plain, string(st.Node))
		}
		if st.GossipEncryption != "required" && st.GossipEncryption != "" {
			gossip = append(gossip, fmt.Sprintf("%s (%s)", st.Node, st.GossipEncryption))
		}
		for _, m := range st.Members {
			if m.Link == linkUp && !m.LinkTLS {
				links = append(links, fmt.Sprintf("%s-%s", st.Node, m.Node))
			}
		}
	}
	tell := func(text string, what []string) {
		if len(what) > 0 {
			lines = append(lines, text+strings.Join(what, ", "))
		}
	}
	tell("TLS: members without it are accepted by ", plain)
	tell("TLS: links without it: ", links)
	tell("gossip: encryption is not required by ", gossip)
	return lines
}

// causes are what nodes find wrong, a line for each cause, and how to fix it.
func causes(statuses []*cluster.Status) (lines []string) {
	for _, c := range doctor.Causes(statuses) {
		lines = append(lines, fmt.Sprintf("%s (%s): %s; %s", c.Kind, c.Where, c.Detail, c.Advice))
	}
	return lines
}

// emergencies says of each emergency on record which nodes know of it. It was declared on
// each of them in turn, so the times differ.
func emergencies(statuses []*cluster.Status) (lines []string) {
	var keys []string
	text, knowing := map[string]string{}, map[string][]cluster.NodeID{}
	for _, st := range statuses {
		for _, e := range st.Emergencies {
			key := fmt.Sprint(e.Voters, e.Lost, e.Missing(), e.Reason)
			if text[key] == "" {
				mark := "past emergency:"
				if len(e.Missing()) > 0 {
					mark = console.Alert("EMERGENCY:")
				}
				keys, text[key] = append(keys, key), mark+" "+EmergencyText(e)
			}
			knowing[key] = append(knowing[key], st.Node)
		}
	}
	for _, key := range keys {
		lines = append(lines, text[key]+"; on record on "+words.List(knowing[key]))
	}
	return lines
}

// EmergencyText is one emergency in a line.
func EmergencyText(e cluster.EmergencyStatus) string {
	text := fmt.Sprintf("%s of the voters %s declared lost at %s",
		words.List(e.Lost), words.List(e.Voters), e.Time.Format(time.RFC3339))
	if e.Reason != "" {
		text += fmt.Sprintf(" (%s)", e.Reason)
	}
	switch missing := e.Missing(); {
	case len(missing) == 0:
		return text + "; all readmitted"
	case len(missing) < len(e.Lost):
		return text + "; still missing: " + words.List(missing)
	}
	return text
}
