// Package procs runs a mesh of real bmqnode processes on loopback. It finds free ports, writes a
// configuration file for each node, starts, signals and stops the processes, and reads what they
// log. The command `bmqnode mesh`, end-to-end tests and live scenarios use it.
package procs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/bmqelect/bmqelect/cluster"
)

const (
	portsPerNode = 3
	roundNumber  = 100    // of ports: a mesh begins at a multiple of it above its base port
	highestPort  = 32_000 // below the range of ephemeral ports
	// pollEvery is the pause between two questions to a node.
	pollEvery = 20 * time.Millisecond
)

// Config describes a mesh.
type Config struct {
	Binary string   // of bmqnode
	Names  []string // of the nodes; see Numbered
	Dir    string   // holds a directory per node: configuration, state, log
	// BasePort is where the search for free ports begins, at most 31,900. A node has three: for
	// gossip, mesh and admin. The search goes on in steps of a hundred ports, of which the last one is
	// held to keep other meshes away.
	BasePort int
	// Options are in every configuration file, NodeOptions in that of one node: flags without dashes.
	Options     map[string]any
	NodeOptions map[string]map[string]any
	// OnLine gets every line that a process writes; OnExit is called when one has ended. Several
	// goroutines call them; either may be nil.
	OnLine func(Line)
	OnExit func(node string, err error)
}

// Mesh is a set of processes. It is safe for concurrent use.
type Mesh struct {
	cfg   Config
	nodes []*Node
	claim net.Listener // holds the mesh's ports until Stop
}

// New lays out the mesh and starts nothing. The ports belong to the mesh until Stop.
func New(cfg Config) (*Mesh, error) {
	base, claim, err := claimPorts(cfg.BasePort, portsPerNode*len(cfg.Names))
	if err != nil {
		return nil, err
	}
	m := &Mesh{cfg: cfg, claim: claim}
	var join []string
	for i, name := range cfg.Names {
		dir, port := filepath.Join(cfg.Dir, name), base+portsPerNode*i
		m.nodes = append(m.nodes, &Node{
			Name: name, mesh: m, Binary: cfg.Binary,
			Dir: dir, ConfigFile: filepath.Join(dir, "bmqnode.yaml"),
			GossipAddr: loopback(port), MeshAddr: loopback(port + 1), AdminAddr: loopback(port + 2),
		})
		join = append(join, loopback(port))
	}
	for _, n := range m.nodes {
		options := map[string]any{
			"node": n.Name, "voters": cfg.Names, "data-dir": n.Dir + "/state", "join": join,
			"gossip-addr": n.GossipAddr, "mesh-addr": n.MeshAddr, "admin-addr": n.AdminAddr,
			"log-format": "json",
		}
		maps.Copy(options, cfg.Options)
		maps.Copy(options, cfg.NodeOptions[n.Name])
		text, err := yaml.Marshal(options)
		if err == nil {
			err = os.MkdirAll(n.Dir, 0o700)
		}
		if err == nil {
			err = os.WriteFile(n.ConfigFile, text, 0o600)
		}
		if err != nil {
			claim.Close()
			return nil, fmt.Errorf("configuration of node %s: %w", n.Name, err)
		}
	}
	return m, nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// claimPorts finds count free ports in a row, for TCP and UDP, from base upward. A node that does
// not run does not hold its ports; the claim does: a search from the same round number, in this
// process or another, meets it and goes on.
func claimPorts(base, count int) (from int, claim net.Listener, err error) {
	step := (count + roundNumber) / roundNumber * roundNumber
	for from = base; from+step-1 <= highestPort; from += step {
		claim, err = net.Listen("tcp", loopback(from+step-1))
		if err != nil {
			continue
		}
		free := true
		for port := from; port < from+count && free; port++ {
			tcp, err := net.Listen("tcp", loopback(port))
			if err != nil {
				free = false
				break
			}
			udp, err := net.ListenPacket("udp", loopback(port))
			if free = err == nil; free {
				udp.Close()
			}
			tcp.Close()
		}
		if free {
			return from, claim, nil
		}
		claim.Close()
	}
	return 0, nil, fmt.Errorf("no %d free ports in a row from %d to %d; choose a lower --base-port",
		count, base, highestPort)
}

func Numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("n%d", i+1))
	}
	return names
}

// Nodes are the mesh's nodes, in the order of Config.Names.
func (m *Mesh) Nodes() []*Node { return m.nodes }

// Node returns the node of that name. The error lists the names.
func (m *Mesh) Node(name string) (*Node, error) {
	for _, n := range m.nodes {
		if n.Name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("there is no node %q here: the nodes are %s", name, strings.Join(m.cfg.Names, ", "))
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

// Stop lets every process hand over and exit, and kills those that still run at the end of ctx.
// When it returns all are gone, and others may take the ports.
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

// Agree waits until the nodes report the same leader and term, and the leader leads with a valid
// lease and satisfies accept (nil: any does). It returns the leader's view. The error has what the
// nodes said last.
func Agree(
	ctx context.Context, nodes []*Node, accept func(cluster.GroupStatus) bool,
) (cluster.GroupStatus, error) {
	for {
		var leader, first *cluster.GroupStatus
		agreed, said := true, ""
		for _, n := range nodes {
			st, err := n.Status(ctx)
			if err != nil {
				said += fmt.Sprintf("\n  %s: %s", n.Name, err)
				agreed = false
				continue
			}
			g := &st.Groups[0]
			said += fmt.Sprintf("\n  %s: %s term=%d leader=%s: %s",
				n.Name, g.Role, g.Term, g.Leader, g.Explanation)
			if first == nil {
				first = g
			}
			agreed = agreed && g.Leader == first.Leader && g.Term == first.Term
			if g.Leading {
				leader = g
			}
		}
		if agreed && leader != nil && (accept == nil || accept(*leader)) {
			return *leader, nil
		}
		select {
		case <-ctx.Done():
			return cluster.GroupStatus{},
				fmt.Errorf("no agreed leader; the nodes said:%s\n%w", said, ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}
