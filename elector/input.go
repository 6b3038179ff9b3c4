package elector

import (
	"fmt"

	"github.com/bmqelect/bmqelect/lsn"
)

// Moment is what the outside gives to every step: the time, and entropy.
type Moment struct {
	Now     Time   // the node's monotonic clock; positive, never earlier than in the step before
	Entropy uint64 // a uniformly random word; read if the step draws a back-off or opens a round
}

// Input is something that happened to the node: one of Start, Tick, Received,
// LinkUp, LinkDown, Died, Persisted, Issued, Transfer, Stop.
type Input interface{ isInput() }

// Start begins taking part, with what the disk knows.
type Start struct {
	Term lsn.Term // the durable term; 0 on first boot
}

// Tick says that time has passed.
type Tick struct{}

// Received hands over a message from a peer. The driver vouches that From is
// the member at the other end of the link.
type Received struct {
	From    NodeID
	Message Message
}

// LinkUp says that a link to Peer was established.
type LinkUp struct{ Peer NodeID }

// LinkDown says that the link to Peer is gone. It is a hint: no promise ends by it.
type LinkDown struct {
	Peer     NodeID
	Evidence Evidence
}

// Died says that the process which ran Peer until now is proven dead
// (PROTOCOL.md section 5, proofs a and b). Promises made to it are void.
type Died struct {
	Peer  NodeID
	Proof Proof
}

// Persisted says that Term, and every term below it, is on disk.
type Persisted struct{ Term lsn.Term }

// Issued says that the application, as leader, has issued LSNs up to LSN.
type Issued struct{ LSN lsn.LSN }

// Transfer asks a leader to hand over to To, or to the best follower if To is "".
// It is ignored where Machine.Transferable says why not. The leader steps down
// when the target has acked a heartbeat; without that it leads on.
type Transfer struct{ To NodeID }

// Stop asks the node to stop taking part. A leader cedes to the best follower.
type Stop struct{}

func (Start) isInput()     {}
func (Tick) isInput()      {}
func (Received) isInput()  {}
func (LinkUp) isInput()    {}
func (LinkDown) isInput()  {}
func (Died) isInput()      {}
func (Persisted) isInput() {}
func (Issued) isInput()    {}
func (Transfer) isInput()  {}
func (Stop) isInput()      {}

// Evidence says how a link ended, or why it could not be made.
type Evidence uint8

// The ways in which a link ends. EvidenceGoodbye means that the peer, alive,
// closed it on purpose.
const (
	EvidenceNone    Evidence = iota
	EvidenceEOF              // the peer's kernel sent FIN, without the mesh's goodbye
	EvidenceReset            // connection reset
	EvidenceRefused          // a dial was refused: nobody listens there
	EvidenceTimeout          // silence for too long, or a dial without answer
	EvidenceGoodbye          // the peer said goodbye
	EvidenceLocal            // this node closed it
	evidenceEnd
)

var evidenceNames = [evidenceEnd]string{"none", "eof", "reset", "refused", "timeout", "goodbye", "local"}

// String returns the evidence's name in lower case.
func (e Evidence) String() string {
	if e < evidenceEnd {
		return evidenceNames[e]
	}
	return fmt.Sprintf("evidence(%d)", uint8(e))
}

// Proof is a proof that a peer's process is gone.
type Proof uint8

const (
	// ProofNone is the invalid zero.
	ProofNone Proof = iota
	// ProofRefusedAfterEOF is proof (a): an established link ended with FIN and
	// without goodbye, and a new dial was refused.
	ProofRefusedAfterEOF
	// ProofReincarnated is proof (b): the same identity came back with a higher
	// boot counter.
	ProofReincarnated
)

// String returns the proof's name.
func (p Proof) String() string {
	switch p {
	case ProofNone:
		return "none"
	case ProofRefusedAfterEOF:
		return "refused-after-eof"
	case ProofReincarnated:
		return "reincarnated"
	}
	return fmt.Sprintf("proof(%d)", uint8(p))
}
