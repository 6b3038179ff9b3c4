package shell

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// verb is a command that the user can type.
type verb struct {
	name  string
	args  string // names of the arguments, for help
	nodes int    // how many there are
	help  string
	run   func(s *shell, ctx context.Context, nodes []*procs.Node) error
}

var verbs = []verb{
	{"status", "", 0, "show every node", command(everywhere, "status")},
	{"kill", "NODE", 1, "crash it (SIGKILL)",
		func(_ *shell, _ context.Context, n []*procs.Node) error { return n[0].Kill() }},
	{"stop", "NODE", 1, "let it hand over and exit (SIGTERM)",
		func(_ *shell, ctx context.Context, n []*procs.Node) error { return n[0].Stop(ctx) }},
	{"start", "NODE", 1, "start it again",
		func(_ *shell, _ context.Context, n []*procs.Node) error { return n[0].Start() }},
	{"pause", "NODE", 1, "freeze it (SIGSTOP)", send(syscall.SIGSTOP, "is frozen")},
	{"resume", "NODE", 1, "let it go on (SIGCONT)", send(syscall.SIGCONT, "goes on")},
	{"cut", "NODE NODE", 2, "cut the link between two", command(atFirst, "fault", "cut")},
	{"isolate", "NODE", 1, "cut every link of it", command(atFirst, "fault", "isolate")},
	{"heal", "", 0, "heal every link", command(everywhere, "fault", "heal")},
	{"transfer", "NODE", 1, "let the leader hand over to it", command(everywhere, "transfer", "--to")},
	{"step-down", "", 0, "let the leader step down for a while", command(everywhere, "step-down")},
	{"quit", "", 0, "stop everything, as Ctrl-C does",
		func(s *shell, _ context.Context, _ []*procs.Node) error { s.quit(); return nil }},
	{"help", "", 0, "show this", nil}, // run would refer to this table
}

// send sends a signal, and says what has become of the node.
func send(sig syscall.Signal, became string) func(*shell, context.Context, []*procs.Node) error {
	return func(s *shell, _ context.Context, n []*procs.Node) error {
		err := n[0].Signal(sig)
		if err == nil {
			s.out.Say("%s %s", n[0].Name, became)
		}
		return err
	}
}

// alike are other words for a command.
var alike = map[string]string{"exit": "quit", "?": "help"}

// Which nodes a command of bmqnode asks.
const (
	everywhere = false // all that run
	atFirst    = true  // the first that was named
)

// command runs a command of bmqnode, with the names of the nodes as arguments.
func command(first bool, words ...string) func(*shell, context.Context, []*procs.Node) error {
	return func(s *shell, ctx context.Context, named []*procs.Node) error {
		args, addrs := append([]string{}, words...), []string{}
		for _, n := range named {
			args = append(args, n.Name)
		}
		for _, n := range s.procs.Nodes() {
			if first && n == named[0] || !first && n.Pid() != 0 {
				addrs = append(addrs, n.AdminAddr)
			}
		}
		output, err := s.Command(ctx, append(args, "--admin", strings.Join(addrs, ","))...)
		s.out.Say("%s", output)
		return err
	}
}

func (s *shell) run(ctx context.Context, name string, args []string) error {
	var names []string
	for _, v := range verbs {
		names = append(names, v.name)
		if v.name != name && v.name != alike[name] {
			continue
		}
		if v.nodes == 2 && len(args) == 1 { // as scenarios write a link
			args = strings.Split(args[0], "-")
		}
		if len(args) != v.nodes {
			return fmt.Errorf("usage: %s: %s", strings.TrimSpace(name+" "+v.args), v.help)
		}
		var nodes []*procs.Node
		for _, arg := range args {
			n, err := s.procs.Node(arg)
			if err != nil {
				return err
			}
			nodes = append(nodes, n)
		}
		if v.run != nil {
			return v.run(s, ctx, nodes)
		}
		for _, v := range verbs {
			s.out.Say("  %-18s %s", v.name+" "+v.args, v.help)
		}
		return nil
	}
	if near := words.Nearest(name, names); near != "" {
		return fmt.Errorf("there is no command %q; did you mean %s?", name, near)
	}
	return fmt.Errorf("there is no command %q; help lists the commands", name)
}
