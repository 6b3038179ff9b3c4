// Package gossip finds the other members of a cluster and passes on where this node
// can be reached: one memberlist instance per process, whose node metadata carries
// the mesh address, the software version and what the node is.
//
// It is a directory, not an authority. Its failure detector is a hint, and it never
// decides who votes or who belongs: voters come from the configuration, so that a
// partition cannot shrink a quorum, and the handshake of the mesh refuses a second
// process of one name. Packets and streams of another cluster are dropped.
//
// Join addresses, addresses cached from an earlier run and the last addresses of
// members that disappeared are tried for as long as the node runs. So nodes that are
// started in any order, nodes that all moved at once and islands that could not see
// each other come together without a restart.
//
// All methods of Gossip may be called from any goroutine. Changes are delivered in
// order by one goroutine of this package, never under a lock of memberlist.
package gossip
