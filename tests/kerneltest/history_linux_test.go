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

// history is what was told in a run; a file of it can be judged again.
type history struct {
	Records []record
	Lives   map[string][]life
	Doubt   map[string][]life
}

// keep writes all that was told, and says where.
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

// operation of the register, or of a leadership that gives out tokens.
type operation struct {
	kind string
	lsn  lsn.LSN
}

// result is what an operation led to.
type result int

const (
	unknown result = iota
	admitted
	refused
)

// fenced is a register that admits a write if its token is newer than that of every other.
var fenced = porcupine.Model{
	Init: func() any { return lsn.LSN{} },
	Step: func(state, input, output any) (bool, any) {
		newest, op := state.(lsn.LSN), input.(operation)
		newer := newest.Less(op.lsn)
		switch {
		case op.kind == read:
			return op.lsn == newest, newest
		case output == unknown && !newer, output == refused:
			return !newer, newest
		default:
			return newer, op.lsn
		}
	},
}

// rising gives out tokens, each above all before.
var rising = porcupine.Model{
	Init: func() any { return lsn.LSN{} },
	Step: func(state, input, _ any) (bool, any) {
		op := input.(operation)
		return state.(lsn.LSN).Less(op.lsn), op.lsn
	},
}

// operations are those of some kinds. What was never answered may take effect at any time
// after its call.
func operations(records []record, kinds ...string) (all []porcupine.Operation) {
	clients, sent := map[string]int{}, map[lsn.LSN]int{}
	for _, rec := range records {
		if !slices.Contains(kinds, rec.Kind) {
			continue
		}
		if i, ok := sent[rec.First]; rec.Kind == wrote && ok {
			all[i].Return, all[i].Output = int64(rec.To), admitted
			if rec.Refused {
				all[i].Output = refused
			}
			continue
		}
		if _, ok := clients[rec.Node]; !ok {
			clients[rec.Node] = len(clients)
		}
		op := porcupine.Operation{
			ClientId: clients[rec.Node], Input: operation{rec.Kind, rec.First},
			Call: int64(rec.From), Output: unknown, Return: int64(rec.To),
		}
		if rec.Kind == writes {
			op.Return, sent[rec.First] = math.MaxInt64, len(all)
		}
		all = append(all, op)
	}
	slices.SortStableFunc(all, func(a, b porcupine.Operation) int {
		return cmp.Compare(a.Call, b.Call)
	})
	return all
}

// instant is when the register is known to hold a token, or a newer one.
type instant struct {
	at  int64
	lsn lsn.LSN
}

// instants are what operations show when they return, in order of time and of tokens.
func instants(ops []porcupine.Operation, shows func(porcupine.Operation) bool) (all []instant) {
	byReturn := slices.SortedFunc(slices.Values(ops), func(a, b porcupine.Operation) int {
		return cmp.Compare(a.Return, b.Return)
	})
	for _, op := range byReturn {
		k := known(op)
		if shows(op) && (len(all) == 0 || all[len(all)-1].lsn.Less(k)) {
			all = append(all, instant{op.Return, k})
		}
	}
	return all
}

// settle bounds the time of writes of unknown fate, because each that stays open may double the
// work and the memory of the search. Once the register is known to hold a token that is not older,
// such a write changes nothing: whenever it would take effect after that, it may as well do so at
// that instant. So what is linearizable stays so, and nothing else becomes so.
func settle(ops []porcupine.Operation) {
	newest := instants(ops, func(porcupine.Operation) bool { return true })
	for i := range ops {
		in := ops[i].Input.(operation)
		if known(ops[i]) == in.lsn {
			continue
		}
		at, _ := slices.BinarySearchFunc(newest, in.lsn, func(k instant, t lsn.LSN) int {
			return k.lsn.Compare(t)
		})
		if at < len(newest) {
			ops[i].Return = max(ops[i].Call, newest[at].at)
		}
	}
}

// seen leaves out writes of unknown fate that nobody has seen: no read has their token, and no
// write was refused that might have been refused because of them. Such a write may have taken
// effect or not, without a difference to any other operation.
func seen(ops []porcupine.Operation) (all []porcupine.Operation) {
	wasRead := map[lsn.LSN]bool{}
	for _, op := range ops {
		if in := op.Input.(operation); in.kind == read {
			wasRead[in.lsn] = true
		}
	}
	held := instants(ops, func(op porcupine.Operation) bool { return op.Output != refused })
	var open []porcupine.Operation // refused, and no other operation had to lead to that
	for _, op := range ops {
		after, _ := slices.BinarySearchFunc(held, op.Call, func(i instant, at int64) int {
			return cmp.Compare(i.at, at)
		})
		if op.Output == refused && (after == 0 || held[after-1].lsn.Less(known(op))) {
			open = append(open, op)
		}
	}
	for _, op := range ops {
		in := op.Input.(operation)
		matters := func(x porcupine.Operation) bool {
			return x.Return >= op.Call && !in.lsn.Less(known(x))
		}
		if known(op) == in.lsn || wasRead[in.lsn] || slices.ContainsFunc(open, matters) {
			all = append(all, op)
		}
	}
	return all
}

// known returns the token that the state has at least once the operation has returned.
func known(op porcupine.Operation) lsn.LSN {
	if in := op.Input.(operation); in.kind != writes || op.Output != unknown {
		return in.lsn // if the write was refused, there was one that is not older
	}
	return lsn.LSN{}
}

// check judges operations in order of their calls. At an instant at which none is open the state
// is the newest token that is known, so what comes before and after is judged apart: the work and
// the memory of a search grow with the square of its length, at least.
func check(model porcupine.Model, ops []porcupine.Operation) porcupine.CheckResult {
	ops = seen(ops)
	settle(ops)
	end := time.Now().Add(5 * time.Minute)
	for newest := (lsn.LSN{}); len(ops) > 0; {
		from, until, n := newest, int64(0), 0
		for n < len(ops) && (n == 0 || ops[n].Call <= until) {
			until = max(until, ops[n].Return)
			if k := known(ops[n]); newest.Less(k) {
				newest = k
			}
			n++
		}
		model.Init = func() any { return from }
		got := porcupine.CheckOperationsTimeout(model, ops[:n], max(time.Until(end), 1))
		if got != porcupine.Ok {
			return got
		}
		ops = ops[n:]
	}
	return porcupine.Ok
}

// notLinearizable judges what was written, and with which tokens.
func notLinearizable(records []record) (found []string) {
	for what, c := range map[string]struct {
		model porcupine.Model
		kinds []string
	}{
		"the register": {fenced, []string{writes, wrote, read}},
		"the tokens":   {rising, []string{token}},
	} {
		ops := operations(records, c.kinds...)
		if got := check(c.model, ops); got != porcupine.Ok {
			found = append(found,
				fmt.Sprintf("%s: %d operations are linearizable: %s", what, len(ops), got))
		}
	}
	return found
}

// The verdict on random histories is the same whether what was not answered has a bound, and the
// history is cut, or not.
func TestBoundsAndCutsChangeNoVerdict(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 0))
	var verdicts [2]int // wrong, right
	bounded, left := 0, 0
	for range 3000 {
		ops := randomHistory(rng)
		before := slices.Clone(ops)
		want, right := porcupine.CheckOperationsTimeout(fenced, before, 0), 0
		require.Equal(t, want, check(fenced, ops), "%v", before)
		if want == porcupine.Ok {
			right = 1
		}
		verdicts[right]++
		rest := seen(before)
		left += len(before) - len(rest)
		again := slices.Clone(rest)
		if settle(again); !slices.Equal(rest, again) {
			bounded++
		}
	}
	t.Logf("wrong and right histories: %d, with a write to bound: %d, writes left out: %d",
		verdicts, bounded, left)
	require.NotContains(t, append(verdicts[:], bounded, left), 0)
}

// randomHistory is of a register that answers wrongly once in twenty times.
func randomHistory(rng *rand.Rand) (ops []porcupine.Operation) {
	var newest uint64
	for call := range 1 + rng.Int64N(10) {
		token, honest := newest+rng.Uint64N(4), rng.IntN(20) > 0
		op := porcupine.Operation{Call: 2 * call, Return: 2*call + rng.Int64N(6)}
		kind, fate := writes, result(rng.IntN(3))
		switch {
		case rng.IntN(3) == 0:
			kind, fate = read, unknown
			if honest {
				token = newest
			}
		case fate == unknown:
			op.Return = math.MaxInt64
			newest = max(newest, token*rng.Uint64N(2)) // it arrives, or does not
		case honest && token > newest:
			fate, newest = admitted, token
		case honest:
			fate = refused
		}
		op.Input, op.Output = operation{kind, lsn.LSN{Counter: max(token, 1)}}, fate
		ops = append(ops, op)
	}
	return ops
}

// TestTheJudgeOfHistoriesFindsWhatIsWrong plants violations into a history that has none.
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
	at("b", writes, 14, 0, 4, false) // its answer is lost
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
