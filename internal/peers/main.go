// Command peers compares this repository's elector with what programs embed today, on
// one machine, and writes a page about it. Every node is a process. It is run by
// make bench-peers, beside the programs of the folders raft and etcd.
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
	if child(os.Args[1:]) {
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// child does the task for which this program has started itself, and reports whether there is one.
func child(args []string) bool {
	if len(args) != 2 {
		return false
	}
	switch args[0] {
	case asNode:
		node.Main(args[1], ours.Start)
	case asBusy:
		if err := spin(args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	default:
		return false
	}
	return true
}

// plan is what the flags ask for.
type plan struct {
	trials  int
	rest    time.Duration // over which costs are measured
	load    time.Duration
	systems []system
	dir     string
	traffic bool
}

// full reports whether the plan measures enough to write a page: all systems, often enough.
func (p plan) full() bool { return len(p.systems) == len(systems) && p.trials >= enough }

const enough = 30

// limit is the longest that a run may take, if something hangs.
const limit = time.Hour

func run() error {
	p := plan{}
	names, page := "", ""
	flag.IntVar(&p.trials, "trials", enough, "trials of each fault")
	flag.DurationVar(&p.rest, "rest", 10*time.Second, "how long costs are measured; 0: not")
	flag.DurationVar(&p.load, "load", time.Minute, "how long all cores are kept busy; 0: not")
	flag.DurationVar(&quiet, "quiet", quiet, "how long all must have been as it is before a trial")
	flag.StringVar(&names, "systems", "", "what to measure, separated by spaces; all by default")
	flag.StringVar(&p.dir, "dir", os.TempDir(), "where the nodes' disks are, for a while")
	flag.StringVar(&page, "page", "", "the file to write, if all is measured, with 30 trials or more")
	flag.Parse()
	var err error
	if p.systems, err = choose(strings.Fields(names)); err != nil {
		return err
	}
	if p.trials < 1 || p.rest < 0 || p.load < 0 || quiet < 0 || flag.NArg() > 0 {
		return errors.New("want at least one trial, times of 0 or more, and no arguments beside flags")
	}
	if err := isolate(); err != nil {
		fmt.Fprintln(os.Stderr, "traffic is not measured:", err)
	} else {
		p.traffic = true
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	r, err := p.measure(ctx)
	if err != nil {
		return err
	}
	fmt.Print(r.page())
	if page == "" || !p.full() {
		return nil
	}
	return os.WriteFile(page, []byte(r.page()), 0o644)
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
