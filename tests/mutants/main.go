// Command mutants breaks the protocol's code in one place at a time, and reports which of the
// broken programs no test notices. It is built with an overlay, so the tree is not touched and
// not copied, and once for all mutants of a package: each is a copy of its function, and the
// environment says which one is called. Which places are chosen depends on the seed alone, and a
// longer run begins with those of a shorter one.
//
// A survivor is explained in testdata/mutants/survivors.txt. The command fails if one is not
// explained, or if one that is explained is killed or cannot be made any more.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

type options struct {
	count int
	seed  uint64
	only  *regexp.Regexp // nil for a sample
}

func main() {
	o := options{}
	flag.IntVar(&o.count, "n", 200, "how many mutants to try, over all packages")
	flag.Uint64Var(&o.seed, "seed", 1, "which ones; the same seed chooses the same")
	flag.Func("only", "try all whose name matches this `regexp`, instead of a sample",
		func(text string) (err error) {
			o.only, err = regexp.Compile(text)
			return err
		})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

// run tries the chosen mutants of every package. The working directory must be the folder tests.
func (o *options) run(ctx context.Context) error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	known, err := readSurvivors(filepath.Join(root, survivorsFile))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &report{known: known, exists: map[string]bool{}, by: map[string]int{}}
	fmt.Printf("seed %d, %d mutants\n", o.seed, o.count)
	began := time.Now()
	for _, t := range targets {
		mutants, err := t.generate(root)
		if err != nil {
			return err
		}
		for _, m := range mutants {
			r.exists[m.name] = true
		}
		ordered, wanted := o.choose(t, mutants)
		fmt.Printf("%s: %d can be made, %d are wanted\n", t.dir, len(mutants), wanted)
		if err := r.try(ctx, &box{root, dir}, t, ordered, wanted); err != nil {
			return err
		}
	}
	return r.finish(time.Since(began))
}

// choose orders the mutants of a package, and says how many to try: those that do not compile
// do not count.
func (o *options) choose(t target, mutants []mutant) (ordered []mutant, wanted int) {
	if o.only != nil {
		for _, m := range mutants {
			if o.only.MatchString(m.name) {
				ordered = append(ordered, m)
			}
		}
		return ordered, len(ordered)
	}
	shuffle(mutants, o.seed)
	shares := 0
	for _, t := range targets {
		shares += t.share
	}
	return mutants, min((o.count*t.share+shares-1)/shares, len(mutants))
}

// indent puts a tab before every line.
func indent(text string) string {
	return "\t" + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n\t") + "\n"
}
