package kerneltest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// verdict is the violations and some figures of a part of a run.
type verdict struct {
	FalseProofs []string
	TwoLead     []span // by IsLeader
	TwoWork     []span // by tokens of guarded work
	TwoRun      []span // commands of bmqnode exec
	Disorder    []string
	Unlawful    []string // transitions
	Proofs      int      // of deaths, all
	Lost        int      // links
}

// span is a time in which two nodes led, worked or ran at once.
type span struct {
	from, to elector.Time
	nodes    string
}

func (v *verdict) add(w verdict) {
	v.FalseProofs = append(v.FalseProofs, w.FalseProofs...)
	v.TwoLead, v.TwoWork = append(v.TwoLead, w.TwoLead...), append(v.TwoWork, w.TwoWork...)
	v.Disorder, v.TwoRun = append(v.Disorder, w.Disorder...), append(v.TwoRun, w.TwoRun...)
	v.Unlawful = append(v.Unlawful, w.Unlawful...)
	v.Proofs, v.Lost = v.Proofs+w.Proofs, v.Lost+w.Lost
}

// wrong returns the first violations of each kind, as text.
func (v *verdict) wrong() (all []string) {
	some := func(found []string) { all = append(all, found[:min(5, len(found))]...) }
	some(v.FalseProofs)
	some(v.Disorder)
	some(v.Unlawful)
	for _, spans := range [][]span{v.TwoLead, v.TwoWork, v.TwoRun} {
		var found []string
		for _, s := range spans {
			found = append(found, fmt.Sprintf("%s both lead or work at %.4f for %s",
				s.nodes, float64(s.from)/1e9, s.to.Sub(s.from)))
		}
		some(found)
	}
	return all
}

func longest(spans []span) (most time.Duration) {
	for _, s := range spans {
		most = max(most, s.to.Sub(s.from))
	}
	return most
}

// judge judges the records since from.
func (r *rig) judge(from elector.Time) (v verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kinds := map[string][]record{}
	links := map[string]elector.Time{} // when the newest link of a pair was made
	for _, rec := range r.records {
		pair := rec.Node + " " + rec.Peer
		switch {
		case rec.Kind == connected:
			links[pair] = rec.At
		case rec.At < from || rec.To != 0 && rec.To < from:
		case rec.Kind == lost:
			v.Lost++
		case rec.Kind == proven:
			v.Proofs++
			if alive(r.lives[rec.Peer], links[pair], rec.At) && !within(r.doubt[rec.Peer], rec.At) {
				v.FalseProofs = append(v.FalseProofs,
					fmt.Sprintf("%s calls %s dead at %.4f, and it lives", rec.Node, rec.Peer, float64(rec.At)/1e9))
			}
		default:
			kinds[rec.Kind] = append(kinds[rec.Kind], rec)
		}
	}
	v.TwoLead, v.TwoWork = overlaps(kinds[leads]), overlaps(kinds[works])
	v.TwoLead = append(v.TwoLead, contradicted(kinds[answer], kinds[leads])...)
	v.TwoRun = overlaps(kinds[runs])
	v.Unlawful = unlawful(r.records)
	v.Disorder = disorder(kinds[works])
	return v
}

// alive reports whether the node that was linked at one moment is alive at another.
func alive(lives []life, linked, at elector.Time) bool {
	for _, l := range slices.Backward(lives) {
		if l.From <= linked {
			return l.To > at
		}
	}
	return true // it was never seen: nothing can be proven
}

func within(spans []life, at elector.Time) bool {
	return slices.ContainsFunc(spans, func(l life) bool { return l.From <= at && at <= l.To })
}

// contradicted returns the times at which a node answered that it leads while another one led. Both
// arguments are in order of From.
func contradicted(answers, claims []record) (found []span) {
	for node, led := range whole(claims) {
		for _, a := range answers {
			i, _ := slices.BinarySearchFunc(led, a.From, func(l life, at elector.Time) int {
				return cmp.Compare(l.To, at)
			})
			if a.Node != node && i < len(led) && led[i].From < a.From && a.To < led[i].To {
				found = append(found, span{a.From, a.To, node + " and, for an instant, " + a.Node})
			}
		}
	}
	return found
}

// whole joins adjacent claims of each node.
func whole(claims []record) map[string][]life {
	joined := map[string][]life{}
	for _, c := range claims {
		led := joined[c.Node]
		if n := len(led); n > 0 && c.From <= led[n-1].To {
			led[n-1].To = max(led[n-1].To, c.To)
		} else {
			joined[c.Node] = append(led, life{c.From, c.To})
		}
	}
	return joined
}

// overlaps returns the times at which the claims of two nodes overlap.
func overlaps(claims []record) (found []span) {
	slices.SortStableFunc(claims, func(a, b record) int { return cmp.Compare(a.From, b.From) })
	newest := map[string]record{} // of each node, what goes on longest
	for _, c := range claims {
		for node, o := range newest {
			to := min(o.To, c.To)
			if node == c.Node || to <= c.From {
				continue
			}
			s := span{c.From, to, min(node, c.Node) + " and " + max(node, c.Node)}
			if i := len(found) - 1; i >= 0 && found[i].nodes == s.nodes && s.from <= found[i].to {
				found[i].to = max(found[i].to, s.to)
			} else {
				found = append(found, s)
			}
		}
		if c.To > newest[c.Node].To {
			newest[c.Node] = c
		}
	}
	return found
}

// disorder returns the tokens that were taken after a greater one.
func disorder(claims []record) (found []string) {
	ends := slices.Clone(claims)
	slices.SortFunc(ends, func(a, b record) int { return cmp.Compare(a.To, b.To) })
	slices.SortFunc(claims, func(a, b record) int { return cmp.Compare(a.From, b.From) })
	var greatest record // of those that had ended
	for _, c := range claims {
		for len(ends) > 0 && ends[0].To <= c.From {
			if greatest.Last.Less(ends[0].Last) {
				greatest = ends[0]
			}
			ends = ends[1:]
		}
		if !greatest.Last.Less(c.First) {
			found = append(found, fmt.Sprintf("%s takes token %s at %.4f, %s had %s before",
				c.Node, c.First, float64(c.From)/1e9, greatest.Node, greatest.Last))
		}
	}
	return found
}

// table sums up the verdicts on each kind of trial.
type table struct {
	head  string
	kinds []string
	rows  map[string]*row
}

type row struct {
	verdict
	trials, bad int
}

func (b *table) add(v verdict, kind string) {
	if b.rows == nil {
		b.rows = map[string]*row{}
	}
	if b.rows[kind] == nil {
		b.rows[kind] = &row{}
		b.kinds = append(b.kinds, kind)
	}
	x := b.rows[kind]
	x.add(v)
	x.trials++
	if len(v.TwoLead) > 0 {
		x.bad++
	}
}

// String has a line for each kind.
func (b *table) String() string {
	var s strings.Builder
	w := tabwriter.NewWriter(&s, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s\ttrials\tlinks lost\tproofs\tfalse\t"+
		"two leaders\tlongest\tboth work, longest\n", b.head)
	for _, kind := range b.kinds {
		x := b.rows[kind]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n",
			kind, x.trials, x.Lost, x.Proofs, len(x.FalseProofs), x.bad,
			longest(x.TwoLead).Round(time.Millisecond), longest(x.TwoWork).Round(time.Millisecond))
	}
	w.Flush()
	return s.String()
}

func TestTheJudgeFindsWhatIsWrong(t *testing.T) {
	at := func(node, kind string, from, to elector.Time, first, last uint64) record {
		r := record{Node: node, Kind: kind, At: to, From: from, To: to}
		r.First.Term, r.First.Counter, r.Last.Term, r.Last.Counter = 1, first, 1, last
		return r
	}
	r := &rig{
		lives: map[string][]life{"a": {{1, 50}, {60, elector.Never}}},
		records: []record{
			{Node: "b", Kind: connected, At: 10, Peer: "a"},
			{Node: "b", Kind: proven, At: 49, Peer: "a"}, // it still lives
			{Node: "b", Kind: proven, At: 55, Peer: "a"},
			{Node: "b", Kind: proven, At: 65, Peer: "a"}, // of the process before
			{Node: "b", Kind: connected, At: 66, Peer: "a"},
			{Node: "b", Kind: proven, At: 67, Peer: "a"}, // of the new one
			at("a", leads, 10, 20, 0, 0), at("b", leads, 20, 30, 0, 0), at("c", leads, 27, 29, 0, 0),
			at("c", leads, 29, 40, 0, 0), at("a", works, 10, 20, 5, 9), at("b", works, 20, 30, 8, 12),
			at("c", works, 30, 40, 13, 14),
		},
	}
	v := r.judge(0)
	require.Len(t, v.FalseProofs, 2)
	require.Equal(t, []span{{27, 30, "b and c"}}, v.TwoLead)
	require.Empty(t, v.TwoWork)
	require.Len(t, v.Disorder, 1)
	require.Contains(t, v.Disorder[0], "b takes token 1.8")
	require.Equal(t, 4, v.Proofs)
}
