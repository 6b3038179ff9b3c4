// Package ring elects on a ring, in which each member sends only to the next one: the
// algorithm of Chang and Roberts (1979), and the list ring of textbooks. The highest
// identifier among those that the ring closes over leads.
//
// Chang-Roberts: who starts an election sends ELECTION with its own identifier. Who gets one
// passes it on if the identifier is higher than its own; if it is lower, it sends its own in
// its place, unless it takes part already: then it swallows it. Whose own identifier comes back
// has won, and sends ELECTED around. List: ELECTION carries a list, to which each member
// appends itself. Who finds itself on the list elects the highest of it, and sends ELECTED
// around.
//
// On the ring members stand in the order of their names; identifiers are those of
// Config.Order, the first is the highest. Where the sources are silent or need it:
//
//   - The next member is the next to which there is a link; alone, a member is its own next.
//   - Tokens, as ELECTION and ELECTED are called here, have their initiator and a round: one
//     above all that the initiator has heard of. ELECTION passes a member once, and on a list
//     twice; ELECTED once. Otherwise the token of a dead initiator would go around for ever.
//     ELECTED so ends where it began; one source ends it at the leader, and members between
//     there and the initiator would never hear of it.
//   - Who takes part and has not got ELECTED after T_r = 3 n delays starts again: a token is
//     lost with the member that has it. The delay is half of Timing.ElectionResult.
//   - A leader sends HEARTBEAT to all each Timing.HeartbeatBroadcast; its silence for
//     Timing.Inactivity starts an election. So does, at a leader, the heartbeat of another: two
//     leaders would stay after a partition.
//   - A member that starts or recovers waits for Timing.ElectionResult, so that there are
//     links, and then starts an election: the highest takes its place again.
//   - A member that restarts counts rounds from 1 again. Its tokens are dropped, as ones that
//     have passed, until a heartbeat or a token tells it of the newest round.
//   - Who takes part already when it would start an election waits for T_r instead.
//   - A leader leads until it gets ELECTED for another. Nothing is durable.
//
// Messages of an election: ELECTION 2n - 1 at best and n(n-1)/2 + n at worst, n H_n on average,
// if all start it; ELECTED n. List: always n and n for each initiator.
//
// Guaranteed: on a ring that stays whole all elect the same leader, the highest. Not
// guaranteed: a stable leader, since a higher one that recovers takes over. Nor is one leader
// at a time. In a partition each part closes to a ring of its own and has a leader. Where links
// are lost but no partition is, a member whose successors are all out of reach is a ring of
// its own, and two halves of a path may each close. A token that is lost costs T_r, which
// grows with n.
package ring

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

const repaired = "who is out of reach is skipped, and a lost token sent again after T_r"

// The two algorithms.
var (
	Ring = algorithm.Algorithm{
		Name:   "ring",
		Title:  "Ring",
		Source: "Chang and Roberts, An improved algorithm for decentralized extrema-finding, 1979",
		New:    maker(false),
		Tuned:  tuned, Deviates: repaired,
	}
	List = algorithm.Algorithm{
		Name:   "ring-list",
		Title:  "Ring with a list",
		Source: "textbooks, after Le Lann, Distributed systems: towards a formal approach, 1977",
		New:    maker(true),
		Tuned:  tuned, Deviates: repaired,
	}
)

// tuned lets T_r be the longest time of an election: 3n hops.
func tuned(t elector.Timing, l algorithm.Link) elector.Timing {
	t.ElectionResult = 2 * l.Longest()
	return t
}

// Election is a token that looks for the highest identifier.
type Election struct {
	// IDs are the initiator's, and in a list ring those of all that it passed since.
	IDs   []algorithm.NodeID
	Round lsn.Term
}

// Elected is a token that tells who leads.
type Elected struct {
	Leader    algorithm.NodeID
	Initiator algorithm.NodeID // of the Election
	Round     lsn.Term         // of the Election
}

// Heartbeat says that the sender leads.
type Heartbeat struct {
	Round lsn.Term // in which it was elected
}

// Name is what the source calls the message.
func (Election) Name() string  { return "ELECTION" }
func (Elected) Name() string   { return "ELECTED" }
func (Heartbeat) Name() string { return "HEARTBEAT" }
