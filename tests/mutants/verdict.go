package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// verdict is what became of a mutant.
type verdict struct {
	by      string // the test that noticed it; "" if none did
	tooLong bool   // that test did not end in time
	took    time.Duration
}

// stage is some tests of a suite that run together, and how long they take with healthy code.
type stage struct {
	args []string
	took time.Duration
}

// staged is a suite whose tests are ordered: the fast ones together, then the slow ones one by
// one, the slowest last. All mutants of a target are in its binary.
type staged struct {
	suite
	binary string
	stages []stage
}

// slow is how long a test takes that runs by itself, after the fast ones.
const slow = 300 * time.Millisecond

// position matches where the compiler reports an error, in a file that box.build has named.
var position = regexp.MustCompile(`(?m)/(\w+\.go:\d+):`)

// build builds the tests of a target with the first wanted mutants that compile. It also counts
// those that do not.
func (t target) build(ctx context.Context, b *box, mutants []mutant, wanted int) (
	suites []staged, chosen []mutant, broken int, err error) {
	wrong := map[string]bool{} // by name
	for {
		chosen = chosen[:0]
		for _, m := range mutants {
			if len(chosen) < wanted && !wrong[m.name] {
				chosen = append(chosen, m)
			}
		}
		w := weave(chosen)
		_, err := b.build(ctx, t.dir, w.files)
		if err == nil {
			suites, err = t.healthy(ctx, b, w.files)
			return suites, chosen, len(wrong), err
		}
		before := len(wrong)
		for _, at := range position.FindAllStringSubmatch(err.Error(), -1) {
			if n := w.lines[at[1]]; n > 0 {
				wrong[chosen[n-1].name] = true
			}
		}
		if len(wrong) == before {
			return nil, nil, 0, err
		}
	}
}

// healthy builds the tests of a target, and runs them with no mutant, to see how long they take.
func (t target) healthy(ctx context.Context, b *box, files map[string][]byte) (
	all []staged, err error) {
	for _, s := range t.tests {
		binary, err := b.build(ctx, s.dir, files)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		out, ok := b.test(ctx, s.dir, binary, 0, 10*time.Minute, s.args...)
		if !ok {
			return nil, fmt.Errorf("%s: its tests fail before anything is changed:\n%s", s.dir, out)
		}
		took, rest := map[string]time.Duration{}, time.Since(began)
		for _, m := range passed.FindAllStringSubmatch(out, -1) {
			d, err := time.ParseDuration(m[2] + "s")
			if err != nil {
				return nil, err
			}
			if d >= slow {
				took[m[1]] = d
				rest -= d
			}
		}
		all = append(all, staged{s, binary, s.order(took, max(rest, slow))})
	}
	return all, nil
}

// order makes the stages of a suite, whose slow tests take so long and the rest together rest.
func (s suite) order(took map[string]time.Duration, rest time.Duration) []stage {
	names := slices.SortedFunc(maps.Keys(took), func(a, b string) int {
		return int(took[a] - took[b])
	})
	exactly := "^(" + strings.Join(names, "|") + ")$"
	stages := []stage{{s.args, rest}}
	if len(names) > 0 {
		stages[0].args = append(slices.Clone(s.args), "-test.skip="+exactly)
	}
	for _, name := range names {
		args := append(slices.Clone(s.args), "-test.run=^"+name+"$")
		stages = append(stages, stage{args, took[name]})
	}
	return stages
}

// timesAsLong is how many times as long as with healthy code a test may take, and 20 s.
const timesAsLong = 10

// verdictOf tries a mutant, by its number.
func verdictOf(ctx context.Context, b *box, suites []staged, number int) (verdict, error) {
	began := time.Now()
	for _, s := range suites {
		for _, stage := range s.stages {
			limit := timesAsLong*stage.took + 20*time.Second
			out, ok := b.test(ctx, s.dir, s.binary, number, limit, stage.args...)
			if ctx.Err() != nil {
				return verdict{}, ctx.Err()
			}
			if !ok {
				by := s.dir + " " + culprit(out)
				return verdict{by, strings.Contains(out, expired), time.Since(began)}, nil
			}
		}
	}
	return verdict{took: time.Since(began)}, nil
}
