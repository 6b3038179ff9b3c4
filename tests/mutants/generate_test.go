package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const sample = `package p

func f(a, b int, _ string, more ...int) (n int) {
	if a < b && more != nil {
		n = max(a, 3)
	}
	log.Debug("none of this", a+b)
	return n
}

func (T) g() { done = true; n++ }

func (t T) String() string { return "x" + t.y }
`

// TestMutants shows each kind of change, as name: what is there -> what is there then.
func TestMutants(t *testing.T) {
	mutants, err := mutate("p/p.go", []byte(sample))
	require.NoError(t, err)
	var got []string
	for _, m := range mutants {
		name := strings.TrimPrefix(m.name, "p/p.go ")
		got = append(got, name+" -> "+oneLine(m.with))
	}
	require.Equal(t, []string{
		"f: return at once: f -> return *new(int)",
		"f: negate: a < b && more != nil -> !(a < b && more != nil)",
		"f: && is ||: a < b && more != nil -> ||",
		"f: left only: a < b && more != nil -> a < b",
		"f: right only: a < b && more != nil -> more != nil",
		"f: < is <=: a < b -> <=",
		"f: != is ==: more != nil -> ==",
		"f: drop: n = max(a, 3) -> _ =",
		"f: max is min: max(a, 3) -> min",
		"f: one more: 3 -> 4",
		"g: return at once: g -> return",
		"g: drop: done = true -> _ =",
		"g: other value: true -> false",
		"g: drop: n++ -> _ = 0",
		"g: other way: n++ -> --",
	}, got)
}

// TestWovenMutants: the code with all mutants in it is Go, and each line of one is known.
func TestWovenMutants(t *testing.T) {
	mutants, err := mutate("p/p.go", []byte(sample))
	require.NoError(t, err)
	w := weave(mutants)
	for name, text := range w.files {
		_, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		require.NoError(t, err, "%s", text)
	}
	text := string(w.files["p/p.go"])
	require.Contains(t, text, "if mutant__ == 6 { return f__6(a, b, (*new(string)), more...) }\n")
	require.Contains(t, text, "func f__6(a, b int, _ string, more ...int) (n int) {\n\tif a <= b &&")
	require.Contains(t, text, "if mutant__ == 11 { (*new(T)).g__11(); return }\n")
	for at, n := range w.lines {
		require.Greater(t, n, 0, at)
	}
}

func TestTheSeedChooses(t *testing.T) {
	order := func(seed uint64) (names []string) {
		mutants, err := mutate("p/p.go", []byte(sample))
		require.NoError(t, err)
		shuffle(mutants, seed)
		for _, m := range mutants {
			names = append(names, m.name)
		}
		return names
	}
	require.Equal(t, order(1), order(1))
	require.NotEqual(t, order(1), order(2))
}

func TestSurvivorsThatAreNotAsExplainedAreWrong(t *testing.T) {
	r := &report{
		known:  map[string]string{"explained": "why", "killed": "why", "gone": "why"},
		exists: map[string]bool{"explained": true, "killed": true, "new": true},
		by:     map[string]int{},
	}
	r.add(mutant{name: "explained"}, verdict{})
	require.Empty(t, r.wrong)
	r.add(mutant{name: "new"}, verdict{})
	r.add(mutant{name: "killed"}, verdict{by: "TestX"})
	err := r.finish(0)
	require.ErrorContains(t, err, "3 wrong")
	require.ErrorContains(t, err, "new\n\tsurvives, and nothing explains it")
	require.ErrorContains(t, err, "killed\n\tis explained as a survivor, but TestX kills it")
	require.ErrorContains(t, err, "gone\n\tis explained, but there is no such mutant any more")
}

func TestSurvivorsFile(t *testing.T) {
	read := func(text string) (map[string]string, error) {
		name := filepath.Join(t.TempDir(), "survivors.txt")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return readSurvivors(name)
	}
	known, err := read("# why\n\na\n\tfor a\nb\n\tfor b\n")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "for a", "b": "for b"}, known)
	for _, text := range []string{"a\nb\n\tfor b\n", "\tfor nothing\n", "a\n\t1\na\n\t2\n", "a\n"} {
		_, err := read(text)
		require.Error(t, err, text)
	}
	_, err = readSurvivors("../../" + survivorsFile)
	require.NoError(t, err)
}
