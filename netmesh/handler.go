package netmesh

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
)

// Handler is told what happens on the links. The mesh calls it one at a time per
// peer, and for several peers at the same time: LinkUp, then Received any number
// of times, then LinkDown, or LinkUp again when a new connection to the peer
// replaces the old one. A call that blocks holds up that peer's link alone.
// No method may call Mesh.Close. A Handler may be an Observer, too.
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
	// Noted hands over a note of a peer, which is the handler's from then on.
	Noted(peer elector.NodeID, n Note)
	// Changed hands over changes of what the peer follows, and words of the peer that it does not
	// lead, of the session of the present link.
	Changed(peer elector.NodeID, session uint64, changes []pair.Change)
	// Beaten hands over a beat that came a while ago. Each is newer than those before it.
	Beaten(peer elector.NodeID, session uint64, b pair.Beat, age time.Duration)
	// Acked hands over the answer to a beat, each once. It may come behind a newer one.
	Acked(peer elector.NodeID, session uint64, a pair.Ack)
}

// Observer is a Handler that is also told what else the mesh sees of its peers. The mesh draws
// no conclusions from it.
type Observer interface {
	// Told hands over what the peer tells. It comes in turn with Handler's calls.
	Told(peer elector.NodeID, theirs Facts)
	// Answered hands over a ping that was answered. It comes in turn with Handler's calls.
	Answered(peer elector.NodeID, ping Ping)
	// Refused says that this end or the other has refused a connection. peer is the name that
	// the other end claims, which may be anything; why has both ends' values. Refused may be
	// called at any time, from several goroutines, and must not block.
	Refused(peer elector.NodeID, reason Reason, why string)
}

// PeerInfo is what the handshake told about the process at the other end.
type PeerInfo struct {
	Node     elector.NodeID
	Identity uuid.UUID // of its data directory
	Boot     uint64    // its boot counter
	Remote   string    // address of its end of the connection
	Address  string    // host:port that it listens on, as seen from here
	Version  uint      // of the mesh's protocol, agreed between the two
	// Session is the number of the session of this link, for beats; 0 if the peer's build knows none.
	Session uint64
	// Meta is its Config.Meta, made printable and cut to MaxMeta bytes; "" from an older build.
	Meta string
	// Identities, if not nil, are to be kept for the next start: see Config.Identities.
	Identities []uuid.UUID
}

// Ping is when a ping and its answer passed, by Config.Clock of both ends.
type Ping struct {
	Sent, Back         time.Duration // here: when the ping left, when its answer was read
	Received, Answered time.Duration // there: when the ping came, when its answer left
}

// Clock is the clock by which leases are counted. It is read for every ping, from several
// goroutines, is always positive and never goes backwards.
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

// FaultLayer is put between the mesh and its network for tests and rehearsals: see package
// netmesh/fault.
type FaultLayer interface {
	// Cuts reports whether frames to or from peer are lost: no handshake can be completed.
	Cuts(peer elector.NodeID) bool
	// Wrap returns the connection to use after the handshake with peer. It reads from in,
	// which has all that conn has received since. Each Write to it is one frame.
	// CloseWrite fails if the last frame was lost.
	Wrap(peer elector.NodeID, conn net.Conn, in io.Reader) net.Conn
	// Datagram decides what becomes of a datagram to a peer, or of one that has come in from it:
	// it is lost, or it is sent after a while.
	Datagram(peer elector.NodeID, in bool) (after time.Duration, lost bool)
}
