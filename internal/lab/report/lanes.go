package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// state is what a lane shows of a node. States are ordered by importance: where there
// is room for only one, the greatest is shown.
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

// look says how a state is drawn and named.
type look struct{ Class, Name string }

var looks = [states]look{
	follower:  {"follower", "follower"},
	alone:     {"alone", "follower without leader"},
	leader:    {"leader", "leader"},
	paused:    {"paused", "paused"},
	down:      {"down", "down"},
	expired:   {"expired", "leader without lease"},
	candidate: {"candidate", "candidate"},
}

// piece is a part of a lane that is drawn in one way.
type piece struct {
	history.Span
	state state
}

// pieces cuts a lane where what is drawn of it changes: a leader's span ends
// early if its lease does. What was before 0 or after end is left out.
func pieces(l *history.Lane, end time.Duration) []piece {
	var all []piece
	for _, s := range l.Spans {
		s.From, s.To = max(s.From, 0), min(s.To, end)
		parts := []piece{{s, stateOf(s)}}
		if parts[0].state == leader {
			valid, lapsed := s, s
			valid.To = min(s.To, max(s.From, s.LeaseUntil))
			lapsed.From = valid.To
			parts = []piece{{valid, leader}, {lapsed, expired}}
		}
		for _, p := range parts {
			if p.From < p.To {
				all = append(all, p)
			}
		}
	}
	return all
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

// legend are the states that any lane shows, in the order in which they are
// explained.
func (s *sheet) legend() []look {
	var known []look
	for _, st := range []state{leader, expired, candidate, follower, alone, paused, down} {
		if s.occurs[st] {
			known = append(known, looks[st])
		}
	}
	return known
}

// laneName is the node's name; observers and those that never stand are marked.
func laneName(l *history.Lane) string {
	name := plain(string(l.Node))
	switch {
	case !l.Voter:
		return name + " (observer)"
	case !l.Candidate:
		return name + " (votes only)"
	}
	return name
}

// direction is one way of a link.
type direction struct{ from, to history.NodeID }

// band is a time in which the same directions are cut.
type band struct {
	from, to time.Duration
	text     string // what is cut
}

// bands divides the run into times with the same cuts; times without any are
// left out.
func bands(h *history.History) []band {
	type change struct {
		at  time.Duration
		way direction
		by  int // 1 where a cut begins, -1 where one ends
	}
	var changes []change
	for _, c := range h.Cuts {
		way, from, to := direction{c.From, c.To}, max(c.Start, 0), min(c.End, h.Duration)
		if from < to {
			changes = append(changes, change{from, way, 1}, change{to, way, -1})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var all []band
	cut := map[direction]int{}
	for i, c := range changes {
		if cut[c.way] += c.by; cut[c.way] == 0 {
			delete(cut, c.way)
		}
		if i+1 < len(changes) && changes[i+1].at > c.at && len(cut) > 0 {
			all = append(all, band{c.at, changes[i+1].at, describeCut(cut, h.Lanes)})
		}
	}
	return all
}

// describeCut names what is cut as the scenario format would: "a-b" for both
// directions, "a->b" for one, and "a-*" where a reaches nobody and nobody
// reaches a.
func describeCut(cut map[direction]int, lanes []history.Lane) string {
	var names []string
	isolated := map[history.NodeID]bool{}
	for i := range lanes {
		id, ways := lanes[i].Node, 0
		for way := range cut {
			if way.from == id || way.to == id {
				ways++
			}
		}
		if len(lanes) > 2 && ways == 2*(len(lanes)-1) {
			isolated[id] = true
			names = append(names, string(id)+"-*")
		}
	}
	for i := range lanes {
		for j := i + 1; j < len(lanes); j++ {
			a, b := lanes[i].Node, lanes[j].Node
			there, back := cut[direction{a, b}] > 0, cut[direction{b, a}] > 0
			switch {
			case isolated[a] || isolated[b]:
			case there && back:
				names = append(names, string(a)+"-"+string(b))
			case there:
				names = append(names, string(a)+"->"+string(b))
			case back:
				names = append(names, string(b)+"->"+string(a))
			}
		}
	}
	return plain(strings.Join(names, ", "))
}
