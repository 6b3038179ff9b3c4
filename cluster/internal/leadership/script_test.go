package leadership_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

const testdata = "../../../testdata/leadership"

// TestScripts runs every script under testdata/leadership. README.md there explains the
// language; -rewrite writes what the machine did into the scripts.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, testdata, func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		var m *leadership.Machine
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "machine":
				m = leadership.New(leadership.Config{
					MayStand: !d.HasArg("not-candidate"), AwaitCampaign: d.HasArg("await-campaign"),
					Margin: 250 * time.Millisecond, Lease: time.Second,
				})
				return describe(m.State())
			case "do":
				return play(t, m, d.Input)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

// play takes one input a line, "<time> <what>", and shows the effects and the state.
func play(t *testing.T, m *leadership.Machine, script string) string {
	var out strings.Builder
	for line := range strings.Lines(script) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		at, err := time.ParseDuration(words[0])
		require.NoError(t, err, line)
		e := m.Step(elector.Time(at), parse(t, words[1:]))
		fmt.Fprintf(&out, "%s\n%s  = %s", strings.Join(words, " "), show(e), describe(m.State()))
	}
	return out.String()
}

// plain are the inputs of one word.
var plain = map[string]leadership.Input{
	"resign": leadership.Resign{}, "fit": leadership.Fitness{},
	"unfit":     leadership.Fitness{Unfit: "disk full"},
	"candidate": leadership.Candidacy{MayStand: true}, "no-candidate": leadership.Candidacy{},
}

// parse returns the input that the words of a line mean.
func parse(t *testing.T, words []string) leadership.Input {
	if len(words) == 0 {
		return leadership.Tick{}
	}
	has := func(word string) bool { return slices.Contains(words, word) }
	option := func(key string) (value string) {
		for _, w := range words {
			if v, ok := strings.CutPrefix(w, key+"="); ok {
				value = v
			}
		}
		return value
	}
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(cmp.Or(text, "0"), 10, 64)
		require.NoError(t, err, words)
		return n
	}
	moment := func(text string) elector.Time {
		if text == "never" {
			return elector.Never
		}
		d, err := time.ParseDuration(text)
		require.NoError(t, err, words)
		return elector.Time(d)
	}
	reason := func() elector.Reason {
		for r := elector.ReasonNone; r <= elector.Resigned; r++ {
			if r.String() == words[1] {
				return r
			}
		}
		require.Fail(t, "no reason", words[1])
		return 0
	}
	id := func() leadership.ID { return leadership.ID(number(words[1])) }
	switch words[0] {
	case "campaign":
		return leadership.Campaign{ID: id(), After: leadership.ID(number(option("after")))}
	case "give-up":
		return leadership.GiveUp{ID: id()}
	case "release":
		return leadership.Release{ID: id()}
	case "prefer":
		return leadership.Prefer{Priority: int(number(words[1]))}
	case "close":
		return leadership.Close{Abrupt: has("abrupt")}
	case "lease":
		return leadership.Lease{
			Term: lsn.Term(number(option("term"))), End: moment(option("until")),
			Handover: has("handover"), Pending: has("pending"),
		}
	case "stop-work":
		return leadership.StopWork{By: moment(option("by")), Why: reason()}
	case "lost":
		return leadership.Lost{Why: reason()}
	}
	require.Contains(t, plain, words[0])
	return plain[words[0]]
}

// show tells the effects of a step, one a line.
func show(e leadership.Effects) string {
	var out strings.Builder
	say := func(is bool, format string, args ...any) {
		if is {
			fmt.Fprintf(&out, "  "+format+"\n", args...)
		}
	}
	say(e.Refused != 0, "refuse %d: %s", e.Refused, e.Refusal)
	say(e.Stop != elector.ReasonNone, "stop %d %s", e.Holder, e.Stop)
	say(e.Over, "over %d", e.Holder)
	say(e.Overdue, "overdue %d", e.Holder)
	say(e.Granted != 0, "grant %d", e.Granted)
	for _, in := range e.Requests {
		say(true, "elector: %s", strings.TrimPrefix(fmt.Sprintf("%T%+v", in, in), "elector."))
	}
	say(e.Wake != elector.Never, "wake %s", e.Wake)
	return out.String()
}

// describe tells a state in one line.
func describe(s leadership.State) string {
	var b strings.Builder
	b.WriteString(s.Phase.String())
	add := func(is bool, format string, args ...any) {
		if is {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	add(s.ID != 0, "%d", s.ID)
	add(s.Phase >= leadership.Serving && s.Deadline == elector.Never, "until=never")
	add(s.Phase >= leadership.Serving && s.Deadline != elector.Never, "until=%s", s.Deadline)
	add(s.Term != 0 && s.LeaseEnd == elector.Never, "leads term=%d", s.Term)
	add(s.Term != 0 && s.LeaseEnd != elector.Never, "leads term=%d until=%s", s.Term, s.LeaseEnd)
	add(!s.Able, "unable")
	add(s.Unfit != "", "unfit")
	add(!s.MayStand, "no-candidate")
	add(s.Priority != 0, "priority=%d", s.Priority)
	add(s.Resigned, "resigned")
	add(s.Closed, "closed")
	return b.String() + "\n"
}
