package report

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// state is what a lane shows of a node. They are ordered by how much they must
// not be overlooked: where there is room for one only, the greatest is shown.
type state uint8

const (
	follower  state = iota
	alone           // a follower that follows nobody
	leader          // with a valid lease
	paused          // whatever its role
	down            // no process, or one that has not started its elector
	expired         // a leader whose lease ran out
	candidate       // mostly so short that it would be lost otherwise
	states
)

// looks says how each state is named. Letters must differ without color.
var looks = [states]struct {
	letter rune
	class  string // in pictures
	name   string
}{
	follower:  {'F', "follower", "follower"},
	alone:     {'f', "alone", "follower without leader"},
	leader:    {'L', "leader", "leader"},
	paused:    {'-', "paused", "paused"},
	down:      {'x', "down", "down"},
	expired:   {'l', "expired", "leader without lease"},
	candidate: {'C', "candidate", "candidate"},
}

// legend is the order in which pictures explain states.
var legend = []state{leader, expired, candidate, follower, alone, paused, down}

// piece is a part of a lane that is drawn in one way.
type piece struct {
	history.Span
	state state
}

// pieces cuts a lane where what is drawn of it changes: a leader's span ends
// early if its lease does. What was before 0 or after end is left out.
func pieces(l *history.Lane, end time.Duration) []piece {
	var all []piece
	add := func(s history.Span, st state) {
		if s.From < s.To {
			all = append(all, piece{s, st})
		}
	}
	for _, s := range l.Spans {
		s.From, s.To = max(s.From, 0), min(s.To, end)
		st := stateOf(s)
		if st != leader {
			add(s, st)
			continue
		}
		valid, lapsed := s, s
		valid.To = min(s.To, max(s.From, s.LeaseUntil))
		lapsed.From = valid.To
		add(valid, leader)
		add(lapsed, expired)
	}
	return all
}

// stretches joins neighbors that look the same whatever their terms.
func stretches(all []piece) []piece {
	var joined []piece
	for _, p := range all {
		if n := len(joined); n > 0 && joined[n-1].state == p.state && joined[n-1].To == p.From {
			joined[n-1].To = p.To
			continue
		}
		joined = append(joined, p)
	}
	return joined
}

// stateOf is the state at the beginning of a span, a leader's lease apart.
func stateOf(s history.Span) state {
	switch {
	case s.Process == history.Down || s.Role == elector.Dormant:
		return down
	case s.Process == history.Paused:
		return paused
	case s.Role == elector.Leader:
		return leader
	case s.Role == elector.Candidate:
		return candidate
	case s.Leader == "":
		return alone
	}
	return follower
}
