package ask

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// healthy are the answers of three nodes, of which a leads.
func healthy() []Answer {
	ids := []cluster.NodeID{"a", "b", "c"}
	var answers []Answer
	for _, id := range ids {
		st := &cluster.Status{
			Cluster: "bees", Node: id, Identity: "of " + string(id), Version: "v1", Uptime: 60,
			Groups: []cluster.GroupStatus{{Group: "default", Role: "FOLLOWER", Term: 7, Leader: "a",
				Voters: ids, Quorum: 2, Candidate: true}},
		}
		for _, other := range ids {
			if other != id {
				st.Members = append(st.Members, cluster.MemberStatus{Node: other, Voter: true, Gossip: "alive",
					GossipAddr: "g", Link: "up", RTT: 0.001})
			}
		}
		answers = append(answers, Answer{
			Node: id, via: "at " + string(id), Status: st, figures: admin.Figures{
				AheadLeast: -500 * time.Millisecond, AheadMost: 500 * time.Millisecond,
				Values: map[string]float64{
					"bmqelect_store_write_seconds_count": 4, "bmqelect_store_write_seconds_sum": 0.02,
					"bmqelect_lease_left_at_renewal_ratio_count":            1000,
					`bmqelect_lease_left_at_renewal_ratio_bucket{le="0.2"}`: 2,
				}},
		})
	}
	g := &answers[0].Status.Groups[0]
	g.Role, g.Leading, g.LeaseLeft = "LEADER", true, 0.8
	return answers
}

// silence removes an answer.
func silence(a *Answer, why string) { a.Status, a.Error = nil, why }

// linkAt is the i-th link of a node.
func linkAt(a Answer, i int) *cluster.MemberStatus { return &a.Status.Members[i] }

// linksTo changes how a and b see c.
func linksTo(a []Answer, c cluster.MemberStatus) {
	*linkAt(a[0], 1), *linkAt(a[1], 1) = c, c
}

func group(a Answer) *cluster.GroupStatus { return &a.Status.Groups[0] }

// count lets nodes count voters.
func count(nodes []Answer, voters ...cluster.NodeID) {
	for _, a := range nodes {
		group(a).Voters = voters
	}
}

func TestNothingIsWrongWithAHealthyCluster(t *testing.T) {
	r := examine(healthy())
	require.Len(t, r.Checks, r.Count(OK), "%+v", r)
	require.Equal(t, len(r.Checks), r.Count(OK))
	var subjects []string
	for _, c := range r.Checks {
		subjects = append(subjects, c.Subject)
		require.Empty(t, c.Kind)
	}
	require.Equal(t, []string{"findings", "voters", "members", "links", "leader", "lease", "disks",
		"versions", "wall clocks", "messages"}, subjects)
}

// planted are faults of a cluster, by the begin of the line that names them.
var planted = map[string]func(a []Answer){
	"WARN plain-accepted b: it accepts members without TLS, for 55h33m20s by " +
		"now": func(a []Answer) {
		a[1].Status.AcceptsPlain, a[1].Status.AcceptsPlainFor = true, 200_000
	},
	"FAIL no-answer c: connection refused; a has its link down (reset); b has its link " +
		"up": func(a []Answer) {
		silence(&a[2], "connection refused")
		linkAt(a[0], 1).Link = "down (reset)"
	},
	"WARN no-answer b: it runs (link up), but its admin side cannot be asked: at b: node a " +
		"answers there": func(a []Answer) {
		silence(&a[1], "at b: node a answers there")
	},
	"FAIL no-answer c: refused; a has its link down (reset); b has its link down " +
		"(reset)": func(a []Answer) {
		silence(&a[2], "refused")
		linkAt(a[0], 1).Link, linkAt(a[1], 1).Link = "down (reset)", "down (reset)"
	},
	"WARN no-successor: no other node can take over: not a candidate: b, c": func(a []Answer) {
		group(a[1]).Candidate, group(a[2]).Candidate = false, false
	},
	"WARN link-down b: cut on purpose: c: cut both": func(a []Answer) {
		a[1].Status.Faults = "c: cut both"
	},
	"FAIL never-seen c: never seen": neverMet,
	"WARN no-answer c: it runs (link up), but its admin side cannot be asked: " +
		"timeout": func(a []Answer) {
		silence(&a[2], "timeout")
		count(a[:2], "a", "b")
	},
	"FAIL no-answer at c: x": func(a []Answer) {
		silence(&a[2], "at c: x")
		a[2].Node = ""
	},
	"WARN no-answer at c: x; every voter answers elsewhere": func(a []Answer) {
		silence(&a[2], "at c: x")
		a[2].Node = ""
		count(a[:2], "a", "b")
	},
	"FAIL link-down b - c: up one way only: b has it down (timeout), i/o timeout; c has it " +
		"up": func(a []Answer) {
		linkAt(a[1], 1).Link, linkAt(a[1], 1).LinkError = "down (timeout)", "i/o timeout"
	},
	"FAIL link-down a - b: a has it down (reset); b has it none: it never heard of " +
		"it": func(a []Answer) {
		linkAt(a[0], 0).Link = "down (reset)"
		linkAt(a[1], 0).Link = "none"
	},
	"FAIL no-leader b: no leader: 2 of 3 needed": func(a []Answer) {
		g := group(a[1])
		g.Leader, g.Explanation = "", "no leader: 2 of 3 needed"
	},
	"WARN paused-in-part: elections are paused on a, c until 2026-01-02T12:00:00Z, but not " +
		"on b": func(a []Answer) {
		until := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
		a[0].Status.PausedUntil, a[2].Status.PausedUntil = until.Add(time.Minute), until
	},
	"FAIL leader-disputed: more than one node says that it leads: a in term 7, b in term " +
		"8": func(a []Answer) {
		g := group(a[1])
		g.Leading, g.Leader, g.Term = true, "b", 8
	},
	"WARN leader-disputed: the nodes do not agree: c: a in term 6; a, b: a in term " +
		"7": func(a []Answer) {
		group(a[2]).Term = 6
	},
	"WARN leader-disputed: a is followed, and does not lead any more": func(a []Answer) {
		group(a[0]).Leading = false
	},
	"WARN leader-disputed: a is followed, and does not answer here": func(a []Answer) {
		silence(&a[0], "x")
	},
	"FAIL node-failed b: not durable": func(a []Answer) {
		a[1].Status.Failure = "not durable"
	},
	"FAIL name-twice a: two processes have this name: at at a, up for 1m0s, and at at " +
		"second, up for 3s": func(a []Answer) {
		st := *a[0].Status
		st.Identity, st.Members, st.Uptime = "other", nil, 3
		a[0].Status.Groups = slices.Clone(a[0].Status.Groups)
		a[2] = Answer{Node: "a", via: "at second", Status: &st}
	},
	`FAIL wrong-cluster c: it is of cluster "wasps", and a of "bees"`: func(a []Answer) {
		a[2].Status.Cluster = "wasps"
	},
	"FAIL voters-differ: a, b: a, b, c; c: a, b, d": func(a []Answer) {
		count(a[2:], "a", "b", "d")
	},
	"WARN voters-differ c: c is added or removed: counted by a, b; not by c": func(a []Answer) {
		count(a[2:], "a", "b")
	},
	"WARN voters-differ c: nobody but c itself counts it": func(a []Answer) {
		count(a[:2], "a", "b")
	},
	"FAIL voters-differ d: d is added or removed: counted by c; not by a, b; and it does not " +
		"answer": func(a []Answer) {
		count(a[2:], "a", "b", "c", "d")
	},
	"WARN even-voters: there are 4: a, b, c, d": func(a []Answer) {
		count(a, "a", "b", "c", "d")
	},
	"WARN no-voter c: it takes part without a vote, while cc is missing": func(a []Answer) {
		count(a, "a", "b", "cc")
	},
	"WARN no-voter cx: it takes part without a vote, while c is missing": func(a []Answer) {
		a[2].Node, a[2].Status.Node = "cx", "cx"
		linkAt(a[0], 1).MeshAddr = "10.0.0.3:7401"
		a[0].Status.Members = append(a[0].Status.Members,
			cluster.MemberStatus{Node: "cx", Link: "up", MeshAddr: "10.0.0.3:7401"})
	},
	"WARN lease-short a: 800ms are left of it, and a round trip takes 100ms (b - c): it " +
		"should be 1s at least": func(a []Answer) {
		linkAt(a[1], 1).RTT = 0.1
	},
	"WARN lease-short a: less than a fifth of it was left at 11 of 1000 " +
		"renewals": func(a []Answer) {
		a[0].figures.Values[`bmqelect_lease_left_at_renewal_ratio_bucket{le="0.2"}`] = 11
	},
	"WARN disk-slow b: keeping a term takes 200ms on average": func(a []Answer) {
		a[1].figures.Values["bmqelect_store_write_seconds_sum"] = 0.8
	},
	"WARN versions-differ: v1 on a, c; v2 on b": func(a []Answer) {
		a[1].Status.Version = "v2"
	},
	"WARN wall-clock a - b: that of b is ahead of that of a by at least 3.5s": func(a []Answer) {
		a[1].figures.AheadLeast, a[1].figures.AheadMost = 4*time.Second, 5*time.Second
	},
	"FAIL emergency-record b: x declared lost": func(a []Answer) {
		a[1].Status.Emergencies = []cluster.EmergencyStatus{{Lost: []cluster.NodeID{"x"},
			Voters: []cluster.NodeID{"b", "x"}}}
	},
	"FAIL terms-used-up b: it is in term 4611686018427387904 of at most " +
		"9223372036854775807": func(a []Answer) {
		group(a[1]).Term = 1 << 62
	},
	"WARN anomaly b: absurd-term: 3 since it started": func(a []Answer) {
		a[1].Status.Anomalies = map[string]int{"absurd-term": 3, "malformed": 0}
	},
	"WARN strangers b: 2 connections closed for garbage": func(a []Answer) {
		a[1].Status.Refused = map[string]uint64{"garbage": 2, "stale": 9}
	},
}

func TestEachFaultOfARunningClusterIsNamed(t *testing.T) {
	for want, plant := range planted {
		t.Run(want, func(t *testing.T) {
			answers := healthy()
			plant(answers)
			report := examine(answers)
			kind := Kind(strings.Fields(strings.ReplaceAll(want, ":", ""))[1])
			found := ofKind(report, kind)
			require.Len(t, found, 1)
			got := found[0]
			require.True(t, strings.HasPrefix(lineOf(got), want), lineOf(got))
			require.False(t, strings.HasPrefix(got.What, got.Where+": "), "where it is said twice")
			require.Equal(t, see(kind), got.See)
			require.False(t, slices.ContainsFunc(report.Checks, func(other Check) bool {
				return other.Level == OK && other.Subject == got.Subject && kind != noLeader &&
					(other.Where == "" || other.Where == got.Where)
			}), "and nothing says that it is all right") // other nodes may know a leader
			require.NotEmpty(t, got.Why)
			require.NotEmpty(t, got.Fix)
		})
	}
}

// lineOf is a check in a line.
func lineOf(c Check) string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s %s", c.Level, c.Kind, c.Where), " ") + ": " + c.What
}

// problems are the checks that found something wrong, a line each.
func problems(r Report) (lines []string) {
	for _, c := range r.Checks {
		if c.Level != OK {
			lines = append(lines, lineOf(c))
		}
	}
	return lines
}

// ofKind are the checks of a kind.
func ofKind(r Report, k Kind) (found []Check) {
	for _, c := range r.Checks {
		if c.Kind == k {
			found = append(found, c)
		}
	}
	return found
}

// finds lets a node have found something at another.
func finds(a Answer, kind findings.Kind, peer cluster.NodeID, detail string) {
	a.Status.Findings = []findings.Finding{{Kind: kind, Peer: peer, Detail: detail, Advice: "advice"}}
}

// neverMet lets c have answered nobody, ever.
func neverMet(a []Answer) {
	silence(&a[2], "never seen")
	a[2].via = ""
	linksTo(a, cluster.MemberStatus{Node: "c", Voter: true, Link: "none"})
}

// TestOneCauseIsToldOnce: here the report has these problems, and no other.
func TestOneCauseIsToldOnce(t *testing.T) {
	for about, c := range map[string]struct {
		plant func(a []Answer) []Answer
		want  []string
	}{
		"the address of a voter was named, and no node knows that it is its own": {
			func(a []Answer) []Answer {
				neverMet(a)
				return append(a, Answer{via: "10.0.0.3:7402", Error: "10.0.0.3:7402: refused"})
			}, []string{"FAIL never-seen c: never seen; 10.0.0.3:7402: refused"},
		},
		"a change of the voters is done": {removed, nil},
		"a removed voter sent something just now": {func(a []Answer) []Answer {
			removed(a)
			a[0].Status.AnomalyAges["not-entitled"] = 59
			return a
		}, []string{"WARN anomaly a: not-entitled: 7 since it started"}},
		"a was left of a, b, c and readmitted b, whose new directory has no record": {
			func(a []Answer) []Answer { return emergency(a, "b", "c") },
			[]string{"FAIL emergency-record a: c declared lost at 0001-01-01T00:00:00Z and not readmitted"},
		},
		"b was left, too, and nobody declared it there": {
			func(a []Answer) []Answer { return emergency(a, "c") }, []string{
				"FAIL emergency-record a: c declared lost at 0001-01-01T00:00:00Z and not readmitted",
				"FAIL emergency-record b: it counts c, and does not know that others declared them lost"},
		},
		"a lost node runs": {func(a []Answer) []Answer {
			a[0].Status.Emergencies = []cluster.EmergencyStatus{{Lost: []cluster.NodeID{"c"}}}
			return a
		}, []string{
			"FAIL emergency-record a: c declared lost at 0001-01-01T00:00:00Z and not readmitted",
			"FAIL emergency-record c: it runs, and was declared lost: it is not counted"},
		},
		"links and lists show that voters differ": {voters, []string{
			"FAIL voters-differ: a, b: a, b, c; c: a, b, d, e"}},
		"so does one that does not answer": {func(a []Answer) []Answer {
			voters(a)
			silence(&a[1], "no answer")
			a[2].Status.Findings[0].Peer = "b"
			return a
		}, []string{"FAIL voters-differ: a: a, b, c; c: a, b, d, e",
			"WARN no-answer b: it runs (link up), but its admin side cannot be asked: no answer"}},
		"both ends of a - b, and b - c: b is the cause": {func(a []Answer) []Answer {
			for i, peer := range []cluster.NodeID{"b", "a", "b"} {
				finds(a[i], findings.ClockRate, peer, "said by "+string(a[i].Node))
			}
			return a
		}, []string{"FAIL clock-rate b - a, c: said by a"}},
		"c is cut off": {func(a []Answer) []Answer {
			for i := range a {
				g := group(a[i])
				g.Leader, g.Leading, g.Explanation = "", false, "nobody stands"
			}
			for i := range 2 {
				linkAt(a[i], 1).Link, linkAt(a[2], i).Link = "down (timeout)", "down (timeout)"
			}
			return a
		}, []string{"FAIL link-down c - a, b: a - c: a has it down (timeout); c has it down (timeout); " +
			"b - c: b has it down (timeout); c has it down (timeout)",
			"FAIL no-leader a, b, c: nobody stands"}},
		"a node is alone": {func(a []Answer) []Answer {
			finds(a[0], findings.Alone, "", "nobody")
			g := group(a[0])
			g.Leader, g.Leading, g.Explanation = "", false, "2 needed"
			for i, id := range []cluster.NodeID{"b", "c"} {
				*linkAt(a[0], i) = cluster.MemberStatus{Node: id, Voter: true, Link: "none"}
				a[i+1] = Answer{Node: id, Error: "never seen"}
			}
			return a
		}, []string{"FAIL alone a: nobody", "FAIL no-leader a: 2 needed"}},
		"a knows of d, which does not run": {func(a []Answer) []Answer {
			count(a[:1], "a", "b", "c", "d")
			a[0].Status.Anomalies = map[string]int{"not-entitled": 7}
			return append(a, Answer{Node: "d", Error: "never seen"})
		}, []string{"FAIL voters-differ d: d is added or removed: counted by a; not by b, c; " +
			"and it does not answer"}},
		"two names of one list are mistyped": {func(a []Answer) []Answer {
			count(a[2:], "c", "x", "y")
			return append(a, Answer{Node: "x", Error: "never seen"}, Answer{Node: "y", Error: "never seen"})
		}, []string{"FAIL voters-differ: a, b: a, b, c; c: c, x, y"}},
		"a duplicate answers before the member": {func(a []Answer) []Answer {
			duplicate := *a[1].Status
			duplicate.Identity, duplicate.Members = "other", nil
			return append([]Answer{{Node: "b", via: "second", Status: &duplicate}}, a...)
		}, []string{"FAIL name-twice b: two processes have this name: " +
			"at at b, up for 1m0s, and at second, up for 1m0s"}},
		"one node at two addresses": {func(a []Answer) []Answer { return append(a, a[0]) }, nil},
		"observers, and an emergency that is over": {func(a []Answer) []Answer {
			count(a, "a")
			a[0].Status.Emergencies = []cluster.EmergencyStatus{{Lost: []cluster.NodeID{"x"},
				Readmitted: []cluster.ReadmissionStatus{{Node: "x"}}}}
			return a
		}, nil},
		"a copy of c's directory is refused": {func(a []Answer) []Answer {
			refused(a)
			finds(a[1], findings.DirectoryCopied, "c", "a copy")
			return a
		}, []string{"FAIL data-dir-copied c - a, b: a copy"}},
		"a copy of c's directory is refused by a alone": {refused, []string{
			"FAIL data-dir-copied a - c: a copy",
			"FAIL link-down b - c: b has it down (refused); c has it down (refused)",
			"FAIL no-leader c: 2 of 3 needed"}},
	} {
		require.Equal(t, c.want, problems(examine(c.plant(healthy()))), about)
	}
}

// removed: c was a voter, has been removed and was stopped a minute ago.
func removed(a []Answer) []Answer {
	silence(&a[2], "connection refused")
	count(a[:2], "a")
	linksTo(a, cluster.MemberStatus{Node: "c", Gossip: "left", GossipAddr: "g", Link: "down (bye)"})
	for i := range 2 {
		a[i].Status.Anomalies = map[string]int{"not-entitled": 7}
		a[i].Status.AnomalyAges = map[string]cluster.Seconds{"not-entitled": 61}
	}
	return a
}

// emergency: of a, b, c some were lost, b is back and c not yet.
func emergency(a []Answer, lost ...cluster.NodeID) []Answer {
	ids := group(a[1]).Voters
	neverMet(a)
	linkAt(a[0], 1).Voter = false
	count(a[:1], "a", "b")
	a[0].Status.Emergencies = []cluster.EmergencyStatus{{Voters: ids, Lost: lost,
		Readmitted: []cluster.ReadmissionStatus{{Node: "b"}}}}
	return a
}

// voters: c counts others than a and b.
func voters(a []Answer) []Answer {
	count(a[2:], "a", "b", "d", "e")
	for i, peer := range []cluster.NodeID{"c", "c", "a"} {
		finds(a[i], findings.VotersDiffer, peer, "x")
	}
	return a
}

// refused: a and b have no link to c, for a copy of its directory runs.
func refused(a []Answer) []Answer {
	for i := range 2 {
		linkAt(a[i], 1).Link, linkAt(a[2], i).Link = "down (refused)", "down (refused)"
	}
	finds(a[0], findings.DirectoryCopied, "c", "a copy")
	g := group(a[2])
	g.Leader, g.Explanation = "", "2 of 3 needed"
	return a
}

func TestAdviceFitsTheCase(t *testing.T) {
	first := func(kind Kind, plant func([]Answer) []Answer) Check {
		return ofKind(examine(plant(healthy())), kind)[0]
	}
	require.Contains(t, first(emergencyRecord, func(a []Answer) []Answer {
		return emergency(a, "b", "c")
	}).Fix, "docs/emergency.md#back-to-full-strength")
	require.Contains(t, first(emergencyRecord, func(a []Answer) []Answer {
		a[1].Status.Emergencies = []cluster.EmergencyStatus{{Lost: []cluster.NodeID{"a"}}}
		return a
	}).Fix, "stop it, and retire its data directory")
	differ := first(findings.VotersDiffer, voters).Fix
	require.Contains(t, differ, "stop the node whose list is wrong, and correct it")
	require.Contains(t, differ, "take the name out, if it is mistyped")
	clock := first(findings.ClockRate, func(a []Answer) []Answer {
		finds(a[0], findings.ClockRate, "b", "x")
		return a
	})
	require.Equal(t, "advice", clock.Fix, "that of the node that found it")
	require.NotEmpty(t, clock.Why)
	require.Equal(t, "with two values of heartbeat-broadcast, two leaders are possible",
		first(findings.SettingsDiffer, func(a []Answer) []Answer {
			finds(a[0], findings.SettingsDiffer, "b",
				`heartbeat-broadcast is "1s" on node "a" and "2s" on node "b"`)
			return a
		}).Why)
}

func TestReportsAreJSON(t *testing.T) {
	answers := healthy()
	answers[1].Status.Version = "v2"
	data, err := json.Marshal(Report{Checks: ofKind(examine(answers), versionsDiffer)})
	require.NoError(t, err)
	require.JSONEq(t, `{"checks":[{"level":"WARN","subject":"versions",
		"what":"v1 on a, c; v2 on b","kind":"versions-differ",
		"why":"fine during a rolling upgrade, and not for longer",
		"fix":"finish the upgrade: docs/operations.md#rolling-upgrade",
		"see":"docs/errors.md#versions-differ"}]}`, string(data))
}
