package loop

import (
	"context"
	"maps"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Snapshot is what an election was at one moment.
type Snapshot struct {
	*Election
	elector.Status

	Now         elector.Time
	Work        leadership.State
	LeaderMeta  string
	Since       time.Time // of the newest transition
	Newest      lsn.LSN   // that was issued here or heard of
	Leaderships uint64    // how often there came to be a leader
	Quality     *Quality  // of the link to the leader; nil if nothing is known, or asked for
}

// Quality is what becomes of Config.QoS.
type Quality struct {
	Tuning detector.Tuning
	Plan   detector.Plan
	Unmet  error // why it is less than was asked; nil if it is not
}

func (d *Driver) snapshot(g *group) Snapshot {
	s := Snapshot{
		Election: g.Election, Status: g.machine.Status(), Now: d.Now(), Work: g.State(),
		LeaderMeta: g.leaderMeta, Since: g.since, Leaderships: g.measure.Leaderships,
	}
	s.Newest = g.Sequencer.Newest()
	if s.Newest.Compare(s.LSN) < 0 {
		s.Newest = s.LSN
	}
	if t, plan, err, ok := g.machine.Quality(); ok {
		s.Quality = &Quality{t, plan, err}
	}
	return s
}

// Snapshot waits for the driver, unless that has ended.
func (l *Loop) Snapshot(e *Election) (s Snapshot) {
	l.view(func(d *Driver) { s = d.snapshot(e.g) })
	return s
}

// Snapshots are those of all elections, sorted by name, and the anomalies by kind.
func (l *Loop) Snapshots() (all []Snapshot, anomalies map[string]Anomaly) {
	l.view(func(d *Driver) {
		for _, name := range sortedKeys(d.groups) {
			all = append(all, d.snapshot(d.groups[name]))
		}
		anomalies = maps.Clone(d.anomalies)
	})
	return all, anomalies
}

// Look is Snapshot that waits no longer than ctx. The error is its cause, or why the election or
// the node has ended.
func (l *Loop) Look(ctx context.Context, e *Election) (Snapshot, error) {
	var s Snapshot
	err := l.Do(ctx, func(d *Driver) error {
		s = d.snapshot(e.g)
		return e.Ended()
	})
	if err != nil {
		return Snapshot{}, err
	}
	return s, nil
}
