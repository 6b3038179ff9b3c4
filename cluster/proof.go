package cluster

import (
	"fmt"
	"syscall"
)

// ProofFiles are the listener of the mesh and the lock of the data directory. Other
// members take it as proof of this process's death that the listener is closed, or that
// the directory is used again. A program whose work outlives its process has the work keep
// them open, as with Config.HoldEvidence. They are not to be used otherwise. The error
// says that the network of this node has no files.
func (n *Node) ProofFiles() ([]syscall.Conn, error) {
	listener, ok := n.mesh.Listener().(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("node %s: the listener, a %T, has no file", n.cfg.Node, n.mesh.Listener())
	}
	return []syscall.Conn{listener, n.store.LockFile()}, nil
}
