package kerneltest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// change is an operation on the election's record.
type change struct{ kind, base, value string }

// compareAndSet is the record as a register with compare-and-set. The state is the value; the
// output of a change is whether it was written.
var compareAndSet = porcupine.Model{
	Step: func(state, input, output any) (bool, any) {
		value, op := state.(string), input.(change)
		switch fits := op.base == anyValue || op.base == value; {
		case op.kind == asLeader:
			return op.value == value, value
		case output == false:
			return !fits, value
		default:
			return fits, op.value
		}
	},
}

// versions is what is known of the values of a record.
type versions struct {
	answers map[string]record       // to Publish, by value
	seen    map[string]elector.Time // by when a value was committed for certain
	wrong   []string
}

// versionsOf collects what the records say of each value, and what is wrong with it: an LSN has
// one content, a process never shows an older version than before, and nothing is seen that nobody
// published, or of which Publish said that it was not written.
func versionsOf(records []record) *versions {
	v := &versions{answers: map[string]record{}, seen: map[string]elector.Time{"": 0}}
	begun, content, newest := map[string]bool{"": true}, map[string]string{}, map[string]lsn.LSN{}
	see := func(value string, at elector.Time) {
		if before, ok := v.seen[value]; !ok || at < before {
			v.seen[value] = at
		}
	}
	is := func(what, now string) {
		if before, ok := content[what]; ok && before != now {
			v.wrong = append(v.wrong, fmt.Sprintf("%s is %s and %s", what, before, now))
		}
		content[what] = now
	}
	for _, rec := range records {
		process := fmt.Sprint(rec.Node, rec.Process)
		switch rec.Kind {
		case publishes:
			if begun[rec.Value] = true; rec.Base != anyValue {
				see(rec.Base, rec.From) // the node showed it
			}
		case published:
			if v.answers[rec.Value] = rec; rec.Outcome == committed {
				see(rec.Value, rec.To)
			}
		case asLeader, shows:
			see(rec.Value, cmp.Or(rec.To, rec.At))
			is("record "+rec.Last.String(), rec.First.String())
			is("value "+rec.First.String(), rec.Value)
			is(rec.Value, "value "+rec.First.String())
		}
		if rec.Kind == shows {
			if rec.Last.Less(newest[process]) {
				v.wrong = append(v.wrong, fmt.Sprintf("%s shows %s after %s", process, rec.Last,
					newest[process]))
			}
			newest[process] = rec.Last
		}
	}
	for value := range v.seen {
		answer := v.answers[value].Outcome
		if !begun[value] || answer == conflict || answer == refused {
			v.wrong = append(v.wrong, fmt.Sprintf("%q was seen, and Publish said %q", value, answer))
		}
	}
	return v
}

// unseen is for how long a value of which nothing is known may turn up and disappear again without
// being seen, so that nothing is concluded from a conflict.
const unseen = elector.Time(time.Minute)

// changes returns the operations on the record, in order of their calls. A write takes effect
// before the value is seen. One that nobody has ever seen is left out: it was not written, or was
// overwritten before anybody looked. It may be the reason for a conflict, though.
func (v *versions) changes(records []record) (all []porcupine.Operation) {
	clients, lost := map[string]int{}, []elector.Time(nil)
	for _, rec := range records {
		_, ok := v.seen[rec.Value]
		if rec.Kind == publishes && !ok && v.answers[rec.Value].Outcome == "" {
			lost = append(lost, rec.From)
		}
	}
	for _, rec := range records {
		if _, ok := clients[rec.Node]; !ok {
			clients[rec.Node] = len(clients)
		}
		answer := v.answers[rec.Value]
		switch seen, ok := v.seen[rec.Value]; {
		case rec.Kind == asLeader:
		case rec.Kind != publishes || !ok && answer.Outcome != conflict:
			continue
		case ok:
			rec.To = seen
		default:
			rec.To = answer.To
			if slices.ContainsFunc(lost, func(at elector.Time) bool {
				return at < rec.To && rec.From-at < unseen
			}) {
				continue
			}
		}
		all = append(all, porcupine.Operation{
			ClientId: clients[rec.Node], Input: change{rec.Kind, rec.Base, rec.Value},
			Output: answer.Outcome != conflict, Call: int64(rec.From), Return: int64(rec.To),
		})
	}
	slices.SortStableFunc(all, func(a, b porcupine.Operation) int {
		return cmp.Compare(a.Call, b.Call)
	})
	return all
}

// atRead cuts the history of the record after a read beside which nothing else is under way: it
// shows the state.
func atRead(_ any, ops []porcupine.Operation) (n int, after any) {
	for until := int64(0); n < len(ops); {
		op := ops[n]
		n++
		read := op.Input.(change)
		if read.kind == asLeader && op.Call > until && (n == len(ops) || ops[n].Call > op.Return) {
			return n, read.value
		}
		until = max(until, op.Return)
	}
	return n, nil
}

// unlike returns what is wrong with the history of the record.
func unlike(records []record) []string {
	v := versionsOf(records)
	ops := v.changes(records)
	if got := check(compareAndSet, "", ops, atRead); got != porcupine.Ok {
		v.wrong = append(v.wrong, fmt.Sprintf("the record: %d operations are linearizable: %s",
			len(ops), got))
	}
	return v.wrong
}

// TestTheJudgeOfTheRecordFindsWhatIsWrong adds violations to a history without one.
func TestTheJudgeOfTheRecordFindsWhatIsWrong(t *testing.T) {
	var records []record
	add := func(node, kind, value, base string, from, to, counter int, outcome string) {
		r := record{Node: node, Kind: kind, Value: value, Base: base, Outcome: outcome}
		r.From, r.To, r.At = elector.Time(from), elector.Time(to), elector.Time(max(from, to))
		if counter > 0 {
			r.First = lsn.LSN{Term: 1, Counter: uint64(counter)}
			r.Last = r.First
		}
		records = append(records, r)
	}
	publish := func(node, value, base string, from, to int, outcome string) {
		add(node, publishes, value, base, from, 0, 0, "")
		add(node, published, value, base, 0, to, 0, outcome)
	}
	add("a", asLeader, "", "", 1, 2, 0, "")
	publish("a", "a1", "", 3, 6, committed)
	publish("b", "b1", "", 4, 7, conflict)
	add("a", asLeader, "a1", "", 8, 9, 1, "")
	publish("b", "b2", anyValue, 10, 11, "") // and has an effect later
	publish("c", "c1", "a1", 12, 15, committed)
	add("a", asLeader, "c1", "", 16, 17, 2, "")
	add("c", shows, "c1", "", 0, 18, 2, "")
	add("a", asLeader, "b2", "", 19, 20, 3, "")
	publish("b", "b3", anyValue, 21, 22, "") // is never seen
	publish("b", "b4", "b2", 23, 24, conflict)
	publish("c", "c2", anyValue, 25, 26, refused)
	add("c", shows, "b2", "", 0, 27, 3, "")
	whole := slices.Clone(records)
	require.Empty(t, unlike(whole))
	for name, plant := range map[string]func(){
		"a read is stale":               func() { add("a", asLeader, "c1", "", 28, 29, 2, "") },
		"a write is lost":               func() { add("a", asLeader, "a1", "", 16, 17, 1, "") },
		"two replace one value":         func() { publish("b", "b5", "a1", 21, 27, committed) },
		"a conflict without a reason":   func() { publish("a", "a2", "a1", 9, 9, conflict) },
		"a node shows an older version": func() { add("c", shows, "c1", "", 0, 29, 2, "") },
		"a node shows what was not":     func() { add("b", shows, "c3", "", 0, 29, 4, "") },
		"a node shows what was refused": func() { add("b", shows, "c2", "", 0, 29, 4, "") },
		"an LSN has two values": func() {
			publish("b", "b6", anyValue, 28, 30, "")
			add("b", shows, "b6", "", 0, 29, 3, "")
		},
		"a value has two LSNs": func() { add("c", shows, "b2", "", 0, 29, 4, "") },
		"what was not committed is shown": func() {
			publish("b", "b7", "a1", 12, 30, "")
			add("b", shows, "b7", "", 0, 31, 5, "")
		},
		"a node shows it before its write": func() { add("b", shows, "c1", "", 0, 11, 2, "") },
	} {
		t.Run(name, func(t *testing.T) {
			records = slices.Clone(whole)
			plant()
			require.NotEmpty(t, unlike(records))
		})
	}
}
