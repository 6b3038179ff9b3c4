package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
)

func statusCommand() *cobra.Command {
	var r remote
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show every node: role, leader, term, LSN, lease, links",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			answers, err := r.all(cmd.Context())
			if err != nil {
				return err
			}
			slices.SortFunc(answers, func(a, b answerOf) int { return strings.Compare(string(a.Node), string(b.Node)) })
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(answers)
			}
			return printStatus(cmd.OutOrStdout(), answers)
		},
	}
	r.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything, as JSON")
	return cmd
}

// printStatus writes a table, a line per node, and below it what needs words.
func printStatus(w io.Writer, answers []answerOf) error {
	var table bytes.Buffer
	tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NODE\tROLE\tLEADER\tTERM\tLSN\tLEASE\tLINKS")
	for _, a := range answers {
		fmt.Fprintln(tw, row(a))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(table.String(), "\n"), "\n")
	fmt.Fprintln(w, color.New(color.Bold).Sprint(lines[0]))
	for i, a := range answers {
		fmt.Fprintln(w, tint(a)(lines[i+1]))
	}
	for _, a := range answers {
		if remark := remarkOn(a); remark != "" {
			fmt.Fprintf(w, "%s: %s\n", a.Node, remark)
		}
	}
	for _, line := range slices.Concat(emergencyRemarks(answers), findingRemarks(answers)) {
		fmt.Fprintln(w, line)
	}
	return nil
}

// findingRemarks are what nodes find wrong between each other, and how to mend it.
func findingRemarks(answers []answerOf) (lines []string) {
	for _, a := range answers {
		if a.Status == nil {
			continue
		}
		for _, f := range a.Status.Findings {
			lines = append(lines, fmt.Sprintf("%s finds %s with %s: %s; %s", a.Node, f.Kind, f.Peer, f.Detail, f.Advice))
		}
	}
	return lines
}

func row(a answerOf) string {
	if a.Status == nil {
		return fmt.Sprintf("%s\t-\t\t\t\t\t", a.Node)
	}
	g := a.Status.Groups[0]
	role, lease := g.Role, "-"
	if !slices.Contains(g.Voters, a.Node) {
		role += " (observer)"
	}
	if g.LeaseLeft > 0 {
		lease = g.LeaseLeft.Duration().Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s", a.Node, role, orDash(string(g.Leader)), g.Term, g.LSN, lease, links(a.Status.Members))
}

// links says in a few columns how many members are connected, at what round-trip
// times, and which voters are not. --json has each by itself.
func links(members []cluster.MemberStatus) string {
	var up []time.Duration
	var down []string
	for _, m := range members {
		switch {
		case m.Link == "up":
			up = append(up, m.RTT.Duration())
		case m.Voter:
			down = append(down, fmt.Sprintf("%s %s", m.Node, m.Link))
		}
	}
	text := "none"
	if len(up) > 0 {
		text = fmt.Sprintf("%d up, %s", len(up), span(slices.Min(up), slices.Max(up)))
	}
	if len(down) > 0 {
		text += "; " + strings.Join(down, ", ")
	}
	return text
}

// span writes two round-trip times as one range of milliseconds.
func span(from, to time.Duration) string {
	ms := func(d time.Duration) string {
		if d >= 10*time.Millisecond {
			return fmt.Sprint(d.Milliseconds())
		}
		return fmt.Sprintf("%.2g", float64(d)/float64(time.Millisecond))
	}
	if ms(from) == ms(to) {
		return ms(from) + " ms"
	}
	return ms(from) + "-" + ms(to) + " ms"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func tint(a answerOf) func(...any) string {
	switch {
	case a.Status == nil, a.Status.Failure != "", a.Status.Groups[0].Leader == "":
		return color.New(color.FgRed).Sprint
	case a.Status.Groups[0].Leading:
		return color.New(color.FgGreen).Sprint
	}
	return fmt.Sprint
}

// remarkOn says in words what is not as it should be.
func remarkOn(a answerOf) string {
	switch {
	case a.Status == nil:
		return a.Error
	case a.Status.Failure != "":
		return a.Status.Failure
	case a.Status.Groups[0].Leader == "":
		return a.Status.Groups[0].Explanation
	}
	return ""
}
