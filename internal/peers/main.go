// Command peers compares this repository's elector with what programs embed today, on one
// machine, and writes a page about it. Every node is a process. make bench-peers runs it,
// beside the programs of the folders raft and etcd.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/internal/peers/node"
	"github.com/bmqelect/bmqelect/internal/peers/ours"
)

func main() {
	if isNode() {
		node.Main(os.Args[2], ours.Start)
		return
	}
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// command runs what the arguments ask for.
func command(args []string) error {
	if len(args) == 3 && args[0] == asDisk {
		return serveDisk(args[1], args[2])
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(args) > 0 && args[0] == "gray" {
		return grayMain(ctx, args[1:])
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if len(args) > 0 && args[0] == "many" {
		return manyMain(ctx, args[1:])
	}
	return bench(ctx)
}

// isNode reports whether this program has started itself as a node of this elector.
func isNode() bool { return len(os.Args) == 3 && os.Args[1] == asNode }

// plan is what to measure.
type plan struct {
	trials  int
	rest    time.Duration // over which costs are measured
	load    time.Duration
	systems []system
	traffic bool
}

// full reports whether the plan is enough to write a page from.
func (p plan) full() bool { return len(p.systems) == len(systems) && p.trials >= enough }

const enough = 30

// limit bounds a run of benchmarks, whatever hangs.
const limit = time.Hour

func bench(ctx context.Context) error {
	p := plan{}
	names, page, only := "", "", false
	flag.IntVar(&p.trials, "trials", enough, "trials of each fault")
	flag.DurationVar(&p.rest, "rest", 10*time.Second, "how long costs are measured; 0: not")
	flag.DurationVar(&p.load, "load", time.Minute, "how long all cores are kept busy; 0: not")
	flag.DurationVar(&quiet, "quiet", quiet, "how long all must have been as it is before a trial")
	flag.StringVar(&names, "systems", "", "what to measure, separated by spaces; all by default")
	flag.StringVar(&page, "page", "", "the file to write, if all is measured, with 30 trials or more")
	flag.BoolVar(&only, "values", false, "measure values alone, and write that part of the page")
	flag.Parse()
	var err error
	if p.systems, err = choose(strings.Fields(names)); err != nil {
		return err
	}
	if p.trials < 1 || p.rest < 0 || p.load < 0 || quiet < 0 || flag.NArg() > 0 {
		return errors.New("want at least one trial, times of 0 or more, and no arguments beside flags")
	}
	if err := isolate(0); err != nil {
		fmt.Fprintln(os.Stderr, "traffic is not measured:", err)
	} else {
		p.traffic = true
	}
	r, err := p.measure(ctx, only)
	if err != nil {
		return err
	}
	var text string
	if only {
		text = r.values.section()
	} else {
		text = r.page()
	}
	fmt.Print(text)
	if page == "" || !only && !p.full() {
		return nil
	}
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(renew(string(old), text, only)), 0o644)
}

// renew puts what was measured into a page: all, or values only. What else is there stays.
func renew(old, text string, only bool) string {
	before, after, _ := strings.Cut(old, valuesTitle)
	if only {
		text = strings.TrimRight(before, "\n") + "\n\n" + text
	}
	if at := strings.Index(after, "\n## "); at >= 0 {
		text = strings.TrimRight(text, "\n") + "\n" + after[at:]
	}
	return text
}

// choose returns the systems of these names, and this elector, with which they are compared.
func choose(names []string) (chosen []system, err error) {
	var known []string
	for _, s := range systems {
		known = append(known, s.name)
		if s.name == own || len(names) == 0 || slices.Contains(names, s.name) {
			chosen = append(chosen, s)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no system %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}
