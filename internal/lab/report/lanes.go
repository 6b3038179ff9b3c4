package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/words"
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
	rival           // a leader while another node holds itself for the leader, too
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
	rival:     {"rival", "rival leader"},
}

// reign is a time in which the same nodes lead. Several are those that hold themselves for
// the leader, whoever follows them; a single one is whom the cluster follows.
type reign struct {
	from, to time.Duration
	leaders  []history.NodeID
}

// String says who leads.
func (r reign) String() string {
	names := plain(words.List(r.leaders))
	switch n := len(r.leaders); n {
	case 0:
		return "nobody leads"
	case 1:
		return names + " leads"
	case 2:
		return "two leaders: " + names
	default:
		return fmt.Sprintf("%d leaders: %s", n, names)
	}
}

// reignsOf are the leaders of a run from its beginning to its end, without gaps.
func reignsOf(h *history.History) (all []reign) {
	moments := append(h.Moments(0, h.Duration), h.Duration)
	for i, t := range moments[:len(moments)-1] {
		leaders := h.ClaimantsAt(t)
		if len(leaders) < 2 {
			without := func(id history.NodeID) bool { return id == "" }
			leaders = slices.DeleteFunc([]history.NodeID{h.LeaderAt(t)}, without)
		}
		if n := len(all); n == 0 || !slices.Equal(all[n-1].leaders, leaders) {
			all = append(all, reign{from: t, leaders: leaders})
		}
		all[len(all)-1].to = moments[i+1]
	}
	return all
}

// piece is a part of a lane that is drawn in one way.
type piece struct {
	history.Span
	state state
	among reign // of a rival
}

// pieces cuts a lane where what is drawn of it changes: at the end of a leader's lease, and
// where another node leads beside it. What was before 0 or after end is left out.
func pieces(l *history.Lane, reigns []reign, end time.Duration) (all []piece) {
	for _, s := range l.Spans {
		first, to := len(all), min(s.To, end)
		for at := max(s.From, 0); at < to; {
			p := piece{Span: s, state: stateOf(s)}
			p.From, p.To = at, to
			if s.Leader == l.Node && p.state != down {
				p.lead(reigns)
			}
			at = p.To
			if last := len(all) - 1; last >= first && all[last].state == p.state && p.state != rival {
				all[last].To = p.To
			} else {
				all = append(all, p)
			}
		}
	}
	return all
}

// lead ends a leader's piece where its lease or the reign at its beginning does.
func (p *piece) lead(reigns []reign) {
	if p.From >= p.LeaseUntil {
		if p.state == leader {
			p.state = expired
		}
		return
	}
	p.To = min(p.To, p.LeaseUntil)
	i, _ := slices.BinarySearchFunc(reigns, p.From+1, func(r reign, t time.Duration) int {
		return cmp.Compare(r.to, t)
	})
	if i < len(reigns) && len(reigns[i].leaders) > 1 {
		p.state, p.among = rival, reigns[i]
	}
	if i < len(reigns) {
		p.To = min(p.To, reigns[i].to)
	}
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

// version is a time in which one record was the newest committed one.
type version struct {
	from, to time.Duration
	history.Record
}

// label is the version in a few words: who votes, and the value.
func (v version) label() string {
	if v.Value == "" {
		return v.LSN.String() + " " + plain(words.List(v.Voters))
	}
	return v.LSN.String() + " " + plain(v.Value) + ": " + plain(words.List(v.Voters))
}

// String says all of it.
func (v version) String() string {
	text := "record " + v.LSN.String()
	if v.Value != "" {
		text += ", " + plain(v.Value)
	}
	return text + ", voters " + plain(words.List(v.Voters))
}

// versionsOf are the records that were committed in a run, as far as any node knew then.
func versionsOf(h *history.History) (all []version) {
	moments := append(h.Moments(0, h.Duration), h.Duration)
	for i, t := range moments[:len(moments)-1] {
		newest, _ := h.NewestAt(t)
		n := len(all)
		switch {
		case newest.LSN.IsZero():
			continue
		case n == 0 || all[n-1].LSN.Less(newest.LSN):
			all = append(all, version{from: t, Record: newest})
		case newest.LSN != all[n-1].LSN: // who knows a newer one is down
			continue
		}
		all[len(all)-1].to = moments[i+1]
	}
	return all
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
