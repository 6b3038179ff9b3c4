package scenario

import (
	"slices"
	"strings"
	"time"
)

// longestRest is the longest time for which a step-down keeps a node from standing.
const longestRest = 24 * time.Hour

// actionKeys are what a step can do: one of the first fields, and for some of them
// one of the last, which say how.
type actionKeys struct {
	Cut       names
	Isolate   names
	Partition []names
	Heal      names
	Crash     names
	Restart   names
	Pause     names
	Resume    names
	Stop      names
	Link      mapping[setLinkKeys]
	Transfer  mapping[transferKeys]
	StepDown  names `yaml:"step-down"`
	Unfit     names
	Fit       names
	Publish   scalar
	AddVoter  names                `yaml:"add-voter"`
	RemVoter  names                `yaml:"remove-voter"`
	Replace   mapping[replaceKeys] `yaml:"replace-voter"`

	How, Unsynced, Wipe, Join, For, Via scalar
	Lost                                names
}

type replaceKeys struct{ Old, New scalar }

type setLinkKeys struct {
	Between  names
	Behavior linkKeys `yaml:",inline"`
}

type transferKeys struct{ To scalar }

// modifiers are the keys that say how, each with the actions that they go with.
var modifiers = map[string][]string{
	"how": {"cut", "isolate"}, "unsynced": {"crash"}, "wipe": {"restart"}, "join": {"restart"},
	"lost": {"restart"}, "for": {"step-down"}, "via": RecordActions,
}

// RecordActions are the words of those on the election's record.
var RecordActions = []string{"publish", "add-voter", "remove-voter", "replace-voter"}

// actionNames are the keys of actions, in the order of the struct.
func actionNames() []string {
	return slices.DeleteFunc(keyNames[actionKeys](), func(key string) bool {
		return modifiers[key] != nil
	})
}

// action reads the one action of a step, and its text as the format writes it. It
// returns false if there is not one, which it reports.
func (b *builder) action(k *actionKeys, step place) (a Action, text string, ok bool) {
	if a.Do, ok = b.one(k, actionNames(), step, "a step does"); !ok {
		return a, "", false
	}
	said := map[string]place{"lost": k.Lost.place}
	for how, s := range fieldsOf[scalar](k) {
		said[how] = s.place
	}
	for how, with := range modifiers {
		if said[how].there() && !slices.Contains(with, a.Do) {
			b.at(said[how], "%s does not go with %s", how, a.Do)
		}
	}
	switch a.Do {
	case "cut", "isolate":
		text = b.cut(k, &a)
	case "partition":
		text = "partition " + b.partition(k.Partition, &a)
	case "heal":
		l := b.links(k.Heal, true)
		a.Heal, text = l.pairs, phrase("heal", l.texts)
	case "link":
		text = phrase("link", b.setLink(k.Link, &a))
	case "transfer":
		text = "transfer"
		if to := k.Transfer.keys.To; to.there() {
			a.To, _ = b.known(to)
			text += " to " + to.text
		}
	case "publish", "add-voter", "remove-voter", "replace-voter":
		text = b.record(k, step, &a)
	default:
		text = b.process(k, *fieldsOf[names](k)[a.Do], &a)
	}
	return a, text, true
}

// cut reads a cut or an isolation, which is a cut of all links of nodes.
func (b *builder) cut(k *actionKeys, a *Action) (text string) {
	how := ""
	const right = "silent (the default: packets vanish) or reset (connections break)"
	read(b, k.How, &how, oneOf(right, "silent", "reset"))
	if a.Do == "isolate" {
		ids := b.list(k.Isolate, b.known)
		a.Cut = b.s.linksOf(ids)
		if len(ids) > 0 {
			b.needsLinks(k.Isolate.place, a.Cut)
		}
		if text = phrase("isolate", texts(ids)); how == "reset" {
			text += " (reset)"
		}
	} else {
		l := b.links(k.Cut, false)
		if a.Cut, text = l.pairs, phrase("cut", l.texts); how == "reset" {
			text = phrase("reset", l.texts)
			if l.half.there() {
				b.at(l.half.place, "a reset ends a connection, which has two directions: "+
					"write a-b, not %s", l.half.text)
			}
		}
	}
	if a.Do = "cut"; how != "reset" {
		return text
	}
	a.Do, a.Reset = "reset", once(a.Cut)
	a.Cut = slices.Clone(a.Reset)
	for _, p := range a.Reset {
		a.Cut = append(a.Cut, Pair{p.To, p.From})
	}
	return text
}

// oneOf returns a parser of words; right is what would be right.
func oneOf(right string, words ...string) func(string) (string, string) {
	return func(text string) (string, string) {
		if !slices.Contains(words, text) {
			return "", right
		}
		return text, ""
	}
}

func (b *builder) partition(groups []names, a *Action) (text string) {
	var sides []string
	var named []NodeID
	side := map[NodeID]int{} // from 1
	for i, group := range groups {
		ids := b.list(group, b.known)
		for _, id := range ids {
			if side[id] > 0 {
				b.at(group.place, "%s is in two groups: a node is on one side", id)
			}
			side[id] = i + 1
		}
		named, sides = append(named, ids...), append(sides, strings.Join(texts(ids), " "))
	}
	if len(groups) > 0 && !slices.ContainsFunc(groups, func(g names) bool { return g.word == "" }) {
		b.flat(groups[0].place, named)
	}
	for _, p := range b.s.AllPairs() {
		if side[p.From] > 0 && side[p.From] == side[p.To] {
			a.Heal = append(a.Heal, p)
		} else {
			a.Cut = append(a.Cut, p)
		}
	}
	return strings.Join(sides, " | ")
}

// flat reports a partition that names nodes and no groups: whoever writes [a, b] means a and b
// on one side, and it would leave every node alone.
func (b *builder) flat(at place, side []NodeID) {
	if len(side) == len(b.s.Nodes) {
		side = side[:1]
	}
	rest := slices.DeleteFunc(b.s.ids(), func(id NodeID) bool { return slices.Contains(side, id) })
	b.at(at, "partition takes groups, which are lists: write [[%s], [%s]] for two sides, "+
		"or isolate for nodes that are alone",
		strings.Join(texts(side), ", "), strings.Join(texts(rest), ", "))
}

// setLink reads new behavior of links; what is left out is the network's.
func (b *builder) setLink(m mapping[setLinkKeys], a *Action) []string {
	between, given := m.keys.Between, m.keys.Behavior
	if !between.there() {
		b.at(m.place, "link does not say which: add between, as in between: a-b")
		return nil
	}
	a.Link = b.s.Network
	said := b.link(&given, &a.Link)
	l := b.links(between, true)
	if between.word == "all" {
		b.needsLinks(between.place, l.pairs)
	}
	if a.Linked = l.pairs; said == nil {
		said = []string{"as at first"}
	}
	return append(l.texts, said...)
}

// record reads what an application or an operator asks of the election's record.
func (b *builder) record(k *actionKeys, step place, a *Action) (text string) {
	if b.s.Election.UnsafeNoScouting || b.s.Election.UnsafeQuorum {
		b.at(step, "%s needs a safe election: leave out scouting: false and unsafe_quorum", a.Do)
	}
	switch a.Do {
	case "publish":
		read(b, k.Publish, &a.Value, parseValue)
		text = "publish " + a.Value
	case "add-voter":
		a.Add = b.list(k.AddVoter, b.known)
		text = phrase(a.Do, texts(a.Add))
	case "remove-voter":
		a.Remove = b.list(k.RemVoter, b.known)
		text = phrase(a.Do, texts(a.Remove))
	case "replace-voter":
		in := k.Replace.keys
		if !in.Old.there() || !in.New.there() {
			b.at(k.Replace.place, "replace-voter says old and new, as in {old: b, new: e}; "+
				"they are the same for a machine with a new disk")
			return ""
		}
		from, okFrom := b.known(in.Old)
		to, okTo := b.known(in.New)
		if okFrom && okTo {
			a.Remove, a.Add = []NodeID{from}, []NodeID{to}
		}
		text = "replace-voter " + in.Old.text + " by " + in.New.text
	}
	if k.Via.there() {
		a.Via, _ = b.known(k.Via)
		text += " via " + k.Via.text
	}
	return text
}

// process reads what is done to the processes of nodes.
func (b *builder) process(k *actionKeys, nodes names, a *Action) (text string) {
	a.Nodes = b.list(nodes, b.known)
	text = phrase(a.Do, texts(a.Nodes))
	const right = "lose or keep; leave it out to let the seed decide"
	if read(b, k.Unsynced, &a.Unsynced, oneOf(right, "lose", "keep")) {
		text += map[string]string{"lose": " (unsynced lost)", "keep": " (unsynced kept)"}[a.Unsynced]
	}
	if read(b, k.Wipe, &a.Wipe, parseFlag); a.Wipe {
		text += " (wiped)"
	}
	if a.Lost = b.list(k.Lost, b.known); len(a.Lost) > 0 {
		text += phrase(" after an emergency that lost", texts(a.Lost))
	}
	if read(b, k.Join, &a.Join, parseFlag); a.Join {
		text += " (joins)"
	}
	if read(b, k.For, &a.Rest, parseDuration) {
		text += " (for " + span(a.Rest) + ")"
	}
	if a.Rest > longestRest {
		b.at(k.For.place, "for is %s, but must be at most 24h", span(a.Rest))
	}
	return text
}

// Without returns what is left of an action when some nodes are not there; false if
// nothing is.
func Without(a Action, gone []NodeID) (left Action, ok bool) {
	isGone := func(id NodeID) bool { return slices.Contains(gone, id) }
	about := func() int {
		return len(a.Nodes) + len(a.Reset) + len(a.Cut) + len(a.Heal) + len(a.Linked) +
			len(a.Add) + len(a.Remove)
	}
	had := about() > 0
	a.Nodes = slices.DeleteFunc(slices.Clone(a.Nodes), isGone)
	for _, pairs := range []*[]Pair{&a.Reset, &a.Cut, &a.Heal, &a.Linked} {
		*pairs = slices.DeleteFunc(slices.Clone(*pairs), func(p Pair) bool {
			return isGone(p.From) || isGone(p.To)
		})
	}
	a.Lost = slices.DeleteFunc(slices.Clone(a.Lost), isGone)
	a.Add = slices.DeleteFunc(slices.Clone(a.Add), isGone)
	a.Remove = slices.DeleteFunc(slices.Clone(a.Remove), isGone)
	return a, !(had && about() == 0) && !isGone(a.To) && !isGone(a.Via)
}
