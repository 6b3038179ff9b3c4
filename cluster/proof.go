package cluster

import (
	"fmt"
	"syscall"
)

// ProofFiles returns the listener of the mesh and the lock of the data directory. To other members
// a listener that is closed, or a directory that is used again, proves the death of this process.
// If the work of a program outlives its process, let the work keep these files open, as with
// Config.HoldEvidence. Do not use them otherwise. The error says that the network of this node has
// no files.
func (n *Node) ProofFiles() ([]syscall.Conn, error) {
	listener, ok := n.mesh.Listener().(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("node %s: the listener, a %T, has no file", n.cfg.Node, n.mesh.Listener())
	}
	return []syscall.Conn{listener, n.store.LockFile()}, nil
}
