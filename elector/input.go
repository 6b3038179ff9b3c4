package elector

import (
	"time"

	"github.com/bmqelect/bmqelect/lsn"
)

// Input is something that happened to the node: one of Start, Carry, Lose, Backed, Covered, Tick,
// Received, LinkUp, LinkDown, Died, Measured, Tuned, Persisted, Publish, ChangeVoters, Confirm,
// Issued, Eligible, Prepared, Prefer, Guard, Transfer, Resign, Pause, Stop.
type Input interface{ isInput() }

// Start begins taking part, with what the disk knows.
type Start struct {
	Term     lsn.Term // Terms.Entered; 0 on first boot
	Reserved lsn.Term // Terms.Reserved; below Term it counts as Term
	Min      lsn.Term // a voter enters this term, if it is higher
	Led      bool     // before it ended it led last, as far as it knew: see Pause
	Record   Record   // the newest that it accepted
}

// Carry says that the pair of this node and its leader Peer carries this election in Term
// (Pairable), and that it heard its newest beat at At by this node's clock; 0 for none yet. The
// beat counts as a heartbeat that came then. The pair's detector watches the leader from then on,
// until the node follows no more, a link to Peer comes up, or Lose. Driver: step it before any
// other input, if there was a newer beat.
type Carry struct {
	Peer NodeID
	Term lsn.Term
	At   Time
}

// Lose says that this node is to follow Peer no more: in the term Term, because Peer said that it
// does not lead in it, or with 0 because the pair's detector suspects Peer.
type Lose struct {
	Peer NodeID
	Term lsn.Term
}

// Backed says which members have acknowledged a beat, and that their pairs carry this leadership.
// The driver took the acknowledgements before the lease that the leader had then ended. Step it
// before any other input, with all acknowledgements since the last time. By is not kept.
type Backed struct{ By []Backing }

// Backing is the newest acknowledgement of Peer, on that data directory, of a beat that was sent at
// SentAt by this leader's clock.
type Backing struct {
	Peer     NodeID
	Identity Identity
	SentAt   Time
}

// Covered says whether beats tell all connected members that this leader leads, except for those
// that LinkUp is still to tell of. Then it sends heartbeats only if they tell something new, and
// the driver watches the end of its lease: it steps the machine with Backed and Tick by then.
type Covered struct{ All bool }

// Tick says that time has passed.
type Tick struct{}

// Received hands over a message from a peer. The driver vouches that From is the member at the
// other end of the link, and that Identity is that of its data directory. It hands over a
// RecordOffer only when it has the whole value, and the hash of that is right.
type Received struct {
	From     NodeID
	Identity Identity
	Message  Message
}

// LinkUp says that a link to Peer was established.
type LinkUp struct{ Peer NodeID }

// LinkDown says that the link to Peer is gone. It is a hint: no promise ends by it.
type LinkDown struct {
	Peer     NodeID
	Evidence Evidence
}

// Died says that the process which ran Peer until now is proven dead. Promises made to it are
// void. The machine does not number the processes of one name. So the driver must say Died before
// the LinkUp of the next process, and never about an older process after that LinkUp. It must not
// say Died either while an earlier process of that name, which is not proven dead, may rely on a
// promise (§6.9): until Timing.Promise has passed since the LinkUp of its successor. Otherwise the
// promise to a living leader would be void, and two nodes could lead.
type Died struct {
	Peer  NodeID
	Proof Proof
}

// Measured says how long a round trip takes to the farthest of the nearest voters that are a
// majority with this node, by the newest measurements: see TripToMajority. 0 if that is not
// known. Turns (§3.14) and the least wait between two rounds (§3.12) use it.
type Measured struct{ RoundTrip time.Duration }

// HeldUp says how much later than it asked for the machine is stepped: the process did not run,
// and unread messages may wait. Before the machine gives anybody up for silence it waits as long
// again, at most a heartbeat period (§7.12). Step it with HeldUp before any other input, and not
// again for the deadline that it has postponed.
type HeldUp struct{ For time.Duration }

// Tuned says what Config.QoS needs on the link from Peer, by the newest estimates (§14.2). It
// applies to leaderships of Peer, and replaces what was said about another peer. The machine
// ignores a plan that breaks §14.5. Only a machine with Config.QoS uses Tuned.
type Tuned struct {
	Peer      NodeID
	Period    time.Duration // of Peer's heartbeats, that this node needs
	Detection time.Duration // T_D^u: how long after a scheduled heartbeat Peer is suspected
}

// Persisted says that the terms up to Term are reserved on disk, Terms.Reserved, and, if Record is
// not zero, that the record of that LSN is there (Effects.Accept).
type Persisted struct {
	Term   lsn.Term
	Record lsn.LSN
}

// Publish asks a leader to write a value, of which the driver names size and hash. It is ignored
// where Machine.Publishable says why not. In an election without a record the leader writes the
// first one instead, which has no value (§15.14): ask again. The value is committed when
// Machine.Record shows it, under the LSN that Machine.Record had for it after this step.
type Publish struct{ Value Value }

// ChangeVoters asks a leader to add a voter, whose Identity must be known, or to remove one: §15.8.
// The leader does so as soon as it may. It remembers one change at a time; the zero ChangeVoters
// gives that up if it is not written yet. It is ignored where Machine.Changeable says why not. It
// is done when the committed record of Machine.Record shows it.
type ChangeVoters struct {
	Add    Voter
	Remove NodeID
}

// Confirm asks a leader for a proof that it leads: a round of heartbeats that began after the call
// (§7.13). Machine.Confirmed tells the result. Each broadcast repeats a round that was lost. It is
// ignored where Machine.Confirmable says why not.
type Confirm struct{}

// Issued says that the application, as leader, has issued LSNs up to LSN.
type Issued struct{ LSN lsn.LSN }

// Eligible says whether the application can lead on this node. A new machine is
// able. The word holds until the next one, in every role and over a Stop.
// A node that is not able votes and follows, but does not stand; a candidate
// withdraws; a leader hands over to the best successor as soon as there is one,
// and leads on until then.
type Eligible struct{ Able bool }

// Prepared says whether the application of this node would work at once if the node led. A machine
// that has never heard it belongs to an application that needs no preparation. The leader prefers a
// successor that is prepared, and hands over only then, for Config.Prepare at most: §9.14.
type Prepared struct{ Ready bool }

// Prefer replaces Config.Priority. Peers learn of it with the next ack or question.
type Prefer struct{ Priority int }

// Guard says that guarded work of the application began (Held) or has stopped:
// work that no two nodes may do at a time. A leader asks for it to stop
// (Effects.StopWork) and waits for that before it cedes. It belongs to one
// leadership, re-affirmations included, and is ignored where this node does not
// lead; so is a begin after the work was told to stop.
type Guard struct{ Held bool }

// Transfer asks a leader to hand over to To, or to the best follower if To is "".
// It is ignored where Machine.Transferable says why not, and while a stronger
// cause hands over already. The leader steps down when the target has acked a
// heartbeat and its guarded work has stopped; without that ack, or if the target
// is not fit any more when the work has stopped, it leads on.
type Transfer struct{ To NodeID }

// Resign asks a leader to step down, whether or not there is a successor, once
// its guarded work has stopped. For Rest from now, at most 24h, the node does not
// stand for election, whatever its role; a candidate withdraws. A rest replaces
// the one before; a Rest of 0 or less does nothing on a node that does not lead,
// and leaves its rest as it is.
type Resign struct{ Rest time.Duration }

// Pause keeps leadership where it is for the given time, at most 24h (§9.13): the node
// does not stand, unless it led last as far as it knows or a leader names it its
// successor; a leader hands over only by Transfer. A pause replaces the one before, also
// on a node that has not started; For of 0 or less ends it.
type Pause struct{ For time.Duration }

// Stop asks the node to stop taking part. A leader cedes to the best follower,
// after its guarded work has stopped; a second Stop changes nothing meanwhile.
type Stop struct {
	// Abrupt makes it leave at once and without a cession, so that the promises
	// made to it run out by themselves: guarded work that goes on until the end
	// of the lease stays alone.
	Abrupt bool
}

func (Start) isInput()        {}
func (Carry) isInput()        {}
func (Lose) isInput()         {}
func (Backed) isInput()       {}
func (Covered) isInput()      {}
func (Tick) isInput()         {}
func (Received) isInput()     {}
func (LinkUp) isInput()       {}
func (LinkDown) isInput()     {}
func (Died) isInput()         {}
func (Measured) isInput()     {}
func (HeldUp) isInput()       {}
func (Tuned) isInput()        {}
func (Persisted) isInput()    {}
func (Publish) isInput()      {}
func (ChangeVoters) isInput() {}
func (Confirm) isInput()      {}
func (Issued) isInput()       {}
func (Eligible) isInput()     {}
func (Prepared) isInput()     {}
func (Prefer) isInput()       {}
func (Guard) isInput()        {}
func (Transfer) isInput()     {}
func (Resign) isInput()       {}
func (Pause) isInput()        {}
func (Stop) isInput()         {}

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
)

var evidenceNames = [...]string{
	"none", "eof", "reset", "refused", "timeout", "goodbye", "local",
}

// String returns the evidence's name in lower case.
func (e Evidence) String() string { return nameOf(evidenceNames[:], e, "evidence") }

// Proof is a proof that a peer's process is gone. Its zero is invalid.
type Proof uint8

const (
	// ProofRefusedAfterEOF is the proof of §6.5: the evidence connection (§6.8) ended with a FIN,
	// and a new dial was refused.
	ProofRefusedAfterEOF Proof = iota + 1
	// ProofReincarnated is the proof of §6.6: the same identity came back with a higher
	// boot counter, after its kernel had ended the evidence connection by a FIN.
	ProofReincarnated
	// ProofCertified is the other proof of §6.5: the parent of the process has waited for its
	// end, and sent the certificate of that over the evidence connection.
	ProofCertified
)

var proofNames = [...]string{"none", "refused-after-eof", "reincarnated", "certified"}

// String returns the proof's name.
func (p Proof) String() string { return nameOf(proofNames[:], p, "proof") }
