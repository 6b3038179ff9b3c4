// Package certify lets the parent of a node tell the other members that the node is dead.
//
// The parent starts the same program again as its child. The child hands each evidence
// connection over, with the certificate that the other end believes: see
// netmesh.DeathProof. When no thread of the child has memory to run in, the parent writes each
// certificate to its connection. That is before the kernel gives back the memory and then closes
// the files, which is the first that others see of a death. And it works where a firewall keeps
// them from dialing the dead process. A parent that is killed says nothing, and its child stops.
//
// It needs Linux.
package certify

// variable holds the number of the file by which a child reaches its parent.
const variable = "BMQ_PARENT_SOCKET"
