package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// column is a column of the table of gray failures.
type column struct {
	title string
	system
	probes bool
}

// columns are three voters of each system, with its default timers. Ours are those of a profile.
func columns(profile string) []column {
	ours := system{own, "", profile, 0, 3, 1, 0, 0}
	return []column{
		{own, ours, false}, {"with probes", ours, true},
		{"raft", system{"raft", "raft", "", 0, 3, 1, 0, 0}, false},
		{"etcd", system{"etcd", "etcd", "session", 0, 3, 1, 0, 0}, false},
	}
}

// gray is a table of gray failures.
type gray struct {
	lasts    time.Duration // each failure
	runs     int
	columns  []column
	failures []failure
	page     string // the file to write it to, if it is the whole table
	full     bool

	machine machine
	loads   []string // averages of the machine, at the start and at the end
	lacking map[need]string
	cells   map[string][][]played // by failure and column: all runs
	skipped []string              // what was not played, and why
}

// privileged says that there are namespaces of this program's own.
var privileged bool

// grayMain plays gray failures as the arguments say.
func grayMain(ctx context.Context, args []string) error {
	g := &gray{cells: map[string][][]played{}}
	names, profile := "", ""
	flags := flag.NewFlagSet("gray", flag.ContinueOnError)
	flags.DurationVar(&g.lasts, "time", 40*time.Second, "how long each failure is played")
	flags.IntVar(&g.runs, "runs", 1, "how often; the median is shown")
	flags.StringVar(&names, "failures", "", "what to play, separated by commas; all by default")
	flags.StringVar(&profile, "profile", "article", "the timers of our nodes")
	flags.StringVar(&g.page, "page", "", "the file whose table is written anew, if all is played")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if g.lasts < time.Second || g.runs < 1 || flags.NArg() > 0 {
		return errors.New("want a time of 1s or more, one run or more, and no arguments beside flags")
	}
	var err error
	if g.failures, err = chooseFailures(names); err != nil {
		return err
	}
	g.columns, g.full = columns(profile), names == ""
	if err := g.enter(); err != nil {
		return err
	}
	return g.run(ctx)
}

// enter makes namespaces for networks and file systems, and finds out what this machine cannot do.
func (g *gray) enter() error {
	g.lacking = map[need]string{}
	err := isolate(unix.CLONE_NEWNS)
	if err == nil {
		err = errors.Join(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("tmpfs", "/run", "tmpfs", 0, ""))
	}
	if err != nil {
		for _, n := range []need{needsNetwork, needsDisk, needsGroup} {
			g.lacking[n] = err.Error()
		}
		return nil
	}
	privileged = true
	removeGroups()
	for _, tool := range []string{"ip", "ss", "nsenter", "iptables"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("needs %s (packages iproute2, util-linux, iptables)", tool)
		}
	}
	if err := run("iptables", "-w", "-A", "INPUT", "-m", "statistic", "--mode", "random",
		"--probability", "0"); err != nil {
		g.lacking[needsNetwork] = err.Error()
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		g.lacking[needsDisk] = err.Error()
	}
	if probe, err := newGroup(fmt.Sprint(groupPrefix, os.Getpid())); err != nil {
		g.lacking[needsGroup] = err.Error()
	} else {
		probe.remove()
	}
	return nil
}

// lacks says why a failure cannot be played on this machine; "" if it can.
func (g *gray) lacks(f failure) string {
	for _, n := range []need{needsNetwork, needsDisk, needsGroup} {
		if f.needs&n != 0 && g.lacking[n] != "" {
			return g.lacking[n]
		}
	}
	return ""
}

// run plays each failure with all systems at once, and writes the page.
func (g *gray) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "gray")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if g.machine, err = describe(dir); err != nil {
		return err
	}
	g.noteLoad()
	for _, f := range g.failures {
		if why := g.lacks(f); why != "" {
			progress("%s: skipped: %s", f.name, why)
			g.skipped = append(g.skipped, f.name+": "+why)
			continue
		}
		g.cells[f.name] = make([][]played, len(g.columns))
		for range g.runs {
			g.meet(ctx, f, filepath.Join(dir, "play"))
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	g.noteLoad()
	fmt.Print(g.table())
	if g.page == "" || !g.full {
		return nil
	}
	return g.rewrite()
}

// noteLoad notes the machine's load average of the last minute.
func (g *gray) noteLoad() {
	text, _ := os.ReadFile("/proc/loadavg") // every Linux has it
	average, _, _ := strings.Cut(string(text), " ")
	g.loads = append(g.loads, average)
}

// meet lets each system meet a failure, at the same time.
func (g *gray) meet(ctx context.Context, f failure, dir string) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for i, c := range g.columns {
		all.Go(func() {
			p, err := f.play(ctx, c, fmt.Sprint(dir, i), i, g.lasts)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				progress("%s: %s: %v", f.name, c.title, err)
				g.skipped = append(g.skipped, fmt.Sprintf("%s, %s: %v", f.name, c.title, err))
				return
			}
			progress("%s: %s: %s; %+v", f.name, c.title, f.cell([]played{p}), p)
			g.cells[f.name][i] = append(g.cells[f.name][i], p)
		})
	}
	all.Wait()
}
