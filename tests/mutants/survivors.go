package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// survivorsFile explains, from the top of the tree, each mutant that no test can notice: a line
// with its name, and one with the reason, behind a tab. What begins with # is a comment.
const survivorsFile = "testdata/mutants/survivors.txt"

func readSurvivors(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	known, name := map[string]string{}, ""
	for i, line := range strings.Split(string(text), "\n") {
		why, explains := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || line[0] == '#':
		case !explains && name == "" && known[line] == "":
			name = line
		case explains && name != "" && why != "":
			known[name], name = why, ""
		default:
			return nil, fmt.Errorf("%s:%d: want the name of a mutant, once, and below it a tab "+
				"and why it survives, not %q", path, i+1, line)
		}
	}
	if name != "" {
		return nil, fmt.Errorf("%s: nothing explains the last, %s", path, name)
	}
	return known, nil
}

// report is what became of the mutants.
type report struct {
	known     map[string]string // why a mutant survives, by its name
	exists    map[string]bool   // names of all that can be made
	counts    [outcomes]int
	by        map[string]int // how many a test killed
	explained int
	broken    int      // did not compile
	wrong     []string // what fails the command
}

// add tells what became of one.
func (r *report) add(m mutant, v verdict) {
	r.counts[v.outcome]++
	if r.by == nil {
		r.by = map[string]int{}
	}
	why := r.known[m.name]
	switch {
	case v.outcome == killed || v.outcome == tookTooLong:
		r.by[v.by]++
		fmt.Printf("%-9s %s (%s, %s)\n", v.outcome, m.name, v.by, v.took.Round(time.Millisecond))
		if why != "" {
			r.wrong = append(r.wrong, fmt.Sprintf("%s\n\tis explained as a survivor, but %s kills it",
				m.name, v.by))
		}
	case v.outcome == survived && why != "":
		r.explained++
		fmt.Printf("%-9s %s\n\t%s\n", "explained", m.name, why)
	case v.outcome == survived:
		r.wrong = append(r.wrong, m.name+"\n\tsurvives, and nothing explains it\n"+m.show())
		fmt.Printf("%-9s %s (%s)\n%s", "SURVIVED", m.name, v.took.Round(time.Millisecond), m.show())
	}
}

// finish prints the sums. It fails if a survivor is not explained, or an explanation is wrong.
func (r *report) finish(took time.Duration) error {
	for _, name := range slices.Sorted(maps.Keys(r.known)) {
		if !r.exists[name] {
			r.wrong = append(r.wrong, name+"\n\tis explained, but there is no such mutant any more")
		}
	}
	tests := slices.SortedFunc(maps.Keys(r.by), func(a, b string) int {
		return r.by[b] - r.by[a]
	})
	fmt.Println("killed by:")
	for _, name := range tests {
		fmt.Printf("%5d  %s\n", r.by[name], name)
	}
	c := &r.counts
	fmt.Printf("%d mutants: %d killed, %d ended for their time, %d survive (%d explained); "+
		"%d more did not compile; %s\n", c[killed]+c[tookTooLong]+c[survived],
		c[killed], c[tookTooLong], c[survived], r.explained, r.broken, took.Round(time.Second))
	if len(r.wrong) > 0 {
		return fmt.Errorf("%d wrong:\n%s", len(r.wrong), strings.Join(r.wrong, "\n"))
	}
	return nil
}
