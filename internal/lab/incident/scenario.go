package incident

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

const (
	// settled is how long after the first election the scenario may begin.
	settled = time.Second
	// quiet is how much of the time before the first event, and after the last, is kept.
	quiet = 10 * time.Second
	// clockTime is how comments write a time.
	clockTime = "15:04:05.000"
)

// chooseWindow finds the part of the time asked for that is worth a scenario: it begins
// under the first leader, shortly before the first event, and ends after the last one.
func (in *inference) chooseWindow() error {
	slices.SortStableFunc(in.all, func(a, b Step) int { return a.At.Compare(b.At) })
	from, to := in.o.From, in.o.To
	outside := func(l recording.Leadership) bool {
		return l.From.After(to) || !l.To.IsZero() && l.To.Before(from)
	}
	in.Led = slices.DeleteFunc(in.Led, outside)
	if len(in.Led) == 0 {
		return errors.New("nobody led in that time, so there is nothing to begin with; " +
			"choose a longer time")
	}
	if first := in.Led[0].From.Add(settled); first.After(from) {
		from = first
		in.doubt("what happened before %s led is left out", in.Led[0].Leader)
	}
	firstEvent, lastEvent := to, from
	note := func(at time.Time) {
		if at.After(from) && !at.After(to) {
			firstEvent, lastEvent = earlier(firstEvent, at), later(lastEvent, at)
		}
	}
	for _, s := range in.all {
		note(s.At)
	}
	for _, l := range in.Led[1:] {
		note(l.From)
	}
	note(in.Led[0].To)
	in.Start = later(from, firstEvent.Add(-quiet))
	in.End = earlier(to, lastEvent.Add(quiet))
	if !in.End.After(in.Start) {
		in.End = in.Start.Add(quiet)
	}
	in.Led = slices.DeleteFunc(in.Led, func(l recording.Leadership) bool {
		return l.From.After(in.End) || !l.To.IsZero() && l.To.Before(in.Start)
	})
	in.Steps = in.legal()
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// state is what the steps so far have made of the nodes and links.
type state struct {
	process map[string]string        // run, pause or down
	unfit   map[string]bool          // applications that cannot lead
	cut     map[scenario.Pair]string // why
}

// legal are the steps of the window as the format allows them. What was so at its beginning
// is done at time 0; a step that fits nothing is left out, and doubted.
func (in *inference) legal() (steps []Step) {
	now := state{map[string]string{}, map[string]bool{}, map[scenario.Pair]string{}}
	for _, n := range in.nodes {
		if now.process[n] = "down"; len(in.lives[n]) > 0 && !in.lives[n][0].started {
			now.process[n] = "run"
		}
	}
	begun := false
	for _, s := range in.all {
		if !begun && s.At.After(in.Start) {
			begun, steps = true, in.initial(&now)
		}
		if s.At.After(in.End) {
			break
		}
		if !now.take(&s) {
			if begun {
				in.doubt("%s at %s does not fit what was before: left out", s.Do,
					s.At.Format(clockTime))
			}
		} else if begun {
			steps = append(steps, s)
		}
	}
	if !begun {
		steps = in.initial(&now)
	}
	return steps
}

// take does a step; false if it makes no sense, or nothing is left of it.
func (now *state) take(s *Step) bool {
	from := map[string][]string{
		"crash": {"run", "pause"}, "stop": {"run"}, "restart": {"down"}, "pause": {"run"},
		"resume": {"pause"}, "step-down": {"run"}, "unfit": {"run"}, "fit": {"run"},
	}[s.Do]
	to := map[string]string{"crash": "down", "stop": "down", "restart": "run", "pause": "pause",
		"resume": "run"}[s.Do]
	for _, n := range s.Nodes {
		if !slices.Contains(from, now.process[n]) {
			return false
		}
		now.process[n] = cmp.Or(to, now.process[n])
	}
	switch s.Do {
	case "unfit", "fit":
		changes := now.unfit[s.Nodes[0]] != (s.Do == "unfit")
		now.unfit[s.Nodes[0]] = s.Do == "unfit"
		return changes
	case "restart":
		delete(now.unfit, s.Nodes[0])
	case "cut":
		for _, p := range s.Pairs {
			now.cut[p] = s.Why
		}
	case "heal":
		s.Pairs = slices.DeleteFunc(slices.Clone(s.Pairs), func(p scenario.Pair) bool {
			_, cut := now.cut[p]
			delete(now.cut, p)
			return !cut
		})
		return len(s.Pairs) > 0
	}
	return true
}

// initial are the steps at time 0. Nodes that do not run then are absent.
func (in *inference) initial(now *state) (steps []Step) {
	at := func(s Step) {
		s.At, s.Why = in.Start, s.Why+" since before"
		steps = append(steps, s)
	}
	in.absent = map[string]bool{}
	for _, n := range in.nodes {
		switch now.process[n] {
		case "down":
			in.absent[n] = true
		case "pause":
			at(Step{Do: "pause", Nodes: []string{n}, Why: n + " was paused"})
		}
		if now.unfit[n] {
			at(Step{Do: "unfit", Nodes: []string{n}, Why: "its application cannot lead"})
		}
	}
	pairs := slices.SortedFunc(maps.Keys(now.cut), func(a, b scenario.Pair) int {
		return cmp.Compare(a.String(), b.String())
	})
	if len(pairs) > 0 {
		at(Step{Do: "cut", Pairs: pairs, Why: "they heard nothing"})
	}
	return steps
}

// write writes the scenario, with the seed of its first run.
func (in *Incident) write(seed uint64) []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Who led, by the clock of %s:", in.first)
	for _, l := range in.Led {
		line("#   %s", in.leadership(&l))
	}
	for _, d := range in.Doubts {
		line("# Not certain: %s.", d)
	}
	for _, node := range slices.Sorted(maps.Keys(in.Names)) {
		line("# %s is %s here: the format has no such name.", node, in.Names[node])
	}
	line("name: incident-%s", in.Start.Format("2006-01-02-150405"))
	line("about: What the nodes recorded on %s from %s to %s.", in.Start.Format("2006-01-02"),
		in.Start.Format(clockTime), in.End.Format(clockTime))
	in.writeNodes(line)
	if !in.setup.Scouting {
		line("scouting: false")
	}
	line("rule: %s", in.setup.Rule)
	line("elector:")
	for _, key := range slices.Sorted(maps.Keys(in.setup.Elector)) {
		line("  %s: %s", key, in.setup.Elector[key])
	}
	first := in.Led[0]
	line("begin: {leader: %s, term: %d}", in.name(first.Leader), first.Term)
	line("duration: %s", in.End.Sub(in.Start).Round(time.Millisecond))
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
func (in *Incident) leadership(l *recording.Leadership) string {
	text := fmt.Sprintf("%s %s led in term %d", l.From.Format(clockTime), l.Leader, l.Term)
	switch {
	case l.To.IsZero():
		return text + ", and goes on"
	case l.Reason == "":
		return text + " until " + l.To.Format(clockTime) + " or before"
	}
	return text + " until " + l.To.Format(clockTime) + ": " + l.Reason
}

// name is a node's name as the format has it.
func (in *Incident) name(node string) string {
	if name, known := in.Names[node]; known {
		return name
	}
	legal := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, node)
	if len(legal) > 56 {
		legal = legal[:56]
	}
	taken := func(name string) bool {
		other := func(n string) bool { return n != node && (n == name || in.Names[n] == name) }
		return name == "all" || name == "any" || name == "" || slices.ContainsFunc(in.nodes, other)
	}
	name := legal
	for i := 2; taken(name); i++ {
		name = fmt.Sprintf("%s_%d", legal, i)
	}
	if name != node {
		in.Names[node] = name
	}
	return name
}

func (in *Incident) writeNodes(line func(string, ...any)) {
	line("nodes:")
	for _, n := range in.nodes {
		var special []string
		if !slices.Contains(in.setup.Voters, n) {
			special = append(special, "observer: true")
		}
		if s := in.setups[n]; s != nil {
			if s.NotCandidate && slices.Contains(in.setup.Voters, n) {
				special = append(special, "candidate: false")
			}
			if s.Priority != 0 {
				special = append(special, fmt.Sprintf("priority: %d", s.Priority))
			}
		}
		if in.absent[n] {
			special = append(special, "absent: true")
		}
		line("  %s: {%s}", in.name(n), strings.Join(special, ", "))
	}
}

// action is what a step does, as the format writes it.
func (in *Incident) action(s *Step) string {
	switch s.Do {
	case "transfer":
		if s.To == "" {
			return "transfer: {}"
		}
		return "transfer: {to: " + in.name(s.To) + "}"
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

// linkAction writes a link whose directions are both there as a-b, and all links of a node
// as the node.
func (in *Incident) linkAction(s *Step) string {
	do, links := s.Do, []string(nil)
	both := func(p scenario.Pair) bool {
		return slices.Contains(s.Pairs, scenario.Pair{From: p.To, To: p.From})
	}
	place := func(n scenario.NodeID) int { return slices.Index(in.nodes, string(n)) }
	for _, p := range s.Pairs {
		from, to := in.name(string(p.From)), in.name(string(p.To))
		switch {
		case !both(p):
			links = append(links, from+"->"+to)
		case place(p.From) < place(p.To):
			links = append(links, from+"-"+to)
		}
	}
	if n, ok := in.allLinksOf(s.Pairs); ok && !slices.ContainsFunc(s.Pairs,
		func(p scenario.Pair) bool { return !both(p) }) {
		links = []string{in.name(n)}
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

// allLinksOf is the node whose links the pairs are, all of them and no others.
func (in *Incident) allLinksOf(pairs []scenario.Pair) (string, bool) {
	for _, n := range in.nodes {
		peers := map[scenario.NodeID]bool{}
		others := slices.ContainsFunc(pairs, func(p scenario.Pair) bool {
			peers[p.From], peers[p.To] = true, true
			return string(p.From) != n && string(p.To) != n
		})
		if !others && len(peers) == len(in.nodes) && len(in.nodes) > 2 {
			return n, true
		}
	}
	return "", false
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

// expectations say who led: each leader right before the step that ended its leadership, or
// at the end.
func (in *Incident) expectations() (all []string) {
	led := collapse(in.Led, in.End)
	for i, l := range led {
		if i == len(led)-1 && l.to.IsZero() {
			all = append(all, fmt.Sprintf("at: %s, leader: %s", in.since(in.End), in.name(l.leader)))
			continue
		}
		for _, s := range slices.Backward(in.Steps) {
			at := s.At.Add(-10 * time.Millisecond)
			if !s.At.After(l.to) && at.After(l.from.Add(settled/2)) && at.After(in.Start) &&
				!in.paused(l.leader, at) {
				all = append(all, fmt.Sprintf("at: %s, leader: %s", in.since(at), in.name(l.leader)))
				break
			}
		}
	}
	changes := 0
	for i := 1; i < len(led); i++ {
		if led[i].leader != led[i-1].leader {
			changes++
		}
	}
	return append(all, fmt.Sprintf("leader_changes: %d", changes))
}
