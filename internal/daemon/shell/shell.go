// Package shell runs a whole cluster of bmqnode processes on this machine, shows what they do as
// one stream, and runs the commands that the user types.
package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/daemon/ask"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/scouting"
)

const (
	// stopTime bounds the end of the mesh, in which every node may hand over.
	stopTime = 10 * time.Second
	// settling is the time for the lines of an election before the hints that follow it.
	settling = 300 * time.Millisecond
	// certificateTime is for how long a mesh can run.
	certificateTime = 365 * 24 * time.Hour
)

// Config says what to run. Register fills in all but In, Out and Command.
type Config struct {
	Nodes        int    // they are named n1, n2, ...
	Dir, Profile string // Dir is kept; "" is a temporary one
	BasePort     int    // first of three ports per node
	NoScouting   bool
	In           io.Reader
	Out          io.Writer
	// Command runs another command of bmqnode and returns what it prints.
	Command func(ctx context.Context, args ...string) (output string, err error)
}

// Register adds the flags.
func (c *Config) Register(f *pflag.FlagSet) {
	f.IntVar(&c.Nodes, "nodes", 5,
		fmt.Sprintf("number of nodes, 1 to %d; they are named n1, n2, ...", scouting.MaxVoters))
	f.StringVar(&c.Dir, "dir", "", "directory for configurations, state and logs, kept "+
		"(default: a temporary one, removed)")
	f.IntVar(&c.BasePort, "base-port", 7400,
		"first of three ports per node; the next free ones are taken if these are not")
	f.StringVar(&c.Profile, "profile", "article",
		"set of timers: "+strings.Join(elector.ProfileNames(), ", "))
	f.BoolVar(&c.NoScouting, "unsafe-no-scouting", false,
		"the algorithm before its scouting extension, to see what goes wrong")
}

// Check returns what is wrong as a config.UsageError that names the flags of `mesh`.
func (c Config) Check() error {
	var wrong config.Mistakes
	wrong.Want(c.Nodes >= 1 && c.Nodes <= scouting.MaxVoters, "--nodes is %d, but must be 1 to %d",
		c.Nodes, scouting.MaxVoters)
	_, known := elector.Profile(c.Profile)
	wrong.Want(known, "--profile is %q, but must be one of %s", c.Profile,
		strings.Join(elector.ProfileNames(), ", "))
	wrong.Want(c.BasePort >= 1024 && c.BasePort <= 30_000,
		"--base-port is %d, but must be 1024 to 30000", c.BasePort)
	return wrong.Err()
}

type shell struct {
	Config
	out         *console.Printer
	procs       *procs.Mesh
	firstLeader chan string   // gets the name of the first leader
	welcomed    chan struct{} // closed after the welcome, before which nothing is shown
	stopping    atomic.Bool   // the end of a process is expected
	quit        func()        // ends Run
}

// Run runs the mesh until ctx ends, or the user quits.
func Run(ctx context.Context, cfg Config) (err error) {
	dir := cfg.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "bmqnode-mesh-"); err != nil {
			return fmt.Errorf("no temporary directory: %w; set $TMPDIR, or name one with --dir", err)
		}
		defer os.RemoveAll(dir)
	} else if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	s := &shell{
		Config: cfg, out: console.New(readers(cfg.Out, quit)), quit: quit,
		firstLeader: make(chan string, 1), welcomed: make(chan struct{}),
	}
	names := procs.Numbered(s.Nodes)
	own, err := certificates(dir, names)
	if err != nil {
		return fmt.Errorf("--dir %s cannot hold a mesh: %w; name a directory that is empty, or that "+
			"a mesh has made", dir, err)
	}
	s.procs, err = procs.New(procs.Config{
		Binary: self, Names: names, Dir: dir, BasePort: s.BasePort, NodeOptions: own,
		Options: map[string]any{
			"profile": s.Profile, "rehearsal": true, "unsafe-no-scouting": s.NoScouting,
		},
		OnLine: s.onLine, OnExit: s.onExit,
	})
	if err != nil {
		return err
	}
	defer func() {
		s.out.Say("stopping %s", console.Count(s.Nodes, "node"))
		s.stopping.Store(true)
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		err = errors.Join(err, s.procs.Stop(ctx))
	}()
	err = s.procs.Start()
	s.welcome(dir)
	close(s.welcomed)
	if err != nil {
		return err
	}
	go s.explainWhenReady(ctx)
	go s.obey(ctx)
	<-ctx.Done()
	return nil
}

// output ends the mesh when nobody reads it any more.
type output struct {
	io.Writer
	quit func()
}

// readers makes the output that calls quit when nobody reads out any more. Without it the end of
// the reader, as of "mesh | head", would end this process by SIGPIPE before it has stopped the
// nodes.
func readers(out io.Writer, quit func()) output {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // an error of Write from now on
	return output{out, quit}
}

func (o output) Write(text []byte) (int, error) {
	n, err := o.Writer.Write(text)
	if err != nil {
		o.quit()
	}
	return n, err
}

func (s *shell) welcome(dir string) {
	s.out.Say("%s in %s:", console.Count(s.Nodes, "node"), dir)
	for _, n := range s.procs.Nodes() {
		s.out.Say("  %-4s process %-8d admin %s", n.Name, n.Pid(), n.AdminAddr)
	}
	s.out.Say("A leader is due within 8 s: each node first looks for one, then waits at\n" +
		"random before it stands.\n")
}

// certificates makes a certificate for each node, and returns the options of each that name it.
func certificates(dir string, names []string) (map[string]map[string]any, error) {
	options := map[string]map[string]any{}
	issued, err := certs.Issue(filepath.Join(dir, "pki"), certs.DefaultCluster, names, certificateTime)
	for _, made := range issued {
		options[made.Node] = map[string]any{"tls-dir": made.Dir}
	}
	return options, err
}

// explainWhenReady says what to try, once there is a leader.
func (s *shell) explainWhenReady(ctx context.Context) {
	var leader string
	select {
	case <-ctx.Done():
		return
	case leader = <-s.firstLeader:
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(settling):
	}
	n, err := s.procs.Node(leader)
	if err != nil || n.Pid() == 0 {
		return // the user has killed it already
	}
	s.out.Say("\n%s leads. Type here:", leader)
	for _, hint := range [][2]string{
		{"kill " + leader, "crash the leader; 'start " + leader + "' brings it back"},
		{"isolate " + leader, "cut the leader off; 'heal' lets it come back"},
		{"status", "show every node"},
		{"help", "list the rest; Ctrl-C stops everything"},
	} {
		s.out.Say("  %s  %s", console.Strong(fmt.Sprintf("%-12s", hint[0])), hint[1])
	}
	s.out.Say("Terms may jump, as from 1 to 18: nodes reserve them on disk ahead.")
	program, err := os.Executable()
	if err == nil && strings.Contains(program, "go-build") {
		program = "go run ./cmd/bmqnode" // a temporary binary of go run
	} else {
		program = os.Args[0]
	}
	var at []string
	for _, n := range s.procs.Nodes()[:min(s.Nodes, len(ask.DefaultAddrs))] {
		at = append(at, n.AdminAddr)
	}
	flag := " --admin " + strings.Join(at, ",")
	if at[0] == ask.DefaultAddrs[0] {
		flag = "" // the commands look there by default
	}
	s.out.Say("Or in another terminal:")
	for _, typed := range []string{
		fmt.Sprintf("kill -9 %d", n.Pid()), program + " status" + flag, program + " watch" + flag,
	} {
		s.out.Say("  %s", console.Strong(typed))
	}
	s.out.Say("")
}

// onLine shows what a node logs: transitions, and lines above the level info.
func (s *shell) onLine(l procs.Line) {
	<-s.welcomed
	if e, ok := l.Transition(); ok {
		s.out.Transition(e)
		if e.To == elector.Leader.String() {
			select {
			case s.firstLeader <- l.Node:
			default:
			}
		}
		return
	}
	switch {
	case l.Level == "": // no log line
		s.out.Note(l.Time, l.Node, "%s", l.Text)
	case !slices.Contains([]string{"trace", "debug", "info"}, l.Level):
		s.out.Note(l.Time, l.Node, "%s %s %s", console.Alert(l.Level), l.Message, l.Detail)
	}
}

func (s *shell) onExit(node string, err error) {
	<-s.welcomed
	if s.stopping.Load() {
		return
	}
	text := "has stopped"
	if err != nil {
		text = console.Alert("gone: " + err.Error())
	}
	start := console.Strong("start " + node)
	s.out.Note(time.Now(), node, "%s; type %s to bring it back", text, start)
}

// obey runs the typed commands until the input or ctx ends.
func (s *shell) obey(ctx context.Context) {
	for lines := bufio.NewScanner(s.In); lines.Scan() && ctx.Err() == nil; {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if err := s.run(ctx, words[0], words[1:]); err != nil {
			s.out.Say("%s %s", console.Alert("error:"), err)
		}
	}
}
