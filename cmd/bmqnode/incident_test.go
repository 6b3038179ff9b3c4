package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// TestAnIncidentIsReplayed cuts the leader off, pauses the next one and kills the third. What
// the nodes recorded comes out as a scenario in which the simulator shows the same leaders
// for the same reasons as the nodes' logs.
func TestAnIncidentIsReplayed(t *testing.T) {
	t.Parallel()
	s := play(t, 3, quick())
	// Each leads for a while: when the next one is elected is chance in the simulator, too.
	lasting := func(g cluster.GroupStatus) bool { return g.Since > 2 }
	cut := s.agree(s.Nodes(), lasting)
	s.isolate(cut.Leader)
	paused := s.agree(s.others(cut.Leader), above(cut.Term))
	s.eventually("both ends give each link up", func() bool {
		own, err := s.node(cut.Leader).Status(t.Context())
		require.NoError(t, err)
		for _, n := range s.others(cut.Leader) {
			st, err := n.Status(t.Context())
			require.NoError(t, err)
			if linkTo(st, string(cut.Leader)) == "up" || linkTo(own, n.Name) == "up" {
				return false
			}
		}
		return true
	})
	s.heal()
	paused = s.agree(s.Nodes(), lasting)
	require.NoError(t, s.node(paused.Leader).Signal(syscall.SIGSTOP))
	killed := s.agree(s.others(paused.Leader), above(paused.Term))
	require.NoError(t, s.node(paused.Leader).Signal(syscall.SIGCONT))
	killed = s.agree(s.Nodes(), lasting)
	require.NoError(t, s.node(killed.Leader).Kill())
	last := s.agree(s.others(killed.Leader), above(killed.Term))
	require.NoError(t, s.node(killed.Leader).Start())
	last = s.agree(s.Nodes(), lasting)

	at := []string{"--admin", s.node(last.Leader).AdminAddr}
	dir := t.TempDir()
	stdout := does(t, append(at, "record-incident", "-o", dir)...)
	require.Contains(t, stdout, "The simulator shows the same leaders for the same reasons")
	text, err := os.ReadFile(filepath.Join(dir, "incident.yaml"))
	require.NoError(t, err)
	for _, step := range []string{
		"isolate: [" + string(cut.Leader) + "]", "heal: [" + string(cut.Leader) + "]",
		"pause: [" + string(paused.Leader) + "]", "resume: [" + string(paused.Leader) + "]",
		"crash: [" + string(killed.Leader) + "]", "restart: [" + string(killed.Leader) + "]",
		"lease: 1.5s",
	} {
		require.Contains(t, string(text), step, "%s\n%s", text, stdout)
	}
	page, err := os.ReadFile(filepath.Join(dir, "incident.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "<!doctype html>")

	seen := leadersOf(s.transitions(func(admin.Event) bool { return true }))
	sc, err := scenario.Load(filepath.Join(dir, "incident.yaml"))
	require.NoError(t, err)
	run, err := replay.Simulate(sc, replay.Options{Seed: sc.Seed})
	require.NoError(t, err)
	require.Equal(t, seen, leadersOf(eventsOf(&run)), "%s", text)
	require.GreaterOrEqual(t, len(seen), 4)

	stdout = does(t, append(at, "history", "--json")...)
	var past admin.History
	require.NoError(t, json.Unmarshal([]byte(stdout), &past))
	var kept []reign
	for _, l := range past.Leaderships {
		kept = append(kept, reign{cluster.NodeID(l.Leader), l.Reason})
	}
	require.Equal(t, seen, kept)
}

// reign is a leader, and why it lost leadership.
type reign struct {
	leader cluster.NodeID
	reason string
}

// leadersOf are the leaders in their order. The reason is the leader's own; of one that was
// killed, that for which its successor lost it.
func leadersOf(events []admin.Event) (all []reign) {
	slices.SortStableFunc(events, func(a, b admin.Event) int { return a.Time.Compare(b.Time) })
	lost := map[cluster.NodeID]string{} // why a node lost its leader last
	for _, e := range events {
		switch {
		case becameLeader(e):
			if last := len(all) - 1; last >= 0 && all[last].reason == "" {
				all[last].reason = lost[e.Node]
			}
			all = append(all, reign{leader: e.Node})
		case lostLeadership(e):
			for i := range slices.Backward(all) {
				if all[i].leader == e.Node {
					all[i].reason = e.Reason
					break
				}
			}
		case e.To == "FOLLOWER" && e.Leader == "":
			lost[e.Node] = e.Reason
		}
	}
	return all
}

// eventsOf are the transitions of a simulated run.
func eventsOf(run *verdict.Run) (events []admin.Event) {
	for _, lane := range run.History.Lanes {
		for _, tr := range lane.Transitions {
			events = append(events, admin.Event{
				Time: time.Time{}.Add(time.Hour + tr.At), Node: lane.Node, From: tr.From.String(),
				To: tr.To.String(), Reason: tr.Reason.String(), Leader: tr.Leader,
			})
		}
	}
	return events
}
