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

// options are the flags of the command.
type options struct {
	root   string
	count  int
	seed   uint64
	only   *regexp.Regexp
	list   bool
	within time.Duration
	factor int
}

func main() {
	o := options{}
	only := ""
	flag.StringVar(&o.root, "root", "..", "the top of the tree")
	flag.IntVar(&o.count, "n", 200, "how many mutants to try, over all packages")
	flag.Uint64Var(&o.seed, "seed", 1, "which ones; the same seed chooses the same")
	flag.StringVar(&only, "only", "", "try all whose name matches this, instead of a sample")
	flag.BoolVar(&o.list, "list", false, "print those that are chosen, and try none")
	flag.DurationVar(&o.within, "time", 0, "begin none after so long; 0 for no limit")
	flag.IntVar(&o.factor, "limit", 10,
		"a test may take so many times as long as with healthy code, and 20 s")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := o.run(ctx, only)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

// run tries what was chosen of every package.
func (o *options) run(ctx context.Context, only string) (err error) {
	if o.only, err = regexp.Compile(only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return err
	}
	known, err := readSurvivors(filepath.Join(o.root, survivorsFile))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &report{known: known, exists: map[string]bool{}}
	fmt.Printf("seed %d, %d mutants\n", o.seed, o.count)
	began := time.Now()
	for _, t := range targets {
		mutants, err := t.generate(o.root)
		if err != nil {
			return err
		}
		for _, m := range mutants {
			r.exists[m.name] = true
		}
		chosen, wanted := o.choose(t, mutants)
		fmt.Printf("%s: %d can be made, %d are wanted\n", t.dir, len(mutants), wanted)
		if o.list {
			printAll(chosen[:wanted])
			continue
		}
		if err := o.try(ctx, &box{o.root, dir}, t, chosen, wanted, r, began); err != nil {
			return err
		}
	}
	if o.list {
		return nil
	}
	return r.finish(time.Since(began))
}

func printAll(mutants []mutant) {
	for _, m := range mutants {
		fmt.Printf("%s\n%s", m.name, m.show())
	}
}

// choose orders the mutants of a package, and says how many to try: those that do not compile
// do not count.
func (o *options) choose(t target, mutants []mutant) (ordered []mutant, wanted int) {
	if o.only.String() != "" {
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

// try tries the first mutants of a package that compile.
func (o *options) try(ctx context.Context, b *box, t target, mutants []mutant, wanted int,
	r *report, began time.Time) error {
	if wanted == 0 {
		return nil
	}
	suites, chosen, broken, err := t.build(ctx, b, mutants, wanted)
	if err != nil {
		return err
	}
	r.broken += broken
	for i, m := range chosen {
		if o.within != 0 && time.Since(began) > o.within {
			r.notRun += len(chosen) - i
			break
		}
		v, err := verdictOf(ctx, b, suites, i+1, o.factor)
		if err != nil {
			return err
		}
		r.add(m, v)
	}
	return nil
}

// indent puts a tab before every line.
func indent(text string) string {
	return "\t" + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n\t") + "\n"
}
