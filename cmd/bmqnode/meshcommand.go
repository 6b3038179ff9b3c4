package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"syscall"

	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// meshVerb is something that one can type while a local mesh runs.
type meshVerb struct {
	name  string
	args  string // names of the arguments, for help
	nodes int    // how many there are
	help  string
	run   func(m *localMesh, ctx context.Context, nodes []*procs.Node) error
}

var meshVerbs []meshVerb

func init() { // help lists the table that it stands in
	meshVerbs = []meshVerb{
		{"status", "", 0, "show every node", (*localMesh).status},
		{"kill", "NODE", 1, "crash it (SIGKILL)", func(m *localMesh, _ context.Context, n []*procs.Node) error { return n[0].Kill() }},
		{"stop", "NODE", 1, "let it hand over and exit (SIGTERM)", func(m *localMesh, ctx context.Context, n []*procs.Node) error { return n[0].Stop(ctx) }},
		{"start", "NODE", 1, "start it again", func(m *localMesh, _ context.Context, n []*procs.Node) error { return n[0].Start() }},
		{"pause", "NODE", 1, "freeze it (SIGSTOP)", func(m *localMesh, _ context.Context, n []*procs.Node) error { return n[0].Signal(syscall.SIGSTOP) }},
		{"resume", "NODE", 1, "let it go on (SIGCONT)", func(m *localMesh, _ context.Context, n []*procs.Node) error { return n[0].Signal(syscall.SIGCONT) }},
		{"cut", "NODE NODE", 2, "cut the link between two", func(m *localMesh, ctx context.Context, n []*procs.Node) error {
			return m.self(ctx, n[0], "fault", "cut", n[0].Name, n[1].Name)
		}},
		{"isolate", "NODE", 1, "cut every link of it", func(m *localMesh, ctx context.Context, n []*procs.Node) error {
			return m.self(ctx, n[0], "fault", "isolate", n[0].Name)
		}},
		{"heal", "", 0, "heal every link", func(m *localMesh, ctx context.Context, _ []*procs.Node) error {
			return m.self(ctx, nil, "fault", "heal")
		}},
		{"transfer", "NODE", 1, "let the leader hand over to it", func(m *localMesh, ctx context.Context, n []*procs.Node) error {
			return m.self(ctx, nil, "transfer", "--to", n[0].Name)
		}},
		{"help", "", 0, "show this", (*localMesh).help},
	}
}

// command runs one typed command.
func (m *localMesh) command(ctx context.Context, name string, args []string) error {
	for _, v := range meshVerbs {
		if v.name != name {
			continue
		}
		if len(args) != v.nodes {
			return fmt.Errorf("type: %s", strings.TrimSpace(name+" "+v.args))
		}
		var nodes []*procs.Node
		for _, arg := range args {
			n, err := m.procs.Node(arg)
			if err != nil {
				return err
			}
			nodes = append(nodes, n)
		}
		return v.run(m, ctx, nodes)
	}
	return fmt.Errorf("there is no command %q; help lists those that there are", name)
}

func (m *localMesh) help(context.Context, []*procs.Node) error {
	for _, v := range meshVerbs {
		m.out.Say("  %-18s %s", v.name+" "+v.args, v.help)
	}
	return nil
}

func (m *localMesh) status(ctx context.Context, _ []*procs.Node) error {
	return m.self(ctx, nil, "status")
}

// self runs one of bmqnode's own commands against the mesh, at the given node
// or else at all of them.
func (m *localMesh) self(ctx context.Context, at *procs.Node, args ...string) error {
	var addrs []string
	for _, n := range m.procs.Nodes() {
		if at == nil && n.Pid() != 0 || at == n {
			addrs = append(addrs, n.AdminAddr)
		}
	}
	cmd := root()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(append(args, "--admin", strings.Join(addrs, ",")))
	err := cmd.ExecuteContext(ctx)
	m.out.Say("%s", out.String())
	return err
}
