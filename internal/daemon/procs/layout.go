package procs

import (
	"fmt"
	"maps"
	"net"
	"os"
	"strconv"

	"github.com/goccy/go-yaml"
)

const (
	portsPerNode = 3
	roundNumber  = 100    // of ports: meshes begin at multiples of it from their base port
	highestPort  = 32_000 // below the range from which kernels give ports away
)

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// claimPorts finds count free ports in a row, for TCP and UDP, from base upward.
// Nodes that are not up yet, or down for a while, do not hold theirs; the
// claim does: other searches from the same round numbers meet it, in this process
// or another, and go on.
func claimPorts(base, count int) (from int, claim net.Listener, err error) {
	step := (count + roundNumber) / roundNumber * roundNumber
	for from = base; from+step-1 <= highestPort; from += step {
		claim, err = net.Listen("tcp", loopback(from+step-1))
		if err != nil {
			continue
		}
		if allFree(from, count) {
			return from, claim, nil
		}
		claim.Close()
	}
	return 0, nil, fmt.Errorf("no %d free ports in a row from %d to %d", count, base, highestPort)
}

func allFree(from, count int) bool {
	for port := from; port < from+count; port++ {
		if !free(port) {
			return false
		}
	}
	return true
}

func free(port int) bool {
	tcp, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", loopback(port))
	if err != nil {
		return false
	}
	udp.Close()
	return true
}

// writeConfig writes the node's configuration file.
func (n *Node) writeConfig() error {
	if err := os.MkdirAll(n.Dir, 0o700); err != nil {
		return fmt.Errorf("directory of node %s: %w", n.Name, err)
	}
	options := map[string]any{
		"node": n.Name, "voters": n.mesh.cfg.Names, "data-dir": n.Dir + "/state",
		"gossip-addr": n.GossipAddr, "mesh-addr": n.MeshAddr, "admin-addr": n.AdminAddr,
		"join": n.mesh.gossipAddrs(), "log-format": "json",
	}
	maps.Copy(options, n.mesh.cfg.Options)
	maps.Copy(options, n.mesh.cfg.NodeOptions[n.Name])
	text, err := yaml.Marshal(options)
	if err != nil {
		return fmt.Errorf("configuration of node %s: %w", n.Name, err)
	}
	if err := os.WriteFile(n.ConfigFile, text, 0o600); err != nil {
		return fmt.Errorf("configuration of node %s: %w", n.Name, err)
	}
	return nil
}

func (m *Mesh) gossipAddrs() (addrs []string) {
	for _, n := range m.nodes {
		addrs = append(addrs, n.GossipAddr)
	}
	return addrs
}
