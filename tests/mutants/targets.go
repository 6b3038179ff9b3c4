package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// target is a package that mutants are made of.
type target struct {
	dir   string   // from the top of the tree
	files []string // nil for all
	share int      // of the mutants, by what hangs on the package
	tests []suite  // what may notice them, the fastest first
}

// suite is the tests of a package, with flags that make them the same each time and short.
type suite struct {
	dir  string
	args []string
}

// rapid are flags of tests with random cases. Their seed is fixed, so that a mutant meets the
// same cases again.
func rapid(checks string) []string {
	return []string{"-rapid.seed=1", "-rapid.nofailfile", "-rapid.checks=" + checks}
}

var targets = []target{
	{dir: "elector", share: 100, tests: []suite{
		{"elector", rapid("20")},
		{"internal/lab/sim", append(rapid("20"), "-test.run=^Test(Safe|Live|Sticky)")},
	}},
	{dir: "lsn", share: 18, tests: []suite{{"lsn", rapid("100")}}},
	{dir: "scouting", share: 16, tests: []suite{
		{"scouting", rapid("100")}, {"elector", rapid("20")},
	}},
	{dir: "cluster/internal/leadership", share: 24, tests: []suite{
		{"cluster/internal/leadership", rapid("100")},
	}},
	{dir: "cluster/internal/store", share: 24, tests: []suite{
		{"cluster/internal/store", rapid("100")},
	}},
	{dir: "netmesh", share: 28, files: []string{
		"evidence.go", "life.go", "judge.go", "certificate.go",
	}, tests: []suite{{"netmesh/fault", nil}, {"netmesh", rapid("100")}}},
}

// generate makes every mutant of the package.
func (t target) generate(root string) (all []mutant, err error) {
	dir := filepath.Join(root, t.dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		match, err := build.Default.MatchFile(dir, name)
		if err != nil {
			return nil, err
		}
		wanted := t.files == nil || slices.Contains(t.files, name)
		if !match || !wanted || !strings.HasSuffix(name, ".go") ||
			strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		mutants, err := mutate(t.dir+"/"+name, source)
		if err != nil {
			return nil, err
		}
		all = append(all, mutants...)
	}
	return all, nil
}

// shuffle orders mutants by the seed and their names, so that a change elsewhere in the code
// leaves the order of the others.
func shuffle(mutants []mutant, seed uint64) {
	rank := func(m mutant) uint64 {
		sum := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, seed), m.name...))
		return binary.LittleEndian.Uint64(sum[:])
	}
	slices.SortFunc(mutants, func(a, b mutant) int { return cmp.Compare(rank(a), rank(b)) })
}
