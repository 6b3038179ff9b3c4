package ask

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// Status returns the answers of all nodes, sorted by name, with the elections that are selected.
// With a group, each status has that election alone, and a node that takes no part in it has no
// status.
func (c *Cluster) Status(ctx context.Context, sel cluster.Selection) ([]Answer, error) {
	c.selection = sel
	answers, err := c.All(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(answers, byName)
	return ofGroup(answers, sel.Group)
}

func ofGroup(answers []Answer, group string) ([]Answer, error) {
	if group == "" {
		return answers, nil
	}
	found := false
	for i, a := range answers {
		if a.silent() {
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
	rows := []string{"NODE\tROLE\tLEADER\tTERM\tLSN\tLEASE\tLINKS"}
	tints := []*color.Color{color.New(color.Bold)}
	var why remarks
	for _, a := range answers {
		tint, remark, row := color.New(), a.Error, string(a.Node)+"\t-\t\t\t\t\t"
		if a.answered() {
			row, remark = rowOf(a), a.Status.Failure
		}
		switch {
		case remark != "" || a.silent():
			tint = color.New(color.FgRed)
		case a.election().Leader == "":
			tint, remark = color.New(color.FgRed), a.election().Explanation
		case a.election().Leading:
			tint = color.New(color.FgGreen)
		}
		rows, tints = append(rows, row), append(tints, tint)
		if remark != "" {
			why.add(a.Node, remark)
		}
	}
	lines := console.Columns(rows)
	for i := range lines {
		lines[i] = tints[i].Sprint(lines[i])
	}
	lines = slices.Concat(lines, why.lines(), notes(answers), manyElections(answers))
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// notes are what the nodes that answered say below the table.
func notes(answers []Answer) (lines []string) {
	answered := answering(answers)
	if text, _ := pausesOf(answered); text != "" {
		lines = append(lines, text)
	}
	note := func(of func(Answer) string) {
		var all remarks
		for _, a := range answered {
			if text := of(a); text != "" {
				all.add(a.Node, text)
			}
		}
		lines = append(lines, all.lines()...)
	}
	lines = append(lines, records(answered)...)
	note(unfit)
	note(setting)
	note(stalls)
	note(detector)
	asks := func(a Answer) bool { return a.election().QoS != nil }
	if i := slices.IndexFunc(answered, asks); i >= 0 {
		lines = append(lines, fmt.Sprintf("qos: %s", answered[i].election().QoS.Asked))
	}
	note(quality)
	note(fault)
	lines = slices.Concat(lines, emergencies(answered), certificates(answered), unencrypted(answered))
	for _, c := range causes(answered) {
		lines = append(lines, fmt.Sprintf("%s (%s): %s; %s", c.Kind, c.where, c.Detail, c.Advice))
	}
	return lines
}

func rowOf(a Answer) string {
	g := a.election()
	role, lease := g.Role, "-"
	switch {
	case !slices.Contains(g.Voters, a.Node):
		role += " (observer)"
	case slices.Contains(recordOf(a).Uncounted, a.Node):
		role += " (not counted)"
	}
	if g.LeaseLeft > 0 {
		lease = g.LeaseLeft.Duration().Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s", a.Node, role,
		cmp.Or(string(g.Leader), "-"), g.Term, g.LSN, lease, links(a.Status.Members))
}

// links says briefly how many members are connected, at what round-trip times, and which voters are
// not. --json has each link by itself.
func links(members []cluster.MemberStatus) string {
	var up []time.Duration
	var down []string
	for _, m := range members {
		if m.Link == linkUp {
			up = append(up, m.RTT.Duration())
		} else if m.Voter {
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
		text += "; " + words.List(down)
	}
	return text
}

func milliseconds(d time.Duration) string {
	if d >= 10*time.Millisecond {
		return fmt.Sprint(d.Milliseconds())
	}
	return fmt.Sprintf("%.2g", float64(d)/float64(time.Millisecond))
}

// pausesOf says on which nodes elections are paused, and when the first of these pauses ends; "" if
// there is none. inPart means that some voters are not paused.
func pausesOf(answered []Answer) (text string, inPart bool) {
	var paused, not []cluster.NodeID
	var until time.Time
	for _, a := range answered {
		switch at := a.Status.PausedUntil; {
		case !at.IsZero():
			paused = append(paused, a.Node)
			if until.IsZero() || at.Before(until) {
				until = at
			}
		case slices.Contains(a.election().Voters, a.Node):
			not = append(not, a.Node)
		}
	}
	if len(paused) == 0 {
		return "", false
	}
	text = fmt.Sprintf("elections are paused on %s until %s", words.List(paused),
		until.Format(time.RFC3339))
	if len(not) > 0 {
		return fmt.Sprintf("%s, but not on %s", text, words.List(not)), true
	}
	return text + "; 'bmqnode resume' ends that", false
}

// setting says the priority and candidacy of a node if they are unusual or were set at run time.
func setting(a Answer) string {
	g, parts := a.election(), []string(nil)
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
	votes := slices.Contains(g.Voters, a.Node) && !slices.Contains(recordOf(a).Uncounted, a.Node)
	tell("candidate", stands, !g.Candidate && votes)
	return strings.Join(parts, ", ")
}

// unfit says why a node is not fit to lead.
func unfit(a Answer) string {
	if why := a.election().Unfit; why != "" {
		return console.Alert("not fit to lead:") + " " + why
	}
	return ""
}

func stalls(a Answer) string {
	if a.Status.Stalls == 0 {
		return ""
	}
	return fmt.Sprintf("its process was held up %s in %s",
		console.Count(int(a.Status.Stalls), "time"), a.Status.Uptime.Duration().Round(time.Second))
}

func detector(a Answer) string {
	if a.election().Detector == "" {
		return ""
	}
	return "detector: " + a.election().Detector
}

// quality says how the quality of service that was asked for is met.
func quality(a Answer) string {
	g := a.election()
	q := g.QoS
	short := func(s cluster.Seconds) string { return milliseconds(s.Duration()) + " ms" }
	switch {
	case q == nil, !g.Leading && q.Detect == 0:
		return ""
	case g.Leading:
		return fmt.Sprintf("leads, with a heartbeat every %s (%s needed)", short(q.Period),
			short(q.Wanted))
	}
	promise := console.Alert("not met:") + " " + strings.TrimPrefix(q.Unmet, "qos: ")
	if q.Met {
		promise = fmt.Sprintf("met: a mistake every %s, accuracy %.9g", span(q.Mistakes.Duration()),
			q.Accuracy)
	}
	return fmt.Sprintf("link from %s: loss %.2g %%, delay %s, deviation %s; heartbeats every %s "+
		"(%s needed); crash detected within %s; %s", g.Leader, 100*q.Loss, short(q.Delay),
		short(q.Deviation), short(q.Period), short(q.Wanted), short(q.Detect), promise)
}

func fault(a Answer) string {
	if a.Status.Faults == "" {
		return ""
	}
	return "cut on purpose: " + a.Status.Faults
}

// span writes a duration in its greatest unit.
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

// emergencies says which nodes have each emergency on record. It was declared on one after the
// other, so the times differ.
func emergencies(answered []Answer) (lines []string) {
	var keys []string
	text, knowing := map[string]string{}, map[string][]cluster.NodeID{}
	for _, a := range answered {
		for _, e := range a.Status.Emergencies {
			key := fmt.Sprint(e.Voters, e.Lost, e.Missing(), e.Reason)
			if text[key] == "" {
				mark := "past emergency:"
				if len(e.Missing()) > 0 {
					mark = console.Alert("EMERGENCY:")
				}
				keys, text[key] = append(keys, key), mark+" "+EmergencyText(e)
			}
			knowing[key] = append(knowing[key], a.Node)
		}
	}
	for _, key := range keys {
		lines = append(lines, text[key]+"; on record on "+words.List(knowing[key]))
	}
	return lines
}

// EmergencyText describes an emergency in a line.
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

// certificates names the certificate that ends first, if there are any.
func certificates(answered []Answer) (lines []string) {
	var first time.Time
	for _, a := range answered {
		if end := a.Status.CertificateEnd; !end.IsZero() && (first.IsZero() || end.Before(first)) {
			first = end
			lines = []string{fmt.Sprintf("TLS: the certificate that ends first is that of %s, at %s",
				a.Node, end.UTC().Format(time.RFC3339))}
		}
	}
	return lines
}

// unencrypted names what is not encrypted, or need not be, in a cluster with TLS: what remains to
// be done in a move to TLS.
func unencrypted(answered []Answer) (lines []string) {
	var plain, gossip, links []string
	for _, a := range answered {
		st := a.Status
		if st.CertificateEnd.IsZero() {
			continue
		}
		if st.AcceptsPlain {
			plain = append(plain, string(a.Node))
		}
		if st.GossipEncryption != "required" && st.GossipEncryption != "" {
			gossip = append(gossip, fmt.Sprintf("%s (%s)", a.Node, st.GossipEncryption))
		}
		for _, m := range st.Members {
			if m.Link == linkUp && !m.LinkTLS {
				links = append(links, fmt.Sprintf("%s-%s", a.Node, m.Node))
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
