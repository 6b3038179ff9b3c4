package loop

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
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
	if g.since != 0 {
		s.Since = time.Unix(0, g.since)
	}
	if since := g.measure.Leaderless; since != 0 {
		s.Leaderless = max(s.Now.Sub(since), 1)
	}
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

// Elections returns the open elections whose names are wanted, sorted by name.
func (l *Loop) Elections(wanted func(name string) bool) (all []*Election) {
	l.view(func(d *Driver) {
		all = make([]*Election, 0, len(d.groups))
		for name, g := range d.groups {
			if wanted(name) {
				all = append(all, g.Election)
			}
		}
	})
	slices.SortFunc(all, func(a, b *Election) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// visit is how many elections the driver looks at before it goes on with its own work.
const visit = 256

// Snapshots yields the states of elections in their order, except of those that are no longer open.
// The driver looks at a part of them at a time, so the states are of different moments. What is
// yielded is valid until the next one.
func (l *Loop) Snapshots(of []*Election) iter.Seq[*Snapshot] {
	return func(yield func(*Snapshot) bool) {
		part := make([]Snapshot, 0, min(len(of), visit))
		for of := range slices.Chunk(of, visit) {
			part = part[:0]
			l.view(func(d *Driver) {
				for _, e := range of {
					if d.groups[e.Name] == e.g {
						part = append(part, d.snapshot(e.g))
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
	case paused != nil && !g.machine.State().Turns.LedLast:
		return paused.Error(), 0
	case restEnd > now:
		return "it stepped down, and rests", restEnd
	case !state.Wanted():
		return "nobody campaigns on it", 0
	}
	return "", 0
}
