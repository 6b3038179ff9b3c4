// Package certify lets the parent of a node tell the other members that the node is dead.
//
// The parent starts the same program again as its child, the node. The child hands over each
// evidence connection, with the certificate of death that the other end believes: see
// netmesh.DeathProof. When no thread of the child has memory to run in, the parent writes each
// certificate to its connection. That is before the kernel frees the memory and then closes the
// files, which is the first sign of a death otherwise. It works even if a firewall keeps members
// from dialing the dead process. If the parent is killed, it says nothing, and its child stops.
//
// It needs Linux.
package certify

// variable has the number of the file by which a child reaches its parent.
const variable = "BMQ_PARENT_SOCKET"
