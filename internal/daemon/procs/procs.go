// Package procs runs a mesh of real bmqnode processes on loopback: it finds free
// ports, writes each node's configuration file, starts, signals and stops the
// processes and reads what they log. The command `bmqnode mesh`, the end-to-end
// tests and live scenarios use it.
package procs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// Config describes a mesh.
type Config struct {
	Binary string   // of bmqnode
	Names  []string // of the nodes; see Numbered
	Dir    string   // holds a directory per node: configuration, state, log
	// BasePort is where the search for free ports begins: three per node, for
	// gossip, mesh and administration. It goes on in steps of a hundred; the last
	// port of a hundred is held to keep other meshes away. At most 31,900.
	BasePort int
	// Options go into every configuration file, NodeOptions into that of one node:
	// bmqnode's flags without dashes.
	Options     map[string]any
	NodeOptions map[string]map[string]any
	// OnLine gets every line that a process writes; OnExit is told when one has
	// ended. Both are called from several goroutines; either may be nil.
	OnLine func(Line)
	OnExit func(node string, err error)
}

// Mesh is a set of processes. It is safe for concurrent use.
type Mesh struct {
	cfg   Config
	nodes []*Node
	claim net.Listener // on the mesh's ports, until Stop
}

// Node is one process of a mesh, or the place for one.
type Node struct {
	Name                            string
	GossipAddr, MeshAddr, AdminAddr string
	Dir, ConfigFile                 string
	mesh                            *Mesh
	mu                              sync.Mutex
	running                         *process // nil if there is none
}

// New lays out the mesh; it starts nothing. Ports are the mesh's own until Stop.
func New(cfg Config) (*Mesh, error) {
	base, claim, err := claimPorts(cfg.BasePort, portsPerNode*len(cfg.Names))
	if err != nil {
		return nil, err
	}
	m := &Mesh{cfg: cfg, claim: claim}
	for i, name := range cfg.Names {
		dir := filepath.Join(cfg.Dir, name)
		m.nodes = append(m.nodes, &Node{
			Name: name, mesh: m, Dir: dir, ConfigFile: filepath.Join(dir, "bmqnode.yaml"),
			GossipAddr: loopback(base + portsPerNode*i),
			MeshAddr:   loopback(base + portsPerNode*i + 1),
			AdminAddr:  loopback(base + portsPerNode*i + 2),
		})
	}
	for _, n := range m.nodes {
		if err := n.writeConfig(); err != nil {
			claim.Close()
			return nil, err
		}
	}
	return m, nil
}

// Numbered are the names n1 to nN.
func Numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("n%d", i+1))
	}
	return names
}

// Nodes are the mesh's nodes, in the order of Config.Names.
func (m *Mesh) Nodes() []*Node { return m.nodes }

// Node returns the node of that name; the error lists those that there are.
func (m *Mesh) Node(name string) (*Node, error) {
	for _, n := range m.nodes {
		if n.Name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("no node %q here, but %s", name, strings.Join(m.cfg.Names, ", "))
}

// Start starts every process.
func (m *Mesh) Start() error {
	for _, n := range m.nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	return nil
}

// Stop lets every process hand over and exit; those that have not by the end
// of ctx are killed. It returns when all are gone; others may have the ports then.
func (m *Mesh) Stop(ctx context.Context) error {
	var wg sync.WaitGroup
	errs := make([]error, len(m.nodes))
	for i, n := range m.nodes {
		wg.Go(func() { errs[i] = n.Stop(ctx) })
	}
	wg.Wait()
	m.claim.Close() // a second Stop finds it closed
	return errors.Join(errs...)
}

// Client returns a client for the node's admin side.
func (n *Node) Client() *admin.Client { return admin.NewClient(n.AdminAddr) }

// Start starts the node's process; the same command serves every start.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running != nil {
		return fmt.Errorf("node %s runs already, as process %d", n.Name, n.running.pid())
	}
	p, err := launch(n)
	if err != nil {
		return err
	}
	n.running = p
	go n.reap(p)
	return nil
}

// reap waits for the end of a process.
func (n *Node) reap(p *process) {
	err := p.wait()
	n.mu.Lock()
	n.running = nil
	n.mu.Unlock()
	if f := n.mesh.cfg.OnExit; f != nil {
		f(n.Name, err)
	}
	close(p.gone)
}

func (n *Node) process() (*process, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running == nil {
		return nil, fmt.Errorf("node %s does not run", n.Name)
	}
	return n.running, nil
}

// Pid is the process ID, or 0 if the node does not run.
func (n *Node) Pid() int {
	p, err := n.process()
	if err != nil {
		return 0
	}
	return p.pid()
}

// Signal sends sig to the node's process.
func (n *Node) Signal(sig syscall.Signal) error {
	p, err := n.process()
	if err != nil {
		return err
	}
	return p.signal(sig)
}

// Kill ends the process as a crash would, and waits until it is gone.
func (n *Node) Kill() error {
	p, err := n.process()
	if err != nil {
		return err
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.gone
	return nil
}

// Stop asks the process to hand over and exit, and kills it if it has not by the
// end of ctx. A process that does not run is stopped already.
func (n *Node) Stop(ctx context.Context) error {
	p, err := n.process()
	if err != nil {
		return nil
	}
	_ = p.signal(syscall.SIGCONT) // a paused one could not obey
	if err := p.signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
	}
	_ = p.signal(syscall.SIGKILL)
	<-p.gone
	return fmt.Errorf("node %s did not stop in time and was killed", n.Name)
}
