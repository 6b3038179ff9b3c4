package incident

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// clockTime is how comments and reports write a time.
const clockTime = "15:04:05.000"

// write writes the scenario, with the seed of its first run.
func (in *Incident) write(seed uint64) []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Who led, by the clock of %s:", in.sources[0].Node)
	for _, l := range in.Led {
		line("#   %s", leadership(&l))
	}
	for _, d := range in.Doubts {
		line("# Not certain: %s.", d)
	}
	for _, node := range slices.Sorted(maps.Keys(in.Names)) {
		line("# %s is %s here: the format has no such name.", node, in.Names[node])
	}
	line("name: incident-%s", in.Start.Format("2006-01-02-150405"))
	line("about: What the nodes recorded on %s from %s to %s.", in.Start.Format(time.DateOnly),
		in.Start.Format(clockTime), in.End.Format(clockTime))
	line("nodes:")
	for _, n := range in.nodes {
		line("  %s: {%s}", in.name(n), strings.Join(in.special(n), ", "))
	}
	if !in.setup.Scouting {
		line("scouting: false")
	}
	line("rule: %s", in.setup.Rule)
	line("elector:")
	for _, key := range slices.Sorted(maps.Keys(in.setup.Elector)) {
		line("  %s: %s", key, in.setup.Elector[key])
	}
	line("begin: {leader: %s, term: %d}", in.name(in.Led[0].Leader), in.Led[0].Term)
	line("duration: %s", in.since(in.End))
	line("seed: %d", seed)
	if len(in.Steps) > 0 {
		line("timeline:")
	}
	for i := range in.Steps {
		s := &in.Steps[i]
		line("  # %s %s", s.At.Format(clockTime), s.Why)
		line("  - {at: %s, %s}", in.since(s.At), in.action(s))
	}
	line("expect:")
	for _, e := range in.expectations() {
		line("  - {%s}", e)
	}
	return b.Bytes()
}

// since is a time in the scenario.
func (in *Incident) since(at time.Time) time.Duration {
	return max(at.Sub(in.Start), 0).Round(time.Millisecond)
}

// leadership is a leadership in words.
func leadership(l *recording.Leadership) string {
	text := fmt.Sprintf("%s %s led in term %d", l.From.Format(clockTime), l.Leader, l.Term)
	switch {
	case l.To.IsZero():
		return text + ", and goes on"
	case l.Reason == "":
		return text + " until " + l.To.Format(clockTime) + " or before"
	}
	return text + " until " + l.To.Format(clockTime) + ": " + l.Reason
}

// illegal matches what a node's name cannot have in the format.
var illegal = regexp.MustCompile(`[^A-Za-z0-9_.]`)

// chooseNames gives names to the nodes whose own the format does not have.
func (in *Incident) chooseNames() {
	taken := map[string]int{"": 1, "all": 1, "any": 1}
	for _, n := range in.nodes {
		taken[n]++
	}
	for _, n := range in.nodes {
		taken[n]--
		legal := illegal.ReplaceAllString(n, "_")
		legal = legal[:min(len(legal), 56)]
		name := legal
		for i := 2; taken[name] > 0; i++ {
			name = fmt.Sprintf("%s_%d", legal, i)
		}
		taken[name]++
		if name != n {
			in.Names[n] = name
		}
	}
}

// name is a node's name as the format has it.
func (in *Incident) name(node string) string { return cmp.Or(in.Names[node], node) }

// special is what is special about a node.
func (in *Incident) special(n string) (special []string) {
	voter, s := slices.Contains(in.setup.Voters, n), in.setups[n]
	if !voter {
		special = append(special, "observer: true")
	}
	if s != nil && s.NotCandidate && voter {
		special = append(special, "candidate: false")
	}
	if s != nil && s.Priority != 0 {
		special = append(special, fmt.Sprintf("priority: %d", s.Priority))
	}
	if in.absent[n] {
		special = append(special, "absent: true")
	}
	return special
}

// action is what a step does, as the format writes it.
func (in *Incident) action(s *Step) string {
	switch s.Do {
	case "transfer":
		if s.To == "" {
			return "transfer: {}"
		}
		return "transfer: {to: " + in.name(s.To) + "}"
	case "add-voter", "remove-voter":
		return fmt.Sprintf("%s: [%s]", s.Do, in.name(s.To))
	case "cut", "heal":
		return in.linkAction(s)
	}
	var names []string
	for _, n := range s.Nodes {
		names = append(names, in.name(n))
	}
	text := fmt.Sprintf("%s: [%s]", s.Do, strings.Join(names, ", "))
	if s.Wipe {
		text += ", wipe: true"
	}
	if s.Rest > 0 {
		text += fmt.Sprintf(", for: %s", s.Rest)
	}
	return text
}

// linkAction writes a link in both directions as a-b, one direction as a->b, and all links of a
// node as its name.
func (in *Incident) linkAction(s *Step) string {
	do, links, whole := s.Do, []string(nil), true
	place := func(n scenario.NodeID) int { return slices.Index(in.nodes, string(n)) }
	for _, p := range s.Pairs {
		from, to := in.name(string(p.From)), in.name(string(p.To))
		switch {
		case !slices.Contains(s.Pairs, scenario.Pair{From: p.To, To: p.From}):
			links, whole = append(links, from+"->"+to), false
		case place(p.From) < place(p.To):
			links = append(links, from+"-"+to)
		}
	}
	hub := slices.IndexFunc(in.nodes, func(n string) bool {
		return !slices.ContainsFunc(s.Pairs, func(p scenario.Pair) bool {
			return string(p.From) != n && string(p.To) != n
		})
	})
	if whole && hub >= 0 && len(links) == len(in.nodes)-1 && len(in.nodes) > 2 {
		links = []string{in.name(in.nodes[hub])}
		if do == "cut" {
			do = "isolate"
		}
	}
	text := fmt.Sprintf("%s: [%s]", do, strings.Join(links, ", "))
	if s.Reset {
		text += ", how: reset"
	}
	return text
}

// expectations say who led: each leader right before the step that ended its leadership, or
// at the end.
func (in *Incident) expectations() (all []string) {
	led, changes := collapse(in.Led, in.End), 0
	expect := func(at time.Time, leader string) {
		all = append(all, fmt.Sprintf("at: %s, leader: %s", in.since(at), in.name(leader)))
	}
	for i, l := range led {
		if i > 0 && l.Leader != led[i-1].Leader {
			changes++
		}
		if i == len(led)-1 && l.To.IsZero() {
			expect(in.End, l.Leader)
			break
		}
		for _, s := range slices.Backward(in.Steps) {
			at := s.At.Add(-10 * time.Millisecond)
			if !s.At.After(l.To) && at.After(l.From.Add(settled/2)) && at.After(in.Start) &&
				!in.paused(l.Leader, at) {
				expect(at, l.Leader)
				break
			}
		}
	}
	return append(all, fmt.Sprintf("leader_changes: %d", changes))
}

// paused reports whether a node is paused at a moment.
func (in *Incident) paused(node string, at time.Time) (paused bool) {
	for _, s := range in.Steps {
		if s.At.Before(at) && slices.Contains(s.Nodes, node) {
			paused = s.Do == "pause" || paused && s.Do != "resume"
		}
	}
	return paused
}
