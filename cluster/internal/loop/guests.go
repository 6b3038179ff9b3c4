package loop

import (
	"maps"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/lsn"
)

// guest says that a message of a voter opened an election here: nobody on this node asked for it.
type guest struct {
	usedAt elector.Time // the newest look at which it was in use
	place  int32        // in Driver.guests, counted from 1; 0 if it is no guest
	heard  bool         // a message came since the last look
	idle   bool         // it is closed because it was not used
}

// lobby is the part of the driver that has to do with opening and closing elections.
type lobby struct {
	ending map[string]bool         // names of closed elections that the disk has not forgotten
	guests []*group                // elections that messages opened
	shut   map[string]elector.Time // until when messages do not open an election
	looked int                     // the place among guests that was looked at last
	// absences are the elections whose leaders know that this node takes no part until it may.
	absences []absence
	listed   map[absence]bool    // in absences
	later    func(func(*Driver)) // Loop.later, for other goroutines
}

// shutTime is how long an election that was closed on this node is not opened by messages. They
// come as long as another node has not closed it.
const shutTime = time.Minute

// Shut lets messages open an election that is not open no sooner than if it was closed now.
func (l *Loop) Shut(name string) {
	l.later(func(d *Driver) {
		if _, known := d.prefixed(name); known && d.groups[name] == nil {
			d.shut[name] = d.Now().Add(shutTime)
		}
	})
}

// newUninvited counts messages of elections that are not open and that they did not open, by why:
// the configuration has no prefix for the name, the sender has no vote, this node has closed the
// election a moment ago, or there are too many guests.
func newUninvited() map[string]*atomic.Uint64 {
	return map[string]*atomic.Uint64{"no-prefix": {}, "observer": {}, "shut": {}, "full": {}}
}

// prefixed is Prefixed, also if there are no prefixes.
func (c *common) prefixed(name string) (s Setup, known bool) {
	if c.Prefixed != nil {
		s, known = c.Prefixed(name)
	}
	return s, known
}

// invite opens the election of a message, if its name has a prefix of the configuration, and
// returns it. Goodbyes and answers open nothing: each node that closes an election says goodbye.
func (d *Driver) invite(e *event) *group {
	switch e.msg.Kind {
	case elector.ElectionScouting, elector.ElectionProposal, elector.LeaderHeartbeat:
	default:
		return nil
	}
	setup, why := d.refuses(e.from, e.group)
	if why == "" {
		return d.welcome(e.group, setup)
	}
	d.Uninvited[why].Add(1)
	return nil
}

// refuses says why messages of a peer do not open an election now, or how this node takes part if
// they do.
func (d *Driver) refuses(from elector.NodeID, name string) (s Setup, why string) {
	s, known := d.prefixed(name)
	switch {
	case !known:
		why = "no-prefix"
	case !d.IsVoter(from):
		why = "observer"
	case d.Now() < d.shut[name], d.leaving, d.Err() != nil:
		why = "shut"
	case len(d.guests) >= d.GuestLimit:
		why = "full"
	}
	return s, why
}

// mostAbsent is how many elections a followed set may have in addition to as many as this node has.
const mostAbsent = 100_000

// absence is an election in which this node takes no part although its name has a prefix: it was
// refused.
type absence struct {
	*session

	name string
	term lsn.Term
}

// absent tells the leader of an election in which this node takes no part that it observes, §16.1:
// otherwise each of very many leaders would send heartbeats for ever. One that is being opened does
// not.
func (d *Driver) absent(e *event) {
	s, closing := d.sessions[e.from], d.groups[e.group] != nil
	most := len(d.groups) + mostAbsent
	if s == nil || e.msg.Kind != elector.LeaderHeartbeat || s.follows.Len() >= most ||
		len(d.absences) >= most {
		return
	}
	_, why := d.refuses(e.from, e.group)
	if why == "" && !closing {
		return
	}
	if c, changed := s.follows.Join(e.group, e.msg.Term, true); changed {
		d.Mesh.Change(s.peer, s.number, []pair.Change{c})
		if a := (absence{s, e.group, e.msg.Term}); why != "no-prefix" && !d.listed[a] {
			d.absences, d.listed[a] = append(d.absences, a), true
		}
	}
}

// mayReturn looks at a part of the elections that were refused. It takes those that may be opened
// now out of the followed set, so that their leaders send heartbeats, which open them.
func (d *Driver) mayReturn() {
	free := d.GuestLimit - len(d.guests)
	for range (len(d.absences) + looks - 1) / looks {
		a := d.absences[0]
		d.absences = d.absences[1:]
		delete(d.listed, a)
		_, why := d.refuses(a.peer, a.name)
		switch {
		case a.over || d.groups[a.name] != nil || !a.follows.Follows(a.name, a.term):
		case why != "" || free <= 0:
			d.absences, d.listed[a] = append(d.absences, a), true
		default:
			free--
			d.leaveSet(a.session, a.name)
		}
	}
}

// welcome opens an election as a guest. If the disk has to be read first, it returns nil, and the
// message that asked for the election is lost: its sender repeats it.
func (d *Driver) welcome(name string, s Setup) *group {
	e, err := d.newElection(name, s)
	if err == nil {
		err = d.open(e, func() bool { return d.Now() >= d.shut[name] }, func(err error) {
			if err == nil {
				d.guests = append(d.guests, e.g)
				e.g.guest = guest{place: int32(len(d.guests)), usedAt: d.Now()}
			}
		})
	}
	if err != nil {
		d.Log.Debug("a message does not open its election", "group", name, "error", err)
	}
	return d.groups[name]
}

// dismiss takes an election out of the guests: it stays open.
func (d *Driver) dismiss(g *group) {
	at := g.guest.place - 1
	if at < 0 {
		return
	}
	last := d.guests[len(d.guests)-1]
	d.guests[at], last.guest.place = last, at+1
	d.guests[len(d.guests)-1] = nil
	d.guests, g.guest.place = d.guests[:len(d.guests)-1], 0
}

// looks is how many looks at all guests there are in GuestIdle; each of them has as many parts.
const looks = 32

// closeIdle looks at a part of the guests, and closes those that nobody has used for GuestIdle:
// somebody leads in it, or campaigns on this node, or a message came.
func (d *Driver) closeIdle() {
	now := d.Now()
	maps.DeleteFunc(d.shut, func(_ string, till elector.Time) bool { return till <= now })
	d.mayReturn()
	for range (len(d.guests) + looks - 1) / looks {
		if d.looked++; d.looked >= len(d.guests) {
			d.looked = 0
		}
		g := d.guests[d.looked]
		switch {
		case g.guest.heard, g.machine.Leader() != "", g.leadTerm != 0, g.State().Phase != leadership.Idle:
			g.guest.heard, g.guest.usedAt = false, now
		case now.Sub(g.guest.usedAt) >= d.GuestIdle:
			g.guest.idle = true
			g.dropped.Store(true)
			closeGroup(d, g)
		}
	}
}

// keepGuests closes guests that nobody uses, until quit.
func (l *Loop) keepGuests() {
	look := time.NewTicker(l.GuestIdle / looks / looks)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			l.later((*Driver).closeIdle)
		case <-l.quit:
			return
		}
	}
}
