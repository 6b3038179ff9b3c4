package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// survivorsFile explains each mutant that no test can notice: a line with its name, and a line
// with a tab and the reason. Lines that begin with # are comments.
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
	known  map[string]string // why a mutant survives, by its name
	exists map[string]bool   // names of all that can be made
	by     map[string]int    // how many mutants a test noticed
	wrong  []string          // what fails the command

	killed, tookTooLong, explained, unexplained, broken int // broken ones do not compile
}

// try tries the first mutants of a package that compile.
func (r *report) try(ctx context.Context, b *box, t target, mutants []mutant, wanted int) error {
	if wanted == 0 {
		return nil
	}
	suites, chosen, broken, err := t.build(ctx, b, mutants, wanted)
	if err != nil {
		return err
	}
	r.broken += broken
	for i, m := range chosen {
		v, err := verdictOf(ctx, b, suites, i+1)
		if err != nil {
			return err
		}
		r.add(m, v)
	}
	return nil
}

// add prints what became of a mutant.
func (r *report) add(m mutant, v verdict) {
	why, took := r.known[m.name], v.took.Round(time.Millisecond)
	if v.by != "" {
		r.by[v.by]++
		outcome, count := "killed", &r.killed
		if v.tooLong {
			outcome, count = "too long", &r.tookTooLong
		}
		*count++
		fmt.Printf("%-9s %s (%s, %s)\n", outcome, m.name, v.by, took)
		if why != "" {
			r.wrong = append(r.wrong, fmt.Sprintf("%s\n\tis explained as a survivor, but %s kills it",
				m.name, v.by))
		}
	} else if why != "" {
		r.explained++
		fmt.Printf("%-9s %s\n\t%s\n", "explained", m.name, why)
	} else {
		r.unexplained++
		r.wrong = append(r.wrong, m.name+"\n\tsurvives, and nothing explains it\n"+m.show())
		fmt.Printf("%-9s %s (%s)\n%s", "SURVIVED", m.name, took, m.show())
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
	survived := r.explained + r.unexplained
	fmt.Printf("%d mutants: %d killed, %d ended for their time, %d survive (%d explained); "+
		"%d more did not compile; %s\n", r.killed+r.tookTooLong+survived, r.killed, r.tookTooLong,
		survived, r.explained, r.broken, took.Round(time.Second))
	if len(r.wrong) > 0 {
		return fmt.Errorf("%d wrong:\n%s", len(r.wrong), strings.Join(r.wrong, "\n"))
	}
	return nil
}
