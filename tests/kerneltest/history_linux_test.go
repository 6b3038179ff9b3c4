package kerneltest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// history is the records of a run. It can be saved to a file, and judged again.
type history struct {
	Records []record
	Lives   map[string][]life
	Doubt   map[string][]life
}

// keep saves the history, and returns the file.
func (r *rig) keep(pattern string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := os.CreateTemp("", pattern)
	require.NoError(r.t, err)
	defer f.Close()
	w := bufio.NewWriter(f)
	require.NoError(r.t, json.NewEncoder(w).Encode(history{r.records, r.lives, r.doubt}))
	require.NoError(r.t, w.Flush())
	return f.Name()
}

// operation is one of the register, or the issue of a token.
type operation struct {
	kind string
	lsn  lsn.LSN
}

// fenced is a register that admits a write if its token is newer than all before. The output of a
// write says whether it was admitted.
var fenced = porcupine.Model{
	Step: func(state, input, output any) (bool, any) {
		newest, op := state.(lsn.LSN), input.(operation)
		switch newer := newest.Less(op.lsn); {
		case op.kind == read:
			return op.lsn == newest, newest
		case output == false:
			return !newer, newest
		default:
			return newer, op.lsn
		}
	},
}

// rising issues tokens, each above all before.
var rising = porcupine.Model{
	Step: func(state, input, _ any) (bool, any) {
		op := input.(operation)
		return state.(lsn.LSN).Less(op.lsn), op.lsn
	},
}

// operations returns those of some kinds, in order of their calls. Of the writes it returns those
// that reached the register.
func operations(records []record, kinds ...string) (all []porcupine.Operation) {
	clients, came := map[string]int{}, map[lsn.LSN]record{}
	for _, rec := range records {
		if _, ok := clients[rec.Node]; !ok {
			clients[rec.Node] = len(clients)
		}
		if rec.Kind == wrote {
			came[rec.First] = rec
		}
	}
	for _, rec := range records {
		answer, ok := came[rec.First]
		switch {
		case !slices.Contains(kinds, rec.Kind), rec.Kind == writes && !ok:
			continue
		case rec.Kind == writes:
			rec.To, rec.Refused = answer.To, answer.Refused
		}
		all = append(all, porcupine.Operation{
			ClientId: clients[rec.Node], Input: operation{rec.Kind, rec.First}, Output: !rec.Refused,
			Call: int64(rec.From), Return: int64(rec.To),
		})
	}
	slices.SortStableFunc(all, func(a, b porcupine.Operation) int {
		return cmp.Compare(a.Call, b.Call)
	})
	return all
}

// check judges operations, in parts: time and memory of porcupine grow at least with the square of
// the length. cut returns how many operations the first part has, and the state after it.
func check(model porcupine.Model, from any, ops []porcupine.Operation,
	cut func(from any, ops []porcupine.Operation) (n int, after any)) porcupine.CheckResult {
	for end := time.Now().Add(5 * time.Minute); len(ops) > 0; {
		n, after := cut(from, ops)
		model.Init = func() any { return from }
		got := porcupine.CheckOperationsTimeout(model, ops[:n], max(time.Until(end), 1))
		if got != porcupine.Ok {
			return got
		}
		ops, from = ops[n:], after
	}
	return porcupine.Ok
}

// atRest cuts the history of the register. When an operation returns, the state is at least its
// token: a write was admitted or refused because of a newer one, and a read saw it. So at an
// instant at which no operation is under way, the state is the newest token so far.
func atRest(from any, ops []porcupine.Operation) (n int, after any) {
	newest, until := from.(lsn.LSN), int64(0)
	for n < len(ops) && (n == 0 || ops[n].Call <= until) {
		until = max(until, ops[n].Return)
		if shown := ops[n].Input.(operation).lsn; newest.Less(shown) {
			newest = shown
		}
		n++
	}
	return n, newest
}

// notLinearizable judges the operations of the register, and the tokens.
func notLinearizable(records []record) (found []string) {
	for what, c := range map[string]struct {
		model porcupine.Model
		kinds []string
	}{
		"the register": {fenced, []string{writes, read}},
		"the tokens":   {rising, []string{token}},
	} {
		ops := operations(records, c.kinds...)
		if got := check(c.model, lsn.LSN{}, ops, atRest); got != porcupine.Ok {
			found = append(found,
				fmt.Sprintf("%s: %d operations are linearizable: %s", what, len(ops), got))
		}
	}
	return found
}

// TestCutsChangeNoVerdict compares the verdicts on random histories with and without cuts.
func TestCutsChangeNoVerdict(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 0))
	whole := fenced
	whole.Init = func() any { return lsn.LSN{} }
	verdicts := map[porcupine.CheckResult]int{}
	for range 3000 {
		ops := randomHistory(rng)
		want := porcupine.CheckOperationsTimeout(whole, slices.Clone(ops), 0)
		require.Equal(t, want, check(fenced, lsn.LSN{}, ops, atRest), "%v", ops)
		verdicts[want]++
	}
	t.Log(verdicts)
	require.Len(t, verdicts, 2)
}

// randomHistory is one of a register that answers wrongly once in twenty times.
func randomHistory(rng *rand.Rand) (ops []porcupine.Operation) {
	var newest uint64
	for call := range 1 + rng.Int64N(10) {
		token, honest := newest+rng.Uint64N(4), rng.IntN(20) > 0
		op := porcupine.Operation{Call: 2 * call, Return: 2*call + rng.Int64N(6)}
		kind, admitted := writes, token > newest == honest
		switch {
		case rng.IntN(3) == 0:
			kind = read
			if honest {
				token = newest
			}
		case admitted:
			newest = max(newest, token)
		}
		op.Input, op.Output = operation{kind, lsn.LSN{Counter: max(token, 1)}}, admitted
		ops = append(ops, op)
	}
	return ops
}

// TestTheJudgeOfHistoriesFindsWhatIsWrong adds violations to a history without one.
func TestTheJudgeOfHistoriesFindsWhatIsWrong(t *testing.T) {
	r := &rig{lives: map[string][]life{"a": {{0, math.MaxInt64}}}}
	at := func(node, kind string, from, to, counter int, no bool) {
		rec := record{Node: node, Kind: kind, Refused: no, Process: 1}
		rec.From, rec.To, rec.At = elector.Time(from), elector.Time(to), elector.Time(max(from, to))
		rec.First = lsn.LSN{Term: 1, Counter: uint64(counter)}
		r.records = append(r.records, rec)
	}
	at("a", token, 1, 2, 1, false)
	at("b", token, 3, 4, 2, false)
	at("b", writes, 5, 0, 2, false)
	at("b", wrote, 0, 6, 2, false)
	at("a", writes, 7, 0, 1, false) // comes late ...
	at("a", wrote, 0, 8, 1, true)   // ... and is refused
	at("", read, 10, 11, 2, false)
	at("b", token, 12, 13, 4, false)
	at("b", writes, 14, 0, 4, false)
	at("", wrote, 0, 15, 4, false)
	at("a", writes, 16, 0, 5, false) // never arrives
	at("", read, 20, 21, 4, false)
	at("a", leads, 1, 10, 0, false)
	at("b", answer, 9, 11, 0, false) // may be true of an instant after the claim
	at("a", runs, 1, 10, 0, false)
	at("b", runs, 11, 20, 0, false)
	whole := slices.Clone(r.records)
	wrong := func() []string {
		v := r.judge(0)
		return append(v.wrong(), notLinearizable(r.records)...)
	}
	require.Empty(t, wrong())
	for name, plant := range map[string]func(){
		"a stale write is admitted":   func() { r.records[5].Refused = false },
		"a fresh write is refused":    func() { r.records[3].Refused = true },
		"a read forgets a write":      func() { at("", read, 22, 23, 2, false) },
		"a token comes twice":         func() { at("a", token, 14, 15, 4, false) },
		"a token falls":               func() { at("a", token, 14, 15, 3, false) },
		"an answer of another's time": func() { at("b", answer, 5, 6, 0, false) },
		"leaderships overlap":         func() { at("b", leads, 9, 12, 0, false) },
		"works of commands overlap":   func() { at("a", runs, 19, 21, 0, false) },
		"a node alive is called dead": func() {
			at("b", proven, 22, 0, 0, false)
			r.records[len(r.records)-1].Peer = "a"
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.records = slices.Clone(whole)
			plant()
			require.Len(t, wrong(), 1)
		})
	}
}
