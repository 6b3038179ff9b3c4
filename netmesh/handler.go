package netmesh

import (
	"context"
	"net"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/google/uuid"
)

// Handler is told what happens on the links. The mesh calls it one at a time per
// peer, and for several peers at the same time: LinkUp, then Received any number
// of times, then LinkDown, or LinkUp again when a new connection to the peer
// replaces the old one. A call that blocks holds up that peer's link alone.
// No method may call Mesh.Close.
type Handler interface {
	// LinkUp says that a link to the peer is there.
	LinkUp(peer PeerInfo)
	// LinkDown says that the link is gone, and what showed it.
	LinkDown(peer elector.NodeID, evidence elector.Evidence)
	// Died says that the process which ran the peer until now is proven gone.
	// ProofRefusedAfterEOF follows LinkDown; ProofReincarnated precedes the
	// LinkUp of the new process.
	Died(peer elector.NodeID, proof elector.Proof)
	// Received hands over a message of an election group. It is decoded and its
	// enumerations are in range; whether it makes sense is the elector's matter.
	Received(peer elector.NodeID, group string, msg elector.Message)
}

// PeerInfo is what the handshake told about the process at the other end.
type PeerInfo struct {
	Node     elector.NodeID
	Identity uuid.UUID // of its data directory
	Boot     uint64    // its boot counter
	Remote   string    // address of its end of the connection
	Address  string    // host:port that it listens on, as seen from here
	Version  uint      // of the mesh's protocol, agreed between the two
}

// Clock is read for every ping, from several goroutines: always positive, never
// going backwards, the one that leases are counted by.
type Clock interface {
	Now() time.Duration
}

// Network makes connections. Those of TCP and of an in-memory network fit. A
// refused dial must match syscall.ECONNREFUSED by errors.Is, a reset connection
// syscall.ECONNRESET. Connections may offer CloseWrite and SetLinger as
// *net.TCPConn does; without SetLinger a reset is an ordinary close, and no death is proven.
type Network interface {
	Listen(addr string) (net.Listener, error)
	Dial(ctx context.Context, addr string) (net.Conn, error)
}
