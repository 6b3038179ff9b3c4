// Package storeliveness is CockroachDB's store liveness: which stores support which, and until
// when. Package raft builds the row store-liveness on it. Of cockroachdb/cockroach were read
// pkg/kv/kvserver/storeliveness (README.md, requester_state.go, supporter_state.go and
// support_manager.go), and pkg/base/config.go for the timers. The rules:
//
//   - Each store asks all others for support, by a heartbeat every period: for an epoch, until an
//     expiration that is the support's duration ahead on the asking store's clock.
//   - A store that gets a heartbeat of the epoch in which it supports the sender, or of a higher
//     one, supports the sender until that expiration; a heartbeat of a lower epoch changes nothing.
//     It answers with its support as it then is, once that is durable. The sender ignores answers
//     of lower epochs than its own.
//   - Support whose expiration has passed on the supporter's clock is withdrawn: its epoch grows by
//     one, so that nobody can extend it. The answer to the next heartbeat says so.
//   - Clocks are hybrid: every message carries its sender's, and its receiver's goes forward to
//     that.
//   - A store that restarts ignores messages until all support that it asked for has expired, then
//     asks in a new epoch. What it gives is on disk, and is not withdrawn for a time of grace.
//
// Departures: a store supports itself without messages. Expirations are acted on when they pass,
// not every 100 ms. Every store asks all others, where in the source only stores that share a range
// do. Heartbeats are sent each Timing.HeartbeatBroadcast, support lasts Timing.Inactivity, and the
// grace 13/3 of that: 1 s, 3 s and 13 s by the source's defaults.
package storeliveness

import (
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// Support is what one store has from another, until a reading of the hybrid clock.
type Support struct {
	Epoch      uint64
	Expiration algorithm.Time // 0 if it was withdrawn
}

// extend takes support of a higher epoch, and a later expiration in the same one.
func (s *Support) extend(to Support) {
	if to.Epoch > s.Epoch {
		*s = to
	} else if to.Epoch == s.Epoch {
		s.Expiration = max(s.Expiration, to.Expiration)
	}
}

// Heartbeat asks for Support.
type Heartbeat struct {
	Support
	Now algorithm.Time // on the sender's hybrid clock
}

// HeartbeatResp answers with what the sender supports the receiver with.
type HeartbeatResp Heartbeat

// Disk is what is durable. It is not changed once it was made.
type Disk struct {
	MaxEpoch     uint64         // in which support was asked for
	MaxRequested algorithm.Time // and until when
	For          [member.MaxMembers]Support
}

// Store is one member's. It is not safe for concurrent use.
type Store struct {
	*member.Member
	state Disk
	saved *Disk
	from  []Support // by rank: what others support this store with
	seen  algorithm.Time
	Awake bool           // false until a store that restarts has waited
	grace algorithm.Time // nothing is withdrawn before
	beat  member.Timer
}

// Begin makes a store of what Disk returned last; nil on a new disk.
func Begin(m *member.Member, disk *Disk) *Store {
	s := &Store{Member: m, saved: &Disk{}, from: make([]Support, len(m.Cfg.Order))}
	if disk != nil {
		s.state, s.saved = *disk, disk
	}
	return s
}

// Disk returns what is to be saved now, the same pointer if nothing has changed.
func (s *Store) Disk() *Disk {
	if s.state != *s.saved {
		saved := s.state
		s.saved = &saved
	}
	return s.saved
}

// Clock reads the hybrid clock.
func (s *Store) Clock() algorithm.Time { return max(s.Now+s.Skew, s.seen) }

// Own is what the member's own clock reads when the hybrid one reads t, if nobody is ahead.
func (s *Store) Own(t algorithm.Time) algorithm.Time { return t - s.Skew }

// For returns the epoch in which this store supports the member of a rank; 0 if it does not.
func (s *Store) For(rank int) uint64 {
	if given := s.state.For[rank]; given.Expiration != 0 {
		return given.Epoch
	}
	return 0
}

// From returns the epoch in which the member of a rank supports this store; 0 if it does not.
func (s *Store) From(rank int) uint64 {
	if mine := s.from[rank]; mine.Expiration > s.Clock() {
		return mine.Epoch
	}
	return 0
}

// Until is the reading of the hybrid clock until which a quorum supports this store. With epochs,
// one for each rank, only support in these counts.
func (s *Store) Until(epochs []uint64) algorithm.Time {
	ends := make([]algorithm.Time, len(s.from))
	for i, mine := range s.from {
		if epochs == nil || epochs[i] == mine.Epoch {
			ends[i] = mine.Expiration
		}
	}
	slices.Sort(ends)
	return ends[len(ends)-s.Cfg.Elector.QuorumSize()]
}

// Receive acts on a message, and reports whether it was for the store.
func (s *Store) Receive(from int, msg algorithm.Message) bool {
	switch msg := msg.(type) {
	case Heartbeat:
		s.seen = max(s.seen, msg.Now)
		s.Hold(from, HeartbeatResp{s.support(from, msg.Support), s.Clock()})
	case HeartbeatResp:
		s.seen = max(s.seen, msg.Now)
		s.supported(from, msg.Support)
	default:
		return false
	}
	return true
}

// support extends what this store gives.
func (s *Store) support(to int, asked Support) Support {
	s.state.For[to].extend(asked)
	return s.state.For[to]
}

// supported notes what this store is given.
func (s *Store) supported(by int, given Support) {
	s.state.MaxEpoch = max(s.state.MaxEpoch, given.Epoch)
	s.from[by].extend(given)
}

// Tick withdraws what has expired, and reports whether it has sent heartbeats. It returns when to
// do more.
func (s *Store) Tick() (wake algorithm.Time, beats bool) {
	if !s.Awake && s.Clock() < s.state.MaxRequested {
		return s.Own(s.state.MaxRequested), false
	}
	if !s.Awake {
		s.Awake, s.beat = true, s.After(0)
		s.grace = s.Now.Add(s.Timing.Inactivity() * 13 / 3)
		s.state.MaxEpoch++
		for i := range s.from {
			s.from[i].Epoch = s.state.MaxEpoch
		}
	}
	wake = elector.Never
	for i := range s.from {
		given := &s.state.For[i]
		switch {
		case given.Expiration == 0:
		case given.Expiration > s.Clock() || s.Now < s.grace:
			wake = min(wake, max(s.Own(given.Expiration), s.grace))
		default:
			*given = Support{Epoch: given.Epoch + 1}
		}
	}
	if beats = s.Due(&s.beat); beats {
		s.ask()
	}
	return min(wake, s.beat.When()), beats
}

func (s *Store) ask() {
	s.beat = s.After(s.Timing.HeartbeatBroadcast)
	until := max(s.state.MaxRequested, s.Clock().Add(s.Timing.Inactivity()))
	s.state.MaxRequested = until
	for i := range s.Others {
		s.Hold(i, Heartbeat{Support{s.from[i].Epoch, until}, s.Clock()})
	}
	s.supported(s.Self, s.support(s.Self, Support{s.from[s.Self].Epoch, until}))
}
