package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/scouting"
)

// meshStop bounds the end of a local mesh: every node may hand over before.
const meshStop = 10 * time.Second

// localMesh is the command `mesh` at work.
type localMesh struct {
	nodes       int
	dir         string
	basePort    int
	profile     string
	noScouting  bool
	out         *console.Printer
	procs       *procs.Mesh
	firstLeader chan string   // gets the name of the first leader
	greeted     chan struct{} // closed when the greeting is out: nothing comes before it
	stopping    atomic.Bool   // the end of a process surprises nobody any more
}

func meshCommand() *cobra.Command {
	var m localMesh
	cmd := &cobra.Command{
		Use:   "mesh",
		Short: "Run a whole cluster on this machine, and show what it does",
		Long: "Run a cluster of real processes on loopback and print their transitions as one stream.\n" +
			"Type commands while it runs (help lists them); Ctrl-C stops everything.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := m.check(); err != nil {
				return usageError{err}
			}
			m.out = console.New(cmd.OutOrStdout())
			return m.run(cmd.Context(), cmd.InOrStdin())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&m.nodes, "nodes", 5, fmt.Sprintf("number of nodes, 1 to %d; they are named n1, n2, ...", scouting.MaxVoters))
	f.StringVar(&m.dir, "dir", "", "directory for configurations, state and logs, kept (default: a temporary one, removed)")
	f.IntVar(&m.basePort, "base-port", 7400, "first of three ports per node; the next free ones are taken if these are not")
	f.StringVar(&m.profile, "profile", "article", "set of timers: "+strings.Join(elector.ProfileNames(), " or "))
	f.BoolVar(&m.noScouting, "unsafe-no-scouting", false, "the algorithm before its scouting extension, to see what goes wrong")
	return cmd
}

func (m *localMesh) check() error {
	if m.nodes < 1 || m.nodes > scouting.MaxVoters {
		return fmt.Errorf("--nodes is %d, but must be 1 to %d", m.nodes, scouting.MaxVoters)
	}
	if _, ok := elector.Profile(m.profile); !ok {
		return fmt.Errorf("--profile is %q, but must be one of %s", m.profile, strings.Join(elector.ProfileNames(), ", "))
	}
	if m.basePort < 1024 || m.basePort > 30_000 {
		return fmt.Errorf("--base-port is %d, but must be 1024 to 30000", m.basePort)
	}
	return nil
}

func (m *localMesh) run(ctx context.Context, in io.Reader) (err error) {
	dir, remove, err := m.directory()
	if err != nil {
		return err
	}
	defer remove()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	m.firstLeader, m.greeted = make(chan string, 1), make(chan struct{})
	m.procs, err = procs.New(procs.Config{
		Binary: self, Names: procs.Numbered(m.nodes), Dir: dir, BasePort: m.basePort,
		Options: map[string]any{"profile": m.profile, "faults": true, "unsafe-no-scouting": m.noScouting},
		OnLine:  m.onLine, OnExit: m.onExit,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.stop()) }()
	err = m.procs.Start()
	m.greet(dir)
	close(m.greeted)
	if err != nil {
		return err
	}
	go m.explainWhenReady(ctx)
	go m.obey(ctx, in)
	<-ctx.Done()
	return nil
}

// directory is the one that was asked for, or a temporary one with its removal.
func (m *localMesh) directory() (dir string, remove func(), err error) {
	if m.dir != "" {
		dir, err = filepath.Abs(m.dir)
		return dir, func() {}, err
	}
	dir, err = os.MkdirTemp("", "bmqnode-mesh-")
	return dir, func() { os.RemoveAll(dir) }, err
}

func (m *localMesh) stop() error {
	m.out.Say("stopping %d nodes", m.nodes)
	m.stopping.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), meshStop)
	defer cancel()
	return m.procs.Stop(ctx)
}

func (m *localMesh) greet(dir string) {
	m.out.Say("%d nodes in %s:", m.nodes, dir)
	for _, n := range m.procs.Nodes() {
		m.out.Say("  %-4s process %-8d admin %s", n.Name, n.Pid(), n.AdminAddr)
	}
	m.out.Say("A leader is due within 8 s: each node first looks for one, then waits at random before it stands.\n")
}

// settling lets the lines of an election come before the hint that follows it.
const settling = 300 * time.Millisecond

// explainWhenReady says what to do once there is something to see.
func (m *localMesh) explainWhenReady(ctx context.Context) {
	var leader string
	select {
	case <-ctx.Done():
		return
	case leader = <-m.firstLeader:
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(settling):
	}
	n, err := m.procs.Node(leader)
	if err != nil {
		return
	}
	pid := n.Pid()
	if pid == 0 {
		return // gone already; somebody is quick
	}
	m.out.Say("\n%s leads. Type here:", leader)
	for _, hint := range [][2]string{
		{"kill " + leader, "crash the leader; 'start " + leader + "' brings it back"},
		{"isolate " + leader, "cut the leader off; 'heal' lets it come back"},
		{"status", "show every node"},
		{"help", "list the rest; Ctrl-C stops everything"},
	} {
		m.out.Say("  %s  %s", console.Strong(fmt.Sprintf("%-12s", hint[0])), hint[1])
	}
	m.out.Say("Or in another terminal:")
	for _, typed := range []string{fmt.Sprintf("kill -9 %d", pid), typedAs() + " status" + m.adminFlag(), typedAs() + " watch" + m.adminFlag()} {
		m.out.Say("  %s", console.Strong(typed))
	}
	m.out.Say("")
}

// typedAs is how the user can call this program again.
func typedAs() string {
	self, err := os.Executable()
	if err == nil && strings.Contains(self, "go-build") {
		return "go run ./cmd/bmqnode" // a temporary binary of go run
	}
	return os.Args[0]
}

// adminFlag is what the other commands need to find this mesh.
func (m *localMesh) adminFlag() string {
	nodes := m.procs.Nodes()
	if nodes[0].AdminAddr == defaultAdminAddr {
		return ""
	}
	var addrs []string
	for _, n := range nodes[:min(len(nodes), len(defaultAsk))] {
		addrs = append(addrs, n.AdminAddr)
	}
	return " --admin " + strings.Join(addrs, ",")
}

// onLine shows what a node logs: transitions, and what is graver than they are.
func (m *localMesh) onLine(l procs.Line) {
	<-m.greeted
	if e, ok := l.Transition(); ok {
		m.out.Transition(e)
		if e.To == elector.Leader.String() {
			select {
			case m.firstLeader <- l.Node:
			default:
			}
		}
		return
	}
	switch l.Level {
	case "trace", "debug", "info":
	case "":
		m.out.Note(l.Time, l.Node, "%s", l.Text)
	default:
		m.out.Note(l.Time, l.Node, "%s", console.Alert(l.Level)+" "+l.Message+" "+l.Detail)
	}
}

func (m *localMesh) onExit(node string, err error) {
	<-m.greeted
	switch {
	case m.stopping.Load():
	case err != nil:
		m.out.Note(time.Now(), node, "%s; type %s to bring it back", console.Alert("gone: "+err.Error()), console.Strong("start "+node))
	default:
		m.out.Note(time.Now(), node, "has stopped; type %s to bring it back", console.Strong("start "+node))
	}
}

// obey runs the commands that are typed until there is nobody who types.
func (m *localMesh) obey(ctx context.Context, in io.Reader) {
	lines := bufio.NewScanner(in)
	for lines.Scan() && ctx.Err() == nil {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if err := m.command(ctx, words[0], words[1:]); err != nil {
			m.out.Say("%s %s", console.Alert("error:"), err)
		}
	}
}
