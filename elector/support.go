package elector

import "github.com/bmqelect/bmqelect/scouting"

// Support holds, by voter, the send time of the newest proposal or heartbeat of
// this node that the voter has acked; 0 for none.
type Support [scouting.MaxVoters]Time

// ack notes that voter acked what was sent at sentAt. It reports false, and
// notes nothing, for an echo of what cannot have been sent: before since, or
// in the future. Such an echo could keep a lease alive for ever.
func (s *Support) ack(voter int, sentAt, since, now Time) bool {
	if sentAt < since || sentAt > now {
		return false
	}
	s[voter] = max(s[voter], sentAt)
	return true
}

// quorumAt is the send time of the newest message that a quorum has acked, self
// included: the (quorum-1)-th newest ack of the others; 0 if so many have not
// acked at all. A quorum of one needs nobody's.
func (s *Support) quorumAt(self, n, quorum int) Time {
	if quorum <= 1 {
		return Never
	}
	// newest holds the quorum-1 highest acks so far in descending order.
	var newest [scouting.MaxVoters]Time
	for voter := range n {
		if voter == self {
			continue
		}
		insertDescending(newest[:quorum-1], s[voter])
	}
	return newest[quorum-2]
}

// insertDescending puts t in its place and lets the lowest drop out.
func insertDescending(ts []Time, t Time) {
	for i := range ts {
		if t > ts[i] {
			t, ts[i] = ts[i], t
		}
	}
}
