package loop

import (
	"cmp"
	"maps"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
)

// guest says that a message of a voter opened an election here: nobody on this node asked for it.
type guest struct {
	place  int          // in Driver.guests, counted from 1; 0 if it is no guest
	heard  bool         // a message came since the last look
	usedAt elector.Time // the newest look at which it was in use
	idle   bool         // it is closed because it was not
}

// lobby is the part of the driver that has to do with opening and closing elections.
type lobby struct {
	ending map[string]bool         // names of closed elections that the disk has not forgotten
	guests []*group                // elections that messages opened
	shut   map[string]elector.Time // until when messages do not open an election
	later  func(func(*Driver))     // Loop.later, for other goroutines
}

func newLobby() lobby {
	return lobby{ending: map[string]bool{}, shut: map[string]elector.Time{}}
}

const (
	// guestBatch is how many guests are looked at without a break.
	guestBatch = 1000
	// shutTime is how long an election that was closed on this node is not opened by messages. They
	// come as long as another node has not closed it.
	shutTime = time.Minute
)

// Uninvited counts messages of elections that are not open and that they did not open, by reason.
type Uninvited struct {
	NoPrefix atomic.Uint64 // the configuration has none for the name
	Observer atomic.Uint64 // the sender has no vote
	Shut     atomic.Uint64 // this node closed the election a moment ago
	Full     atomic.Uint64 // too many elections were opened by messages
}

// Counts returns the counts by the reason's name.
func (u *Uninvited) Counts() map[string]uint64 {
	return map[string]uint64{"no-prefix": u.NoPrefix.Load(), "observer": u.Observer.Load(),
		"shut": u.Shut.Load(), "full": u.Full.Load()}
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
	setup, known := d.prefixed(e.group)
	switch {
	case !known:
		d.Uninvited.NoPrefix.Add(1)
	case !d.IsVoter(e.from):
		d.Uninvited.Observer.Add(1)
	case d.Now() < d.shut[e.group]:
		d.Uninvited.Shut.Add(1)
	case len(d.guests) >= d.GuestLimit:
		d.Uninvited.Full.Add(1)
	default:
		return d.welcome(e.group, setup)
	}
	return nil
}

// welcome opens an election as a guest. If the disk has to be read first, it returns nil, and the
// message that asked for the election is lost: its sender repeats it.
func (d *Driver) welcome(name string, s Setup) *group {
	if d.ending[name] || d.opening[name] {
		return nil
	}
	e, err := d.newElection(name, s)
	entered := false
	if err == nil {
		entered, err = d.open(e)
	}
	if err != nil {
		d.Log.Debug("a message does not open its election", "group", name, "error", err)
		return nil
	}
	enter := func(d *Driver) {
		e.g.guest = guest{place: len(d.guests) + 1, usedAt: d.Now()}
		d.guests = append(d.guests, e.g)
	}
	if entered {
		enter(d)
		return e.g
	}
	d.persister.note(func() error {
		err := e.load()
		d.later(func(d *Driver) {
			delete(d.opening, name)
			if err = cmp.Or(err, d.reserve(name)); err == nil {
				d.enter(e.g)
				enter(d)
			}
		})
		return nil
	})
	return nil
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

// shutFor keeps messages from opening an election that this node has closed.
func (d *Driver) shutFor(name string) {
	if _, known := d.prefixed(name); known {
		d.shut[name] = d.Now().Add(shutTime)
	}
}

// inUse reports whether somebody leads an election, or anybody on this node needs it.
func (g *group) inUse() bool {
	return g.follows != "" || g.leadTerm != 0 || g.State().Phase != leadership.Idle
}

// closeIdle looks at some guests, from the given place on, and closes those that nobody has used
// for GuestIdle. It returns the place of the next one, 0 after the last.
func (d *Driver) closeIdle(from int) (next int) {
	now := d.Now()
	if from == 0 {
		maps.DeleteFunc(d.shut, func(_ string, till elector.Time) bool { return till <= now })
	}
	for range guestBatch {
		if from >= len(d.guests) || d.Err() != nil {
			return 0
		}
		g := d.guests[from]
		switch {
		case g.guest.heard || g.inUse():
			g.guest.heard, g.guest.usedAt = false, now
		case now.Sub(g.guest.usedAt) >= d.GuestIdle:
			d.Log.Debug("an election that nobody uses is closed", "group", g.Name)
			g.guest.idle = true
			g.dropped.Store(true)
			g.Close(ErrClosed, false)
			d.stepRequests(g)
			if g.guest.place == 0 {
				continue // another one has its place
			}
		}
		from++
	}
	return from
}

// keepGuests closes guests that nobody uses, until quit.
func (l *Loop) keepGuests() {
	const looks = 8 // in GuestIdle
	for next, all := 0, 0; ; {
		timer := time.NewTimer(l.GuestIdle / looks / time.Duration(1+all/guestBatch))
		select {
		case <-timer.C:
		case <-l.quit:
			timer.Stop()
			return
		}
		l.view(func(d *Driver) { next, all = d.closeIdle(next), len(d.guests) })
	}
}
