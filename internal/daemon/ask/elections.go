package ask

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// PrintElections writes a table of the elections that were selected, a line for each node that has
// it open, and how to go on.
func PrintElections(w io.Writer, answers []Answer) error {
	rows, next := []string{}, ""
	for _, a := range answering(answers) {
		for _, g := range a.Status.Groups {
			rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s", g.Group, a.Node, g.Role,
				cmp.Or(string(g.Leader), "-"), g.Term, g.Since.Duration().Round(time.Second)))
		}
		if end := a.Status.Next; end != "" && (next == "" || end < next) {
			next = end // nodes may have others open, and end their pages elsewhere
		}
	}
	slices.Sort(rows)
	rows = slices.Insert(rows, 0, "ELECTION\tNODE\tROLE\tLEADER\tTERM\tSINCE")
	lines := slices.Concat(console.Columns(rows), manyElections(answers))
	if next != "" {
		lines = append(lines, "there are more: --after "+next)
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// manyElections sums up the elections of nodes that have too many to list.
func manyElections(answers []Answer) []string {
	var all remarks
	for _, a := range answering(answers) {
		if a.Status.Elections != nil {
			all.add(a.Node, sumsText(a.Status.Elections))
		}
	}
	return all.lines()
}

// sumsText describes sums in a line.
func sumsText(t *cluster.Sums) string {
	text := console.Count(t.Open, "election") + " open"
	for _, id := range slices.Sorted(maps.Keys(t.Leaders)) {
		text += fmt.Sprintf(", %d led by %s", t.Leaders[id], id)
	}
	if t.WithoutLeader > 0 {
		text += ", " + console.Alert(fmt.Sprintf("%d without leader", t.WithoutLeader)) +
			fmt.Sprintf(" for %s at most", t.LongestWithout.Duration().Round(time.Second))
	}
	return text
}

// namedOf is how many elections a problem names.
const namedOf = 3

// varying is what differs between explanations of the same cause.
var varying = regexp.MustCompile(`( in| for)( another)? ([\d.]+(h|m|.?s))+\b|( in)? term \d+`)

// elections reports in how many elections besides the default one a node knows no leader: a line
// for each cause, with the first elections, or one for a sum. Nodes that say the same share a line.
func (s *survey) elections() {
	var found remarks
	for _, a := range s.answered {
		var causes remarks // of elections, not of nodes
		for _, g := range a.Status.Groups[1:] {
			if g.Leader == "" {
				causes.add(cluster.NodeID(g.Group), varying.ReplaceAllString(g.Explanation, ""))
			}
		}
		add := func(count int, such ...string) {
			found.add(a.Node, fmt.Sprintf("%s without leader, such as %s",
				console.Count(count, "election"), strings.Join(such, "; ")))
		}
		var sum []string
		for _, c := range causes {
			such := words.List(c.nodes[:min(len(c.nodes), namedOf)]) + ": " + c.text
			if sum = append(sum, such); a.Status.Elections == nil {
				add(len(c.nodes), such)
			}
		}
		if all := a.Status.Elections; all != nil && len(sum) > 0 {
			add(all.WithoutLeader, sum...)
		}
	}
	for _, r := range found {
		s.problem(Fail, noLeader, "elections", words.List(r.nodes), "%s", r.text)
	}
}
