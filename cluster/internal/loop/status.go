package loop

import (
	"context"
	"fmt"
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
	Since       time.Time // when the newest transition was
	Newest      lsn.LSN   // the newest that was issued here or heard of
	Leaderships uint64    // how often there came to be a leader
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
	s := Snapshot{
		Election: g.Election, Status: g.machine.Status(), Now: d.Now(), Work: g.State(),
		LeaderMeta: g.leaderMeta, Since: g.since, Leaderships: g.measure.Leaderships,
		Record: g.machine.Record(), Electorate: slices.Clone(g.machine.Electorate()),
	}
	s.NotStanding, s.StandsAgain = d.notStanding(g)
	s.Newest = g.Sequencer.Newest()
	if s.Newest.Compare(s.LSN) < 0 {
		s.Newest = s.LSN
	}
	if t, plan, err, ok := g.machine.Quality(); ok {
		s.Quality = &Quality{t, plan, err}
	}
	return s
}

// Snapshot returns the state of an election. It waits for the driver unless that has ended.
func (l *Loop) Snapshot(e *Election) (s Snapshot) {
	l.view(func(d *Driver) { s = d.snapshot(e.g) })
	return s
}

// Snapshots returns the states of all elections, sorted by name, and the anomalies by kind.
func (l *Loop) Snapshots() (all []Snapshot, anomalies map[string]Anomaly) {
	l.view(func(d *Driver) {
		for _, name := range sortedKeys(d.groups) {
			all = append(all, d.snapshot(d.groups[name]))
		}
		anomalies = maps.Clone(d.anomalies)
	})
	return all, anomalies
}

// Page returns the states of up to limit elections whose names begin with prefix and come after
// another name, sorted by name. It is for many elections: it looks only at those that it returns.
func (l *Loop) Page(prefix, after string, limit int) (page []Snapshot) {
	var names []string
	l.view(func(d *Driver) {
		for name := range d.groups {
			if name > after && strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	})
	slices.Sort(names)
	l.view(func(d *Driver) {
		for _, name := range names {
			if g := d.groups[name]; g != nil && len(page) < limit {
				page = append(page, d.snapshot(g))
			}
		}
	})
	return page
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
