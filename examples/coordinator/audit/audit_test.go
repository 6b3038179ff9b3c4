package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/examples/coordinator/audit"
	"github.com/bmqelect/bmqelect/lsn"
)

// story is journals in the making: every line comes a second after the one before.
type story struct {
	now      time.Time
	journals map[cluster.NodeID][]audit.Line
}

func begin() *story {
	return &story{now: time.Unix(1_700_000_000, 0), journals: map[cluster.NodeID][]audit.Line{}}
}

func (s *story) add(node cluster.NodeID, l audit.Line) *story {
	s.now = s.now.Add(time.Second)
	l.Node, l.Time = node, s.now
	s.journals[node] = append(s.journals[node], l)
	return s
}

// assigned tells of an assignment, by a leader to a worker, of partition 7.
func (s *story) assigned(by, to cluster.NodeID, term lsn.Term, counter uint64) *story {
	return s.add(by, audit.Line{Event: audit.Assigned, Partition: 7, To: to, LSN: lsn.LSN{Term: term, Counter: counter}})
}

// does tells of what a worker does under an assignment of partition 7.
func (s *story) does(e audit.Event, node cluster.NodeID, term lsn.Term, counter uint64) *story {
	return s.add(node, audit.Line{Event: e, Partition: 7, LSN: lsn.LSN{Term: term, Counter: counter}})
}

func (s *story) check() audit.Report {
	var journals [][]audit.Line
	for _, node := range []cluster.NodeID{"a", "b"} {
		journals = append(journals, s.journals[node])
	}
	return audit.Check(journals...)
}

// first is a sound beginning: 1.1 is in force on b.
func first() *story {
	return begin().assigned("a", "b", 1, 1).does(audit.Begun, "b", 1, 1).does(audit.Worked, "b", 1, 1)
}

func TestASoundHistoryHasNoProblems(t *testing.T) {
	s := first().does(audit.Ended, "b", 1, 1).
		assigned("a", "a", 1, 2).does(audit.Begun, "a", 1, 2).does(audit.Worked, "a", 1, 2).
		add("a", audit.Line{Event: audit.Started}). // it was killed, and nobody wrote of an end
		assigned("b", "a", 2, 1).does(audit.Begun, "a", 2, 1).does(audit.Worked, "a", 2, 1).
		assigned("b", "b", 2, 2) // which never arrived
	require.Equal(t, audit.Report{Terms: 2, Assigned: 4, Begun: 3, Worked: 3}, s.check())
}

func TestWhatMustNotBe(t *testing.T) {
	for name, c := range map[string]struct {
		story *story
		want  string
	}{
		"begins too early": {
			first().assigned("a", "a", 1, 2).does(audit.Begun, "a", 1, 2).does(audit.Worked, "b", 1, 1),
			"1.2 (partition 7, node a) begins 1s before 1.1 (partition 7, node b) has ended",
		},
		"begins too early after one that was short": {
			first().assigned("a", "a", 1, 2).does(audit.Begun, "a", 1, 2).does(audit.Ended, "a", 1, 2).
				assigned("a", "a", 1, 3).does(audit.Begun, "a", 1, 3).does(audit.Worked, "b", 1, 1),
			"1.3 (partition 7, node a) begins 1s before 1.1",
		},
		"newer before older": {
			begin().assigned("a", "b", 1, 1).assigned("a", "a", 1, 2).
				does(audit.Begun, "a", 1, 2).does(audit.Ended, "a", 1, 2).does(audit.Begun, "b", 1, 1).does(audit.Ended, "b", 1, 1),
			"1.2 (partition 7, node a) begins 3s before 1.1",
		},
		"one LSN twice": {
			first().assigned("a", "a", 1, 1), "two assignments have one LSN: 1.1 (partition 7, node b) and 1.1 (partition 7, node a)",
		},
		"two leaders in a term": {first().assigned("b", "b", 1, 9), "both a and b assign in term 1"},
		"begins twice":          {first().does(audit.Begun, "b", 1, 1), "node b begins 1.1 (partition 7, node b) after it accepted 1.1"},
		"begins beside": {
			first().assigned("a", "b", 1, 2).does(audit.Begun, "b", 1, 2), "node b begins 1.2 (partition 7, node b) beside 1.1",
		},
		"begins an older one": {
			begin().assigned("a", "b", 1, 1).assigned("a", "b", 1, 2).does(audit.Begun, "b", 1, 2).does(audit.Ended, "b", 1, 2).does(audit.Begun, "b", 1, 1),
			"node b begins 1.1 (partition 7, node b) after it accepted 1.2",
		},
		"works under an older one": {
			first().does(audit.Ended, "b", 1, 1).assigned("a", "b", 1, 2).does(audit.Begun, "b", 1, 2).does(audit.Worked, "b", 1, 1),
			"node b has worked 1.1 (partition 7, node b) after it accepted 1.2",
		},
		"works after the end": {
			first().does(audit.Ended, "b", 1, 1).does(audit.Worked, "b", 1, 1), "node b has worked 1.1 (partition 7, node b), which was no longer in force",
		},
		"works on after a restart": {
			first().add("b", audit.Line{Event: audit.Started}).does(audit.Worked, "b", 1, 1), "which was no longer in force",
		},
		"works without beginning": {begin().assigned("a", "b", 1, 1).does(audit.Worked, "b", 1, 1), "after it accepted <nil>"},
		"works for another":       {first().does(audit.Worked, "a", 1, 1), "node a has worked partition 7 under another's assignment: 1.1"},
		"works unasked":           {first().does(audit.Worked, "b", 1, 2), "node b has worked 1.2, which nobody assigned"},
		"unknown":                 {first().does("danced", "b", 1, 1), `node b: unknown event "danced"`},
	} {
		require.Contains(t, strings.Join(c.story.check().Problems, "\n"), c.want, name)
	}
}

func TestAJournalGoesOnAfterARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal")
	for range 2 {
		j, err := audit.Open(file, "a")
		require.NoError(t, err)
		require.NoError(t, j.Append(audit.Line{Event: audit.Begun, Partition: 7, LSN: lsn.LSN{Term: 1, Counter: 1}}))
		require.NoError(t, j.Err())
		require.NoError(t, j.Close())
		require.ErrorContains(t, j.Append(audit.Line{Event: audit.Worked}), "journal of node a: ")
		require.Error(t, j.Err(), "the first error is kept")
	}
	lines, err := audit.Read(file)
	require.NoError(t, err)
	var events []audit.Event
	for _, l := range lines {
		events = append(events, l.Event)
		require.Equal(t, cluster.NodeID("a"), l.Node)
		require.WithinDuration(t, time.Now(), l.Time, time.Minute)
	}
	require.Equal(t, []audit.Event{audit.Started, audit.Begun, audit.Started, audit.Begun}, events)
}

func TestADamagedJournalIsNotChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal")
	require.NoError(t, os.WriteFile(file, []byte("{\"node\":\"a\",\"event\":\"started\"}\n{\"node\":"), 0o600))
	_, err := audit.Read(file)
	require.ErrorContains(t, err, file+", line 2: ")
	_, err = audit.Read(file + "-absent")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = audit.Open(filepath.Join(file, "below"), "a")
	require.ErrorContains(t, err, "journal of node a: ")
}
