package scenario

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// actions are the keys of what a step can do, each with the one key that says
// how, and its reader: the action, nil if it was reported, and its text.
var actions = []struct {
	key, how string
	read     func(b *builder, o object, v *value) (Action, string)
}{
	{"cut", "how", (*builder).cut},
	{"isolate", "how", (*builder).isolate},
	{"partition", "", (*builder).partition},
	{"heal", "", (*builder).heal},
	{"crash", "unsynced", (*builder).crash},
	{"restart", "wipe", (*builder).restart},
	{"pause", "", (*builder).pause},
	{"resume", "", (*builder).resume},
	{"stop", "", (*builder).stop},
	{"link", "", (*builder).setLink},
	{"transfer", "", (*builder).transfer},
	{"step-down", "for", (*builder).stepDown},
	{"unfit", "", (*builder).unfit},
	{"fit", "", (*builder).fit},
}

// hows are the keys that say how.
var hows = []string{"how", "unsynced", "wipe", "for"}

func (b *builder) cut(o object, v *value) (Action, string) {
	l, reset := b.links(v, false), b.resets(o)
	if reset && l.half != nil {
		b.at(l.half, "a reset ends a connection, which has two directions: write a-b, not %s", l.half.text)
		return nil, ""
	}
	if reset {
		return Reset{once(l.pairs)}, words("reset", l.texts)
	}
	return Cut{l.pairs}, words("cut", l.texts)
}

func (b *builder) isolate(o object, v *value) (Action, string) {
	ids := b.list(v, b.known)
	pairs, text := b.s.linksOf(ids), words("isolate", names(ids))
	if len(ids) > 0 {
		b.alone(v, pairs)
	}
	if b.resets(o) {
		return Reset{once(pairs)}, text + " (reset)"
	}
	return Cut{pairs}, text
}

// resets reads how a cut is made.
func (b *builder) resets(o object) (reset bool) {
	read(o, "how", &reset, func(text string) (bool, string) {
		if text != "silent" && text != "reset" {
			return false, "silent (the default: packets vanish) or reset (connections break)"
		}
		return text == "reset", ""
	})
	return reset
}

func (b *builder) partition(_ object, v *value) (Action, string) {
	if v.kind != list || len(v.items) == 0 {
		b.at(v, "partition is a list of groups, as in [[a, b], [c, d]]")
		return nil, ""
	}
	var p Partition
	var texts []string
	seen := map[NodeID]bool{}
	for _, group := range v.items {
		ids := b.list(group, b.known)
		for _, id := range ids {
			if seen[id] {
				b.at(group, "%s is in two groups: a node is on one side", id)
			}
			seen[id] = true
		}
		p.Groups = append(p.Groups, ids)
		texts = append(texts, strings.Join(names(ids), " "))
	}
	return p, "partition " + strings.Join(texts, " | ")
}

func (b *builder) heal(_ object, v *value) (Action, string) {
	l := b.links(v, true)
	if l.all {
		return Heal{All: true}, "heal all"
	}
	return Heal{Pairs: l.pairs}, words("heal", l.texts)
}

func (b *builder) crash(o object, v *value) (Action, string) {
	ids, unsynced := b.list(v, b.known), ""
	read(o, "unsynced", &unsynced, func(text string) (string, string) {
		if text != "lose" && text != "keep" {
			return "", "lose or keep; leave it out to let the seed decide"
		}
		return text, ""
	})
	text := words("crash", names(ids))
	if unsynced != "" {
		text += map[string]string{"lose": " (unsynced lost)", "keep": " (unsynced kept)"}[unsynced]
	}
	return Crash{Nodes: ids, Lose: unsynced == "lose", Keep: unsynced == "keep"}, text
}

func (b *builder) restart(o object, v *value) (Action, string) {
	r := Restart{Nodes: b.list(v, b.known)}
	text := words("restart", names(r.Nodes))
	if o.flag("wipe", &r.Wipe); r.Wipe {
		text += " (wiped)"
	}
	return r, text
}

func (b *builder) pause(_ object, v *value) (Action, string) {
	ids := b.list(v, b.known)
	return Pause{ids}, words("pause", names(ids))
}

func (b *builder) resume(_ object, v *value) (Action, string) {
	ids := b.list(v, b.known)
	return Resume{ids}, words("resume", names(ids))
}

func (b *builder) stop(_ object, v *value) (Action, string) {
	ids := b.list(v, b.known)
	return Stop{ids}, words("stop", names(ids))
}

// setLink reads new behavior of links; what is left out is the network's.
func (b *builder) setLink(_ object, v *value) (Action, string) {
	o := b.object(v, "link", append([]string{"between"}, linkKeys...)...)
	between := o.get("between")
	if between == nil {
		o.incomplete("link does not say which: add between, as in between: a-b")
		return nil, ""
	}
	set := SetLink{Link: b.s.Network}
	b.link(o, &set.Link)
	l := b.links(between, true)
	if l.all {
		b.alone(between, l.pairs)
	}
	set.Pairs = l.pairs
	return set, words("link", append(slices.Clone(l.texts), behavior(o, set.Link)...))
}

// behavior writes the fields of l that the file gives.
func behavior(o object, l Link) (texts []string) {
	written := map[string]string{
		"delay": span(l.Delay), "jitter": span(l.Jitter),
		"loss": percent(l.Loss), "duplicate": percent(l.Duplicate), "reorder": percent(l.Reorder),
	}
	for _, key := range linkKeys {
		if o.has(key) {
			texts = append(texts, key+"="+written[key])
		}
	}
	if texts == nil {
		return []string{"as at first"}
	}
	return texts
}

func (b *builder) transfer(_ object, v *value) (Action, string) {
	to := b.object(v, "transfer", "to").get("to")
	if to == nil {
		return Transfer{}, "transfer"
	}
	id, ok := b.known(to)
	if !ok {
		return nil, ""
	}
	return Transfer{id}, "transfer to " + string(id)
}

// words joins a verb and what it is about.
func words(verb string, about []string) string {
	return strings.Join(append([]string{verb}, about...), " ")
}

// span writes a time in one unit, as people compare them: 70s, 1.5s, 200ms.
func span(d time.Duration) string {
	if d < time.Second {
		return strings.Replace(d.String(), "\u00b5s", "us", 1)
	}
	return number(d.Seconds()) + "s"
}

// percent writes parts per million.
func percent(ppm int) string { return number(float64(ppm)/10_000) + "%" }

// number writes f without exponent or needless zeros.
func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
