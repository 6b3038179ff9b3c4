package pair_test

import (
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/lsn"
)

// leader is a node that may lead, by the vote of the follower or of others: what its machine would
// do, and the glue of cluster/internal/loop.
type leader struct {
	dead    bool
	proven  bool     // its death is, to the follower
	term    lsn.Term // that it leads in; 0 if it does not
	since   elector.Time
	own     elector.Time // when the newest was sent that the follower acknowledged itself
	lease   elector.Time // its end, as far as the follower backs it; 0 for none
	asked   lsn.Term     // in which it has proposed itself; 0 if it does not wait for a vote
	askedAt elector.Time
	session *leading
}

// leading is the leader's end of a link to the follower.
type leading struct {
	number int
	leads  *pair.Leader
	anew   bool
}

func (l leader) clone() leader {
	if l.session != nil {
		s := *l.session // it shares what is led, until own
		l.session = &s
	}
	return l
}

// own is what is led, to be changed.
func (s *leading) own() *pair.Leader {
	s.leads = s.leads.Clone()
	return s.leads
}

// tells sends from a leader to the follower, if its end of the link is up.
func (w *world) tells(from int, it item) {
	l := &w.links[from]
	if s := w.leaders[from].session; s != nil && !l.broken {
		l.down = append(slices.Clone(l.down), it)
	}
}

func (w *world) heartbeat(i int) {
	l := &w.leaders[i]
	w.tells(i, item{msg: elector.Message{
		Kind: elector.LeaderHeartbeat, Term: l.term, Sequence: 1, SentAt: w.now,
	}})
}

// propose lets a node stand in the next term, or a leader re-affirm itself.
func (w *world) propose(i int, term lsn.Term) {
	l := &w.leaders[i]
	w.term = max(w.term, term)
	l.asked, l.askedAt = term, w.now
	w.tells(i, item{msg: elector.Message{Kind: elector.ElectionProposal, Term: term, SentAt: w.now}})
}

// lead begins a leadership, or goes on with it in a higher term.
func (w *world) lead(i int, term lsn.Term, since, own elector.Time) {
	l := &w.leaders[i]
	before := l.term
	if before == 0 {
		l.since, l.own, l.lease = since, 0, 0
	}
	l.term, l.asked, l.askedAt, l.own = term, 0, 0, max(l.own, own)
	w.heartbeat(i)
	w.noteLeads(i, before)
}

// cede gives up all that a node leads or stands for.
func (w *world) cede(i int, says bool) {
	l := &w.leaders[i]
	if term := max(l.term, l.asked); says {
		w.tells(i, item{msg: elector.Message{Kind: elector.LeadershipCession, Term: term}})
	} else {
		w.tells(i, item{msg: elector.Message{Kind: elector.NodeUnavailable, Term: term}})
	}
	before := l.term
	l.term, l.since, l.own, l.lease, l.asked, l.askedAt = 0, 0, 0, 0, 0, 0
	w.noteLeads(i, before)
}

// noteLeads tells the follower that a leadership which it follows has ended: §16.8.
func (w *world) noteLeads(i int, before lsn.Term) {
	s := w.leaders[i].session
	if s == nil || before == 0 || before == w.leaders[i].term {
		return
	}
	if w.x.broken == mirrorMoves && w.leaders[i].term == 0 && s.leads.Follows(group, before) {
		s.own().Read(pair.Change{What: pair.Leave, Revision: s.leads.Revision() + 1, Group: group})
		return
	}
	if s.leads.Follows(group, before) {
		w.disown(i, before)
	}
}

func (w *world) checkLed(i int, term lsn.Term) {
	if w.leaders[i].term != term {
		w.disown(i, term)
	}
}

func (w *world) disown(i int, term lsn.Term) {
	c, down := item{change: pair.Change{What: pair.Disown, Group: group, Term: term}}, w.links[i].down
	said := len(down) > 0 && down[len(down)-1] == c // at most once a period
	if !said && w.x.broken != neverDisowns {
		w.tells(i, c)
	}
}

// tickLeader lets a leader find out that its lease has ended, if it needs the follower's.
func (w *world) tickLeader(i int) {
	l := &w.leaders[i]
	if l.term != 0 && !w.x.others && l.lease <= w.now {
		w.cede(i, true)
	}
}

// count lets the lease of a leader grow by what its session and its own messages were answered.
func (w *world) count(i int) error {
	l := &w.leaders[i]
	if l.term == 0 {
		return nil
	}
	at := l.own
	if s := l.session; s != nil {
		switch support := s.leads.Support(group, l.term); {
		case w.x.broken == anyTerm && s.leads.Term(group) != 0:
			at = max(at, s.leads.Counted())
		case support >= l.since || w.x.broken == anyTerm:
			at = max(at, support)
		}
	}
	if at == 0 || at+lease <= l.lease {
		return nil
	}
	if ended := l.lease != 0 && l.lease <= w.now; ended && !w.x.others && at+lease > w.now {
		return violation("the lease of %s in term %d comes back after its end", names[i], l.term)
	}
	l.lease = at + lease
	return nil
}

// ring sends a beat: §16.1, §16.8.
func (w *world) ring(i int) {
	s := w.leaders[i].session
	if s.leads.Len() == 0 {
		return
	}
	b := s.own().Beat(w.now, 1, 0)
	w.beats = append(slices.Clone(w.beats), datagram{peer: i, number: s.number, beat: b})
	s.own().Look(1, func(_ string, term lsn.Term) { w.checkLed(i, term) })
}

// acked counts the answer to a beat: §16.4.
func (w *world) acked(i int, a pair.Ack) error {
	if w.x.broken != syncLate {
		w.tickLeader(i)
	}
	s := w.leaders[i].session
	if w.x.broken == anyRevision {
		a.Revision = 0
	}
	before := s.leads.Counted()
	s.own().Acked(a)
	if w.x.broken == fromArrival && s.leads.Counted() != before {
		w.leaders[i].own = w.now
	}
	return w.count(i)
}

// changed takes a change of what the follower follows.
func (w *world) changed(i int, c pair.Change) error {
	if w.x.broken != tickless {
		w.tickLeader(i)
	}
	s := w.leaders[i].session
	switch {
	case c.What == pair.Empty:
		s.anew = false
	case w.x.broken == unnoticedGap:
		c.Revision = s.leads.Revision() + 1
	}
	if !s.own().Read(c) {
		if !s.anew && w.x.broken != neverAnew && w.x.broken != neverBegins {
			s.anew = true
			w.tells(i, item{change: pair.Change{What: pair.Begin}})
		}
		return nil
	}
	s.own().Count()
	if err := w.count(i); err != nil {
		return err
	}
	if c.What == pair.Join || c.What == pair.Observe {
		w.checkLed(i, c.Term)
		if s.leads.Counts()[0] == 0 {
			w.ring(i) // the first beat lets elections be carried
		}
	}
	return nil
}

// hearsFollower takes a message of the follower.
func (w *world) hearsFollower(i int, m elector.Message) error {
	w.tickLeader(i)
	l := &w.leaders[i]
	switch m.Kind {
	case elector.HeartbeatAck:
		if l.term == m.Term && m.SentAt >= l.since {
			l.own = max(l.own, m.SentAt)
		}
	case elector.InvalidHeartbeat:
		if l.term != 0 && m.Term > max(l.term, l.asked) && (w.calm || m.Term < w.x.terms) {
			w.propose(i, m.Term+1)
		}
	case elector.ElectionProposalResponse:
		switch {
		case m.ProposedTerm != l.asked:
		case !m.WillVote && l.term != 0:
			l.asked, l.askedAt = 0, 0
		case !m.WillVote, l.term == 0 && !w.x.others && m.SentAt+lease <= w.now+tick:
			w.cede(i, true)
		default:
			w.lead(i, m.ProposedTerm, l.askedAt, m.SentAt)
		}
	}
	return w.count(i)
}
