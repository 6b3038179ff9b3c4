package incident

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

var zero = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func at(s float64) time.Time { return zero.Add(seconds(s)) }

// cluster is what the nodes of a cluster recorded.
type cluster map[string]*Source

// quietCluster has nodes that started a minute ago and follow the first one in term 7.
func quietCluster(nodes ...string) cluster {
	c := cluster{}
	settings := map[string]string{
		"initial_wait": "4s", "max_random_wait": "3s", "scouting_result": "1s", "election_result": "1s",
		"heartbeat_broadcast": "500ms", "heartbeat_miss_count": "3", "lease": "1s", "clock_drift": "0.02",
	}
	for _, n := range nodes {
		c[n] = &Source{Node: n, Alive: true}
		c.add(n, -60, recording.Record{Kind: recording.Started, Identity: "of " + n, Boot: 3})
		c.add(n, -60, recording.Record{Kind: recording.Opened, Group: "g", Boot: 3,
			Setup: &recording.Setup{Voters: nodes, Scouting: true, Rule: "default", Elector: settings}})
		for _, peer := range nodes {
			if peer != n {
				c.up(n, -59, peer, 3)
			}
		}
		reason := "LEADER_FOUND"
		if n == nodes[0] {
			reason = "ELECTED"
		}
		c.leader(n, -50, nodes[0], 7, reason)
	}
	return c
}

// add adds a record, of the boot of the one before unless it has one.
func (c cluster) add(node string, s float64, r recording.Record) {
	r.Time, r.Node = at(s), node
	if n := len(c[node].Records); r.Boot == 0 && n > 0 {
		r.Boot = c[node].Records[n-1].Boot
	}
	c[node].Records = append(c[node].Records, r)
}

func (c cluster) up(node string, s float64, peer string, boot uint64) {
	c.add(node, s, recording.Record{Kind: recording.LinkUp, Peer: peer, PeerBoot: boot,
		Identity: "of " + peer})
}

func (c cluster) down(node string, s float64, peer, why string) {
	c.add(node, s, recording.Record{Kind: recording.LinkDown, Peer: peer, Why: why})
}

func (c cluster) leader(node string, s float64, leader string, term uint64, reason string) {
	to := "FOLLOWER"
	if node == leader {
		to = "LEADER"
	}
	c.add(node, s, recording.Record{Kind: recording.Transition, Group: "g", To: to, Leader: leader,
		Term: term, Reason: reason})
}

func (c cluster) start(node string, s float64, boot uint64, identity string) {
	c.add(node, s, recording.Record{Kind: recording.Started, Identity: identity, Boot: boot})
}

// wakes lets a node be paused between two moments, as its process is that is stopped: when it
// goes on it finds all links timed out, notes that first, and makes them again.
func (c cluster) wakes(node string, from, to float64) {
	held := recording.Record{Kind: recording.Held, Seconds: to - from - .2, AtMost: to - from + .2}
	for peer := range c {
		if peer == node {
			continue
		}
		c.down(peer, from+3, node, "timeout")
		c.down(node, to-.001, peer, "timeout")
		defer c.up(peer, to+.01, node, 3)
		defer c.up(node, to+.02, peer, 3)
	}
	c.add(node, to, held)
}

func (c cluster) sources() (all []Source) {
	for _, s := range c {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Source) int { return strings.Compare(a.Node, b.Node) })
	return all
}

func (c cluster) infer(t *testing.T) *Incident {
	t.Helper()
	in, err := Infer(c.sources(), Options{Group: "g", From: at(-10), To: at(60)})
	require.NoError(t, err)
	return in
}

// steps are the steps by the time of the records.
func steps(in *Incident) (all []string) {
	for i := range in.Steps {
		s := &in.Steps[i]
		all = append(all, fmt.Sprintf("%s %s", s.At.Sub(zero).Round(10*time.Millisecond), in.action(s)))
	}
	return all
}

func TestStepsFollowFromRecords(t *testing.T) {
	for name, c := range map[string]struct {
		happen func(c cluster)
		steps  []string
		doubt  string
	}{
		"nothing": {func(cluster) {}, nil, ""},
		"a cut": {func(c cluster) {
			c.down("a", 13, "b", "timeout")
			c.down("b", 13.2, "a", "timeout")
			c.up("a", 20, "b", 3)
			c.up("b", 20, "a", 3)
		}, []string{"10s cut: [a-b]", "19.75s heal: [a-b]"}, ""},
		"a cut in one direction": {func(c cluster) {
			c.down("a", 13, "b", "timeout")
			c.down("b", 13, "a", "goodbye")
		}, []string{"10s cut: [b->a]"}, ""},
		"the other direction": {func(c cluster) {
			c.down("a", 13, "b", "goodbye")
			c.down("b", 13, "a", "timeout")
		}, []string{"10s cut: [a->b]"}, ""},
		"a node hears nobody, and all hear it": {func(c cluster) {
			for _, n := range []string{"a", "b"} {
				c.down("c", 13, n, "timeout")
				c.down(n, 13, "c", "goodbye")
			}
		}, []string{"10s cut: [a->c, b->c]"}, ""},
		"an application says twice that it cannot lead": {func(c cluster) {
			c.add("b", 10, recording.Record{Kind: recording.Unfit, Group: "g"})
			c.add("b", 12, recording.Record{Kind: recording.Unfit, Group: "g"})
		}, []string{"10s unfit: [b]"}, "unfit at 03:00:12.000 does not fit what was before: left out"},
		"a node is cut off": {func(c cluster) {
			for _, n := range []string{"a", "b"} {
				c.down(n, 13.1, "c", "timeout")
				c.down("c", 13, n, "timeout")
				c.up("c", 20.6, n, 3)
			}
			c.up("a", 20, "c", 3)
			c.up("b", 21, "c", 3)
		}, []string{"10s isolate: [c]", "19.75s heal: [c]"}, ""},
		"connections break": {func(c cluster) {
			c.down("a", 10, "b", "reset")
			c.down("b", 10, "a", "reset")
			c.up("a", 15, "b", 3)
		}, []string{"10s cut: [a-b], how: reset", "14.75s heal: [a-b]"}, ""},
		"a connection breaks": {func(c cluster) {
			c.down("a", 10, "b", "reset")
			c.up("a", 10.2, "b", 3)
		}, nil, "the link between a and b broke (reset) at 03:00:10.000, and came back at once"},
		"a crash": {func(c cluster) {
			c.down("b", 10, "a", "eof")
			c.down("c", 10.1, "a", "eof")
			c.start("a", 30, 4, "of a")
		}, []string{"10s crash: [a]", "30s restart: [a]"}, ""},
		"a crash that nobody saw": {func(c cluster) {
			c.add("a", 5, recording.Record{Kind: recording.LinkUp, Peer: "z"})
			c.start("a", 30, 4, "of a")
		}, []string{"29s crash: [a]", "30s restart: [a]"}, ""},
		"a loss of power": {func(c cluster) {
			c["c"].Alive = false
			c.down("a", 13, "c", "timeout")
			c.down("b", 13, "c", "timeout")
		}, []string{"10s crash: [c]"}, ""},
		"a node that does not answer": {func(c cluster) { c["c"].Alive = false }, nil,
			"c does not answer, but nobody has lost it: it is taken to run"},
		"a stop": {func(c cluster) {
			c.add("c", 10, recording.Record{Kind: recording.Transition, Group: "g", To: "DORMANT"})
			c.down("a", 10, "c", "goodbye")
			c.down("c", 10, "b", "local")
			c.add("c", 10.1, recording.Record{Kind: recording.Ended})
			c.start("c", 20, 4, "of c")
		}, []string{"10s stop: [c]", "20s restart: [c]"}, ""},
		"an empty directory": {func(c cluster) {
			c["c"].Records = nil // they were on the old one
			c.down("a", 10, "c", "eof")
			c.down("b", 10, "c", "eof")
			c.start("c", 20, 1, "new")
		}, []string{"20s restart: [c], wipe: true"}, ""},
		"a pause": {func(c cluster) {
			c.add("a", 16, recording.Record{Kind: recording.Held, Seconds: 5.8, AtMost: 6.2})
			c.down("b", 13, "a", "timeout")
			c.down("a", 16, "b", "goodbye")
			c.up("b", 16.1, "a", 3)
		}, []string{"10s pause: [a]", "16s resume: [a]"}, ""},
		"a pause of no account": {func(c cluster) {
			c.add("a", 16, recording.Record{Kind: recording.Held, Seconds: .3, AtMost: .4})
		}, nil, ""},
		"another node is killed after one woke up": {func(c cluster) {
			c.wakes("b", 10, 16)
			c["c"].Alive = false
			for _, n := range []string{"a", "b"} {
				c.down(n, 20, "c", "eof")
				c.add(n, 20.1, recording.Record{Kind: recording.Died, Peer: "c", Why: "refused-after-eof"})
			}
		}, []string{"10s pause: [b]", "16s resume: [b]", "20s crash: [c]"}, ""},
		"the proof of death alone tells when": {func(c cluster) {
			c.wakes("b", 10, 16)
			c["c"].Alive = false
			c.add("a", 20, recording.Record{Kind: recording.Died, Peer: "c", Why: "refused-after-eof"})
		}, []string{"10s pause: [b]", "16s resume: [b]", "20s crash: [c]"}, ""},
		"the return of a node is not its death": {func(c cluster) {
			c.down("a", 13, "c", "timeout")
			c.add("a", 30, recording.Record{Kind: recording.Died, Peer: "c", Why: "reincarnated"})
			c.start("c", 30, 4, "of c")
		}, []string{"10s crash: [c]", "30s restart: [c]"}, ""},
		"only a node that did not listen lost it": {func(c cluster) {
			c["c"].Alive = false
			c.down("b", 15.99, "c", "timeout")
			c.add("b", 16, recording.Record{Kind: recording.Held, Seconds: 5.8, AtMost: 6.2})
		}, []string{"10s pause: [b]", "16s resume: [b]"}, "nobody has lost it: it is taken to run"},
		"a time-out of a link, and later the end of the other": {func(c cluster) {
			c["c"].Alive = false
			c.down("a", 13, "c", "timeout")
			c.down("b", 20, "c", "eof")
		}, []string{"10s cut: [a-c]", "20s crash: [c]"}, ""},
		"a cut, and later a loss of power": {func(c cluster) {
			c["c"].Alive = false
			c.down("a", 13, "c", "timeout")
			c.down("b", 23, "c", "timeout")
		}, []string{"10s cut: [a-c]", "20s crash: [c]"}, ""},
		"a connection breaks, and later the node is killed": {func(c cluster) {
			c["c"].Alive = false
			c.down("a", 10, "c", "eof")
			c.up("a", 10.3, "c", 3)
			c.down("a", 20, "c", "eof")
		}, []string{"20s crash: [c]"}, "the link between a and c broke (eof)"},
		"a connection breaks, and others follow its node": {func(c cluster) {
			c["a"].Alive = false
			c.down("b", 10, "a", "eof")
			c.leader("c", 14, "", 7, "LEADER_NO_HEARTBEAT")
			c.leader("c", 15, "a", 7, "LEADER_FOUND")
			c.down("c", 20, "a", "eof")
		}, []string{"10s cut: [a-b], how: reset", "20s crash: [a]"}, ""},
		"commands": {func(c cluster) {
			c.add("a", 10, recording.Record{Kind: recording.Transfer, Group: "g", To: "b"})
			c.add("a", 10.5, recording.Record{Kind: recording.Transfer, Group: "g"})
			c.add("a", 10.7, recording.Record{Kind: recording.Transfer, Group: "other"})
			c.add("b", 11, recording.Record{Kind: recording.StepDown, Group: "g", Seconds: 30})
			c.add("b", 12, recording.Record{Kind: recording.Unfit, Group: "g"})
			c.add("b", 13, recording.Record{Kind: recording.Fit, Group: "g"})
			c.add("a", 14, recording.Record{Kind: recording.RemoveVoter, Group: "g", To: "c"})
			c.add("a", 15, recording.Record{Kind: recording.AddVoter, Group: "g", To: "c"})
		}, []string{"10s transfer: {to: b}", "10.5s transfer: {}", "11s step-down: [b], for: 30s",
			"12s unfit: [b]", "13s fit: [b]", "14s remove-voter: [c]", "15s add-voter: [c]"}, ""},
		"trouble that was there before": {func(c cluster) {
			c.down("a", -17, "b", "timeout")
			c.down("b", -17, "a", "timeout")
			c.add("b", -12, recording.Record{Kind: recording.Unfit, Group: "g"})
			c.add("c", 15, recording.Record{Kind: recording.Transfer, Group: "g", To: "b"})
		}, []string{"5s unfit: [b]", "5s cut: [a-b]", "15s transfer: {to: b}"}, ""},
		"no recording": {func(c cluster) {
			delete(c, "c")
			c.down("a", 10, "c", "eof")
			c.down("b", 10.1, "c", "eof")
			c.up("a", 20, "c", 4)
		}, []string{"10s crash: [c]", "19.75s restart: [c]"}, "there is no recording of c"},
		"no recording, and killed while another was paused": {func(c cluster) {
			delete(c, "c")
			c.down("a", 12, "c", "eof")
			c.down("b", 19.99, "c", "timeout")
			c.add("b", 20, recording.Record{Kind: recording.Held, Seconds: 9.8, AtMost: 10.2})
		}, []string{"10s pause: [b]", "12s crash: [c]", "20s resume: [b]"}, "there is no recording of c"},
		"no recording, and back at once": {func(c cluster) {
			delete(c, "c")
			for _, n := range []string{"a", "b"} {
				c.down(n, 10, "c", "eof")
				c.up(n, 10.1, "c", 4)
				c.down(n, 20, "c", "eof")
			}
		},
			[]string{"10s crash: [c]", "10s restart: [c]", "20s crash: [c]"}, "there is no recording of c"},
		"no recording, and it said goodbye": {func(c cluster) {
			delete(c, "c")
			c.down("a", 10, "c", "goodbye")
			c.down("b", 10.1, "c", "goodbye")
		}, []string{"10.1s crash: [c]"}, "there is no recording of c"},
		"no recording, and followed after its links were lost": {func(c cluster) {
			delete(c, "c")
			c.down("a", 10, "c", "eof")
			c.down("b", 10, "c", "eof")
			c.leader("a", 12, "c", 8, "LEADER_FOUND")
		}, []string{"10s isolate: [c], how: reset", "12s crash: [c]"}, "there is no recording of c"},
		"no recording, and cut": {func(c cluster) {
			delete(c, "c")
			c.down("a", 13, "c", "timeout")
			c.up("a", 20, "c", 3)
		}, []string{"10s cut: [a-c]", "19.75s heal: [a-c]"}, "there is no recording of c"},
		"damage": {func(c cluster) { c["b"].Damaged = 2 }, nil, "2 records of b are damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			c1 := quietCluster("a", "b", "c")
			c.happen(c1)
			in := c1.infer(t)
			require.Equal(t, c.steps, steps(in), "%s", in.Doubts)
			require.Contains(t, strings.Join(in.Doubts, "\n"), c.doubt)
			sc, err := scenario.Parse("incident.yaml", in.Text)
			require.NoError(t, err, "%s", in.Text)
			require.Len(t, sc.Timeline, len(c.steps))

			ahead := quietCluster("a", "b", "c") // the clock of b, by a minute and a half
			c.happen(ahead)
			for i := range ahead["b"].Records {
				r := &ahead["b"].Records[i]
				r.Time = r.Time.Add(90 * time.Second)
			}
			again := ahead.infer(t)
			require.Equal(t, steps(in), steps(again))
			require.Equal(t, map[string]time.Duration{"b": 90 * time.Second}, again.Clocks)
		})
	}
}

func TestWhatClocksAreComparedBy(t *testing.T) {
	link := func(peer string, boot, peerBoot uint64) recording.Record {
		return recording.Record{Kind: recording.LinkUp, Peer: peer, Boot: boot, PeerBoot: peerBoot}
	}
	led := func(term uint64, reason string) recording.Record {
		return recording.Record{Kind: recording.Transition, Leader: "a", Term: term, Reason: reason}
	}
	for name, c := range map[string]struct {
		here, there recording.Record
		known       bool
	}{
		"a link":             {link("b", 1, 2), link("a", 2, 1), true},
		"of another process": {link("b", 1, 2), link("a", 3, 1), false},
		"an election":        {led(3, "ELECTED"), led(3, "LEADER_FOUND"), true},
		"of another term":    {led(3, "ELECTED"), led(4, "LEADER_FOUND"), false},
	} {
		c.here.Time, c.there.Time = at(0), at(90)
		ahead, known := offset(&Source{Node: "a", Records: []recording.Record{c.here}},
			&Source{Node: "b", Records: []recording.Record{c.there}})
		require.Equal(t, c.known, known, name)
		require.True(t, !known || ahead == 90*time.Second, name)
	}
}

func TestNodesAreWrittenAsTheFormatHasThem(t *testing.T) {
	c := quietCluster("n-1", "n_1", "all")
	c["n_1"].Records[1].Setup.NotCandidate = true
	c["n_1"].Records[1].Setup.Priority = 5
	c["watcher"] = &Source{Node: "watcher", Alive: true}
	c.start("watcher", -5, 1, "of watcher")
	c.up("watcher", -4, "n-1", 3)
	c.up("n-1", -4, "watcher", 1)
	c.add("n-1", 10, recording.Record{Kind: recording.Transfer, Group: "g", To: "all"})
	in := c.infer(t)
	text := string(in.Text)
	for _, want := range []string{
		"# n-1 is n_1_2 here", "  n_1_2: {}\n  n_1: {candidate: false, priority: 5}\n  all_2: {}\n" +
			"  watcher: {observer: true, absent: true}\n", "begin: {leader: n_1_2, term: 7}", "transfer: {to: all_2}",
	} {
		require.Contains(t, text, want)
	}
	_, err := scenario.Parse("incident.yaml", in.Text)
	require.NoError(t, err)
}

func TestWhatCannotBecomeAScenario(t *testing.T) {
	for want, c := range map[string]struct {
		sources []Source
		group   string
	}{
		"no node has recorded anything":                             {nil, "g"},
		`no node has recorded that it took part in election "jobs"`: {quietCluster("a").sources(), "jobs"},
	} {
		_, err := Infer(c.sources, Options{Group: c.group, From: at(0), To: at(60)})
		require.ErrorContains(t, err, want)
	}
	_, err := Infer(quietCluster("a", "b").sources(), Options{Group: "g", From: at(-90), To: at(-70)})
	require.ErrorContains(t, err, "nobody led in that time")
}

// The leader crashes, and c is elected: not every seed does the same.
func TestASeedIsFoundOrItIsSaid(t *testing.T) {
	c := quietCluster("a", "b", "c")
	for _, n := range []string{"b", "c"} {
		c.down(n, 10, "a", "eof")
		c.leader(n, 10, "", 7, "LEADER_UNAVAILABLE")
		reason := "LEADER_FOUND"
		if n == "c" {
			reason = "ELECTED"
		}
		c.leader(n, 11, "c", 8, reason)
	}
	c["a"].Alive = false
	in := c.infer(t)
	r, err := in.Replay(t.Context(), 100)
	require.NoError(t, err)
	require.True(t, r.Same)
	require.True(t, r.Run.Held())
	require.True(t, r.Seen.Held())
	require.Equal(t, []int{0, 2}, []int{r.Differ, r.Total})
	require.Equal(t, []string{"a until 03:00:10.001: LEADER_UNAVAILABLE", "c goes on"}, r.Led)
	require.Contains(t, string(in.Text), fmt.Sprintf("seed: %d\n", r.Seed))
	var out strings.Builder
	require.NoError(t, in.Report(&out, &r))
	require.Contains(t, out.String(), "03:00:10.000 b, c: link to a down: eof\n")
	require.Contains(t, out.String(), "same leaders for the same reasons, with seed ")

	for i := range in.Led { // as if the crash were placed too early
		if l := &in.Led[i]; l.Leader == "a" {
			l.To = l.To.Add(4 * time.Second)
		}
	}
	r, err = in.Replay(t.Context(), int(r.Seed))
	require.NoError(t, err)
	require.False(t, r.Same)

	c = quietCluster("a", "b", "c") // without the crash there is no reason for a change
	for _, n := range []string{"b", "c"} {
		c.leader(n, 10, "", 7, "LEADER_UNAVAILABLE")
		c.leader(n, 11, "c", 8, "LEADER_FOUND")
	}
	in = c.infer(t)
	r, err = in.Replay(t.Context(), 3)
	require.NoError(t, err)
	require.False(t, r.Same)
	require.Equal(t, 3, r.Tried)
	require.Equal(t, []int{2, 2}, []int{r.Differ, r.Total})
	out.Reset()
	require.NoError(t, in.Report(&out, &r))
	require.Contains(t, out.String(), "NOT the same in the simulator: none of 3 seeds")
	require.Contains(t, out.String(), "shows the first 0 of 2 leaderships:\n  a goes on\n")
}

// What is shown as recorded are roles, leaders and terms of the records, whatever the simulator
// makes of them. A leader goes on after a pause within its lease.
func TestLanesAreWhatWasRecorded(t *testing.T) {
	c := quietCluster("a", "b-1", "c")
	c.add("a", 5, recording.Record{Kind: recording.Held, Seconds: .7, AtMost: .7})
	for _, n := range []string{"a", "b-1", "c"} {
		c.leader(n, 20, "", 40, "LEASE_EXPIRED")
		c.leader(n, 21, "b-1", 41, "ELECTED")
	}
	c.add("c", 30, recording.Record{Kind: recording.Ended})
	c["c"].Alive = false
	in := c.infer(t)
	r, err := in.Replay(t.Context(), 1)
	require.NoError(t, err)
	require.False(t, r.Same, "there is no reason for a change")
	h := r.Seen.History
	shown := func(at float64) (all []string) {
		for i := range h.Lanes {
			s := h.Lanes[i].At(zero.Add(seconds(at)).Sub(in.Start))
			all = append(all, fmt.Sprintf("%s %s %d %s", s.Process, s.Role, s.Term, s.Leader))
		}
		return all
	}
	require.Equal(t, []string{"paused LEADER 7 a", "up FOLLOWER 7 a", "up FOLLOWER 7 a"}, shown(4.8))
	require.Equal(t, []string{"up LEADER 7 a", "up FOLLOWER 7 a", "up FOLLOWER 7 a"}, shown(19))
	require.Equal(t, []string{"up FOLLOWER 40 ", "up FOLLOWER 40 ", "up FOLLOWER 40 "}, shown(20.5))
	require.Equal(t, []string{"up FOLLOWER 41 b_1", "up LEADER 41 b_1", "down DORMANT 41 "}, shown(31))
	require.Equal(t, "a", string(h.LeaderAt(zero.Add(19*time.Second).Sub(in.Start))))
	require.NotEmpty(t, h.Marks)

	delete(c, "b-1") // its disk is gone, too: the others saw when it led
	in = c.infer(t)
	r, err = in.Replay(t.Context(), 1)
	require.NoError(t, err)
	h = r.Seen.History
	require.Equal(t, []string{"up FOLLOWER 41 b_1", "up LEADER 41 b_1", "up FOLLOWER 41 b_1"},
		shown(29))
	require.Equal(t, "b_1", string(h.LeaderAt(zero.Add(29*time.Second).Sub(in.Start))))
}
