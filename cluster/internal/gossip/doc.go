// Package gossip finds the other members of a cluster and tells them where this node can be
// reached. It runs one memberlist per process; the metadata of a node carries its mesh
// address, its software version and whether it votes.
//
// It is a directory, not an authority. Its failure detector is a hint, and it never
// decides who votes or who is a member: the configuration names the voters, so that a
// partition cannot shrink a quorum, and the handshake of the mesh refuses a second
// process of the same name. Packets and streams of another cluster are dropped.
//
// As long as the node runs, it tries its join addresses, the addresses that it cached in an
// earlier run, and the last addresses of members that disappeared. So nodes find each other
// without a restart in whatever order they start, when all of them moved at once, and after
// a partition.
//
// All methods of Gossip may be called from any goroutine. One goroutine of this package
// delivers the changes, in order and never under a lock of memberlist.
package gossip
