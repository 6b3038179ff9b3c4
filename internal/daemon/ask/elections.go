package ask

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// row is one node's part in one election.
type row struct {
	node cluster.NodeID
	cluster.GroupStatus
}

func rowsOf(answers []Answer) (rows []row) {
	for _, a := range answering(answers) {
		for _, g := range a.Status.Groups {
			rows = append(rows, row{a.Node, g})
		}
	}
	return rows
}

// PrintElections writes a table of the elections that were selected, a line for each node that has it
// open, and how to go on.
func PrintElections(w io.Writer, answers []Answer) error {
	rows := rowsOf(answers)
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.Group, b.Group) })
	next := ""
	for _, a := range answering(answers) { // nodes may have others open, and end their pages elsewhere
		if end := a.Status.Next; end != "" && (next == "" || end < next) {
			next = end
		}
	}
	if next != "" {
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.Group > next })
	}
	lines := slices.Concat(table(rows), manyElections(answers))
	if next != "" {
		lines = append(lines, "there are more: --after "+next)
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func table(rows []row) []string {
	lines := []string{"ELECTION\tNODE\tROLE\tLEADER\tTERM\tSINCE"}
	for _, r := range rows {
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s", r.Group, r.node, r.Role,
			cmp.Or(string(r.Leader), "-"), r.Term, r.Since.Duration().Round(time.Second)))
	}
	return console.Columns(lines)
}

// manyElections sums up the elections of nodes that have too many to list.
func manyElections(answers []Answer) (lines []string) {
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
	text := fmt.Sprintf("%s open", console.Count(t.Open, "election"))
	for _, id := range slices.Sorted(maps.Keys(t.Leaders)) {
		text += fmt.Sprintf(", %d led by %s", t.Leaders[id], id)
	}
	if t.WithoutLeader > 0 {
		text += ", " + console.Alert(fmt.Sprintf("%d without leader", t.WithoutLeader)) +
			fmt.Sprintf(" (for %s at most)", t.LongestWithout.Duration().Round(time.Second))
	}
	return text
}

// namedOf is how many elections a problem names.
const namedOf = 3

// trouble is what may be wrong in an election, and how a node counts it.
type trouble struct {
	level Level
	kind  Kind
	what  string
	why   func(cluster.GroupStatus) string // "" if all is well
	count func(*cluster.Sums) int
}

var troubles = []trouble{
	{Fail, noLeader, "have no leader", func(g cluster.GroupStatus) string {
		if g.Leader != "" {
			return ""
		}
		return g.Explanation
	}, func(t *cluster.Sums) int { return t.WithoutLeader }},
	{Warn, recordBehind, "have a voter without the newest record", func(g cluster.GroupStatus) string {
		if g.Record == nil {
			return ""
		}
		return words.List(g.Record.Behind)
	}, func(t *cluster.Sums) int { return t.VotersBehind }},
	{Warn, qosNotMet, "do not meet the quality that was asked", func(g cluster.GroupStatus) string {
		if g.QoS == nil || g.Since <= qosKnown {
			return ""
		}
		return g.QoS.Unmet
	}, func(t *cluster.Sums) int { return t.QoSUnmet }},
}

// elections reports what is wrong in elections besides the default one: for each node and trouble,
// how many have it, the first ones, and why the first one has.
func (s *survey) elections() {
	for _, t := range troubles {
		var found remarks
		for _, a := range s.answered {
			var names []string
			why, count, isDefault := "", 0, 0
			for _, g := range a.Status.Groups {
				switch text := t.why(g); {
				case text == "":
				case g.Group == cluster.DefaultGroup: // other checks are about it
					isDefault = 1
				default:
					names, why, count = append(names, g.Group), cmp.Or(why, text), count+1
				}
			}
			if a.Status.Elections != nil {
				count = max(count, t.count(a.Status.Elections)-isDefault)
			}
			if len(names) > 0 {
				found.add(a.Node, fmt.Sprintf("%s %s, such as %s: %s", console.Count(count, "election"), t.what,
					words.List(names[:min(len(names), namedOf)]), why))
			}
		}
		for _, r := range found {
			s.problem(t.level, t.kind, "elections", words.List(r.nodes), "%s", r.text)
		}
	}
}
