package loop

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Snapshot is the state of an election at one moment.
type Snapshot struct {
	*Election
	elector.Status

	Now         elector.Time
	Work        leadership.State
	LeaderMeta  string
	Since       time.Time     // when the newest transition was
	Newest      lsn.LSN       // the newest that was issued here or heard of
	Leaderships uint64        // how often there came to be a leader
	Leaderless  time.Duration // for how long this node has known no leader; 0 if it knows one
	Record      elector.RecordStatus
	Electorate  []elector.NodeID // the voters that count for this node, sorted
	Quality     *Quality         // of the link to the leader; nil if unknown, or without Config.QoS
	// NotStanding is why this node does not want to lead, "" if it does; StandsAgain is when it
	// will again, 0 if that is not a matter of time.
	NotStanding string
	StandsAgain elector.Time
}

// Glance is the part of a Snapshot that takes little time: nothing is stepped. Whoever sums up all
// elections needs no more.
type Glance struct {
	*Election
	elector.Brief

	Leading    bool
	Overdue    bool // guarded work goes on although its leadership is over
	Since      time.Time
	Leaderless time.Duration
	Record     elector.RecordStatus
}

// Quality says how far Config.QoS is met.
type Quality struct {
	Tuning detector.Tuning
	Plan   detector.Plan
	Unmet  error // why less than Config.QoS is had; nil if it is met
}

func (d *Driver) snapshot(g *group) Snapshot {
	d.catchUp(g)
	d.bringUpToDate(g)
	s := Snapshot{
		Election: g.Election, Status: g.machine.Status(), Now: d.Now(), Work: g.State(),
		LeaderMeta: g.leaderMeta, Leaderships: g.measure.Leaderships,
		Record: g.machine.Record(), Electorate: slices.Clone(g.machine.Electorate()),
	}
	s.Since, s.Leaderless = g.changedAt(), g.leaderless(s.Now)
	s.NotStanding, s.StandsAgain = d.notStanding(g)
	s.Newest = g.Sequencer.Newest()
	if s.Newest.Compare(s.LSN) < 0 {
		s.Newest = s.LSN
	}
	detector := g.machine
	if g.carried {
		detector = g.session.watcher(d, g.class).machine
		w := detector.Status()
		s.Period, s.Wanted = w.Period, w.Wanted
	}
	if t, plan, err, ok := detector.Quality(); ok {
		s.Quality = &Quality{t, plan, err}
	}
	for _, o := range d.sessions {
		if g.lease != nil && slices.Contains(g.lease.backers, o) {
			s.Period = min(s.Period, o.period)
		}
	}
	return s
}

// changedAt is when the newest transition was; zero before the first.
func (g *group) changedAt() time.Time {
	if g.since == 0 {
		return time.Time{}
	}
	return time.Unix(0, g.since)
}

func (g *group) leaderless(now elector.Time) time.Duration {
	if g.measure.Leaderless == 0 {
		return 0
	}
	return max(now.Sub(g.measure.Leaderless), 1)
}

func (d *Driver) glance(g *group, now elector.Time) Glance {
	return Glance{
		Election: g.Election, Brief: g.machine.Brief(), Leading: now < g.LeaseEnd(),
		Overdue: g.Overdue(), Since: g.changedAt(), Leaderless: g.leaderless(now),
		Record: g.machine.Record(),
	}
}

// Snapshot returns the state of an election. It waits for the driver unless that has ended.
func (l *Loop) Snapshot(e *Election) (s Snapshot) {
	l.view(func(d *Driver) { s = d.snapshot(e.g) })
	return s
}

// Find returns the open election of that name; nil if there is none. Unlike Lookup it also works on
// a node that has ended.
func (l *Loop) Find(name string) (e *Election) {
	l.view(func(d *Driver) {
		if g := d.groups[name]; g != nil {
			e = g.Election
		}
	})
	return e
}

// Elections returns the open elections whose names are wanted, in no order.
func (l *Loop) Elections(wanted func(name string) bool) (all []*Election) {
	l.view(func(d *Driver) {
		all = make([]*Election, 0, len(d.groups))
		for name, g := range d.groups {
			if wanted(name) {
				all = append(all, g.Election)
			}
		}
	})
	return all
}

// visit is how many elections the driver looks at before it goes on with its own work.
const visit = 256

// Snapshots yields the states of elections in their order, except of those that are no longer open.
// The driver looks at a part of them at a time, so the states are of different moments. What is
// yielded is valid until the next one.
func (l *Loop) Snapshots(of []*Election) iter.Seq[*Snapshot] {
	return visits(l, of, func(d *Driver, g *group, _ elector.Time) Snapshot { return d.snapshot(g) })
}

// Glances is Snapshots for sums.
func (l *Loop) Glances(of []*Election) iter.Seq[*Glance] { return visits(l, of, (*Driver).glance) }

func visits[T any](
	l *Loop, of []*Election, look func(d *Driver, g *group, now elector.Time) T,
) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		part := make([]T, 0, min(len(of), visit))
		for of := range slices.Chunk(of, visit) {
			part = part[:0]
			l.view(func(d *Driver) {
				now := d.Now()
				for _, e := range of {
					if d.groups[e.Name] == e.g {
						part = append(part, look(d, e.g, now))
					}
				}
			})
			for i := range part {
				if !yield(&part[i]) {
					return
				}
			}
		}
	}
}

// Anomalies returns the anomalies by kind.
func (l *Loop) Anomalies() (all map[string]Anomaly) {
	l.view(func(d *Driver) { all = maps.Clone(d.anomalies) })
	return all
}

// Look is a Snapshot that waits no longer than ctx. The error is the cause of ctx, or why the
// election or the node has ended.
func (l *Loop) Look(ctx context.Context, e *Election) (Snapshot, error) {
	return ask(ctx, l, func(d *Driver) (Snapshot, error) { return d.snapshot(e.g), e.Ended() })
}

// notStanding is why this node does not want to lead an election, and until when: see Snapshot.
func (d *Driver) notStanding(g *group) (why string, until elector.Time) {
	state, work, now := g.State(), g.WorkEnded(), d.Now()
	paused, restEnd := d.pauseError(), g.machine.Status().RestEnd
	switch {
	case !state.MayStand:
		return "it is not a candidate", 0
	case state.Phase == leadership.Overdue:
		return "its guarded work has not stopped in time", 0
	case state.Unfit != "":
		return fmt.Sprintf("it is not fit (%s)", state.Unfit), 0
	case work.Rest > now:
		if work.Err != "" {
			why = fmt.Sprintf(" (%s)", work.Err)
		}
		return "its work ended by itself" + why + ", it rests", work.Rest
	case paused != nil && !g.machine.LedLast():
		return paused.Error(), 0
	case restEnd > now:
		return "it stepped down, and rests", restEnd
	case !state.Wanted():
		return "nobody campaigns on it", 0
	}
	return "", 0
}
