package cluster

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/recorder"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/lab/incident"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/scouting"
)

// A replay of an incident has the configuration of each node from its recording, and it is equal.
func TestAnIncidentIsReplayedAsTheNodesElect(t *testing.T) {
	base := elector.Config{Self: "a", Voters: []NodeID{"a", "b", "c", "d"}, Timing: elector.Article()}
	own, plain := base, base
	own.Priority, own.Quorum, own.UnsafeQuorum = 7, 2, true
	own.Rule, own.Takeover = scouting.RuleNodeOrder, time.Hour
	own.QoS = detector.QoS{Detect: 3 * time.Second, Mistakes: detector.Recurrence(time.Hour),
		Accuracy: 0.99}
	own.Timing = elector.Timing{
		InitialWait: 7 * time.Second, MinRandomWait: 11 * time.Millisecond,
		MaxRandomWait: 6 * time.Second, ScoutingResult: 1300 * time.Millisecond,
		ElectionResult: 1700 * time.Millisecond, HeartbeatBroadcast: 400 * time.Millisecond,
		HeartbeatMissCount: 6, Lease: 2300 * time.Millisecond, ClockDriftPPM: 12_345,
	}
	plain.NotCandidate, plain.UnsafeNoScouting = true, true
	plain.Phi = detector.PhiConfig{Threshold: 9, Window: 100, MinDeviation: 200 * time.Millisecond,
		Pause: 2 * time.Second}
	fields := differing(reflect.ValueOf(base), reflect.ValueOf(own))
	fields = append(fields, differing(reflect.ValueOf(base), reflect.ValueOf(plain))...)
	slices.Sort(fields)
	require.Equal(t, settings(reflect.TypeFor[elector.Config]()), fields, "set the others here, too")

	for _, c := range []elector.Config{own, plain} {
		require.NoError(t, c.Validate())
		began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		var sources []incident.Source
		for _, node := range c.Voters {
			recorded := c
			recorded.NotCandidate = c.NotCandidate && node == c.Self // the others can lead
			records := []recording.Record{{Kind: recording.Started},
				{Kind: recording.Opened, Setup: recorder.SetupOf(recorded)},
				{Kind: recording.Transition, To: "FOLLOWER", Leader: "b", Term: 1, Reason: "LEADER_FOUND"}}
			for i := range records {
				r := &records[i]
				r.Time, r.Node, r.Boot, r.Group = began, string(node), 1, DefaultGroup
			}
			sources = append(sources, incident.Source{Node: string(node), Records: records, Alive: true})
		}
		in, err := incident.Infer(sources, incident.Options{
			Group: DefaultGroup, From: began, To: began.Add(time.Minute),
		})
		require.NoError(t, err)
		s, err := scenario.Parse("incident.yaml", in.Text)
		require.NoError(t, err, "%s", in.Text)
		require.Equal(t, c, s.Config(s.Nodes[0]), "%s", in.Text)
	}
}

// settings are the fields that an elector's and a node's configuration share, and those of Timing.
func settings(of reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(of) {
		if _, configured := reflect.TypeFor[ElectionConfig]().FieldByName(f.Name); f.Name == "Timing" {
			for _, timer := range reflect.VisibleFields(f.Type) {
				names = append(names, timer.Name)
			}
		} else if configured {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

// differing are the settings in which two configurations differ.
func differing(a, b reflect.Value) (names []string) {
	for _, f := range reflect.VisibleFields(a.Type()) {
		x, y := a.FieldByIndex(f.Index), b.FieldByIndex(f.Index)
		if f.Name == "Timing" {
			names = append(names, differing(x, y)...)
		} else if !reflect.DeepEqual(x.Interface(), y.Interface()) {
			names = append(names, f.Name)
		}
	}
	return names
}
