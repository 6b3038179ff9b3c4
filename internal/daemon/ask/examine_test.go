package ask

import (
	"encoding/json"
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

// planted are faults of a cluster: what is planted, and what must be said of it.
var planted = map[string]struct {
	plant func([]Answer)
	kind  Kind
	level Level
	where string
	what  string
}{
	"accept-plain was forgotten": {
		func(a []Answer) { a[1].Status.AcceptsPlain, a[1].Status.AcceptsPlainFor = true, 200_000 },
		plainAccepted, Warn, "b", "it accepts members without TLS, for 55h33m20s by now",
	},
	"a voter does not answer": {
		func(a []Answer) { silence(&a[2], "connection refused"); linkAt(a[0], 1).Link = "down (reset)" },
		noAnswer, Fail, "c", "connection refused; a has its link down (reset); b has its link up",
	},
	"a voter runs, and its admin side cannot be asked": {
		func(a []Answer) { silence(&a[1], "at b: node a answers there") }, noAnswer, Warn, "b",
		"it runs (link up), but its admin side cannot be asked: at b: node a answers there",
	},
	"a voter that does not answer has lost its links": {
		func(a []Answer) {
			silence(&a[2], "refused")
			linkAt(a[0], 1).Link, linkAt(a[1], 1).Link = "down (reset)", "down (reset)"
		},
		noAnswer, Fail, "c", "refused; a has its link down (reset); b has its link down (reset)",
	},
	"nobody may stand": {
		func(a []Answer) {
			a[1].Status.Groups[0].Candidate, a[2].Status.Groups[0].Candidate = false, false
		},
		noSuccessor, Warn, "", "no other node can take over: not a candidate: b, c",
	},
	"a cut made on purpose": {
		func(a []Answer) { a[1].Status.Faults = "c: cut both" }, linkDown, Warn, "b",
		"cut on purpose: c: cut both",
	},
	"a voter never came": {
		func(a []Answer) {
			silence(&a[2], "never seen")
			a[2].via = ""
			for i := range 2 {
				*linkAt(a[i], 1) = cluster.MemberStatus{Node: "c", Voter: true, Link: "none"}
			}
		},
		neverSeen, Fail, "c", "never seen",
	},
	"an observer does not answer": {
		func(a []Answer) {
			silence(&a[2], "timeout")
			for i := range 2 {
				a[i].Status.Groups[0].Voters = []cluster.NodeID{"a", "b"}
			}
		},
		noAnswer, Warn, "c", "timeout",
	},
	"an address does not answer": {
		func(a []Answer) { silence(&a[2], "at c: x"); a[2].Node = "" }, noAnswer, Fail, "at c", "x",
	},
	"an address of nobody does not answer": {
		func(a []Answer) {
			silence(&a[2], "at c: x")
			a[2].Node = ""
			for i := range 2 {
				a[i].Status.Groups[0].Voters = []cluster.NodeID{"a", "b"}
			}
		},
		noAnswer, Warn, "at c", "x; every voter answers elsewhere",
	},
	"a link is up one way": {
		func(a []Answer) {
			linkAt(a[1], 1).Link, linkAt(a[1], 1).LinkError = "down (timeout)",
				"i/o timeout"
		},
		linkDown, Fail, "b - c", "up one way only: b has it down (timeout), i/o timeout; c has it up",
	},
	"a link is down": {
		func(a []Answer) { linkAt(a[0], 0).Link = "down (reset)"; linkAt(a[1], 0).Link = "none" },
		linkDown, Fail, "a - b", "a has it down (reset); b has it none: it never heard of it",
	},
	"no leader": {
		func(a []Answer) {
			g := &a[1].Status.Groups[0]
			g.Leader, g.Explanation = "", "no leader: 2 of 3 needed"
		},
		noLeader, Fail, "b", "2 of 3 needed",
	},
	"one is not paused": {
		func(a []Answer) {
			until := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
			a[0].Status.PausedUntil, a[2].Status.PausedUntil = until.Add(time.Minute), until
		},
		pausedInPart, Warn, "", "paused on a, c until 2026-01-02T12:00:00Z, but not on b",
	},
	"two lead": {
		func(a []Answer) { g := &a[1].Status.Groups[0]; g.Leading, g.Leader, g.Term = true, "b", 8 },
		leaderDisputed, Fail, "", "more than one node says that it leads: a in term 7, b in term 8",
	},
	"terms differ": {
		func(a []Answer) { a[2].Status.Groups[0].Term = 6 },
		leaderDisputed, Warn, "", "c: a in term 6; a, b: a in term 7",
	},
	"the leader stopped to lead": {
		func(a []Answer) { a[0].Status.Groups[0].Leading = false },
		leaderDisputed, Warn, "", "a is followed, and does not lead any more",
	},
	"the leader is silent": {
		func(a []Answer) { silence(&a[0], "x") }, leaderDisputed, Warn, "",
		"a is followed, and does not answer here",
	},
	"a node failed": {
		func(a []Answer) { a[1].Status.Failure = "not durable" }, nodeFailed, Fail, "b", "not durable",
	},
	"a name twice": {
		func(a []Answer) {
			st := *a[0].Status
			st.Identity, st.Members, st.Uptime = "other", nil, 3
			a[0].Status.Groups = []cluster.GroupStatus{a[0].Status.Groups[0]}
			a[2] = Answer{Node: "a", via: "at second", Status: &st}
		},
		"name-twice", Fail, "a", "at at a, up for 1m0s, and at at second, up for 3s",
	},
	"another cluster": {
		func(a []Answer) { a[2].Status.Cluster = "wasps" }, "wrong-cluster", Fail, "c",
		`it is of cluster "wasps", and a of "bees"`,
	},
	"voters differ": {
		func(a []Answer) { a[2].Status.Groups[0].Voters = []cluster.NodeID{"a", "b", "d"} },
		"voters-differ", Fail, "", "a, b: a, b, c; c: a, b, d",
	},
	"a voter is being added": {
		func(a []Answer) { a[2].Status.Groups[0].Voters = []cluster.NodeID{"a", "b"} },
		"voters-differ", Warn, "c", "c is added or removed: counted by a, b; not by c",
	},
	"a new voter is alone with it": {
		func(a []Answer) {
			for i := range 2 {
				a[i].Status.Groups[0].Voters = []cluster.NodeID{"a", "b"}
			}
		},
		"voters-differ", Warn, "c", "nobody but c itself counts it",
	},
	"a new voter was not started first": {
		func(a []Answer) { a[2].Status.Groups[0].Voters = []cluster.NodeID{"a", "b", "c", "d"} },
		"voters-differ", Fail, "d",
		"d is added or removed: counted by c; not by a, b; and it does not answer",
	},
	"an even number of voters": {
		func(a []Answer) {
			for i := range a {
				a[i].Status.Groups[0].Voters = []cluster.NodeID{"a", "b", "c", "d"}
			}
		},
		evenVoters, Warn, "", "there are 4: a, b, c, d",
	},
	"a misspelt voter": {
		func(a []Answer) {
			for i := range a {
				a[i].Status.Groups[0].Voters = []cluster.NodeID{"a", "b", "cc"}
			}
		},
		noVoter, Warn, "c", "it takes part without a vote, while cc is missing",
	},
	"a misspelt name at the address of a voter": {
		func(a []Answer) {
			a[2].Node, a[2].Status.Node = "cx", "cx"
			linkAt(a[0], 1).MeshAddr = "10.0.0.3:7401"
			a[0].Status.Members = append(a[0].Status.Members,
				cluster.MemberStatus{Node: "cx", Link: "up", MeshAddr: "10.0.0.3:7401"})
		},
		noVoter, Warn, "cx", "it takes part without a vote, while c is missing",
	},
	"long round trips": {
		func(a []Answer) { linkAt(a[1], 1).RTT = 0.1 }, leaseShort, Warn, "a",
		"800ms are left of it, and a round trip takes 100ms (b - c): it should be 1s at least",
	},
	"late renewals": {
		func(a []Answer) { a[0].figures.Values[`bmqelect_lease_left_at_renewal_ratio_bucket{le="0.2"}`] = 11 },
		leaseShort, Warn, "a", "less than a fifth of it was left at 11 of 1000 renewals",
	},
	"a slow disk": {
		func(a []Answer) { a[1].figures.Values["bmqelect_store_write_seconds_sum"] = 0.8 },
		diskSlow, Warn, "b", "keeping a term takes 200ms on average",
	},
	"versions differ": {
		func(a []Answer) { a[1].Status.Version = "v2" }, versionsDiffer, Warn, "", "v1 on a, c; v2 on b",
	},
	"a wall clock is ahead": {
		func(a []Answer) {
			a[1].figures.AheadLeast, a[1].figures.AheadMost = 4*time.Second, 5*time.Second
		},
		wallClock, Warn, "a - b", "that of b is ahead of that of a by at least 3.5s",
	},
	"an emergency": {
		func(a []Answer) {
			a[1].Status.Emergencies = []cluster.EmergencyStatus{{Lost: []cluster.NodeID{"x"},
				Voters: []cluster.NodeID{"b", "x"}}}
		},
		emergencyRecord, Fail, "b", "x declared lost",
	},
	"terms are used up": {
		func(a []Answer) { a[1].Status.Groups[0].Term = 1 << 62 }, termsUsedUp, Fail, "b",
		"it is in term 4611686018427387904 of at most 9223372036854775807",
	},
	"an anomaly": {
		func(a []Answer) { a[1].Status.Anomalies = map[string]int{"absurd-term": 3, "malformed": 0} },
		anomaly, Warn, "b", "absurd-term: 3 since it started",
	},
	"a stranger": {
		func(a []Answer) { a[1].Status.Refused = map[string]uint64{"garbage": 2, "stale": 9} },
		strangers, Warn, "b", "2 connections closed for garbage",
	},
}

func TestEachFaultOfARunningClusterIsNamed(t *testing.T) {
	for name, c := range planted {
		t.Run(name, func(t *testing.T) {
			answers := healthy()
			c.plant(answers)
			report := examine(answers)
			got := ofKind(report, c.kind)
			require.Len(t, got, 1)
			require.Equal(t, c.level, got[0].Level)
			require.Equal(t, c.where, got[0].Where)
			require.Contains(t, got[0].What, c.what)
			require.False(t, strings.HasPrefix(got[0].What, got[0].Where+": "),
				"where it is said twice: %s", got[0].What)
			require.Equal(t, see(c.kind), got[0].See)
			require.False(t, slices.ContainsFunc(report.Checks, func(other Check) bool {
				return other.Level == OK && other.Subject == got[0].Subject && c.kind != noLeader &&
					(other.Where == "" || other.Where == c.where)
			}), "and nothing says that it is all right") // other nodes may know a leader
			require.NotEmpty(t, got[0].Why)
			require.NotEmpty(t, got[0].Fix)
		})
	}
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

// Its address was named, and no node knows that it is its own.
func TestAVoterThatIsMissingIsToldOnce(t *testing.T) {
	answers := healthy()
	silence(&answers[2], "never seen")
	answers[2].via = ""
	for i := range 2 {
		*linkAt(answers[i], 1) = cluster.MemberStatus{Node: "c", Voter: true, Link: "none"}
	}
	r := examine(append(answers, Answer{via: "10.0.0.3:7402", Error: "10.0.0.3:7402: refused"}))
	require.Equal(t, 1, r.Count(Fail), "%+v", r)
	require.Equal(t, "never seen; 10.0.0.3:7402: refused", ofKind(r, neverSeen)[0].What)
}

// A voter that was removed and stopped is not missed, and what it sent meanwhile is over.
func TestAChangeOfTheVotersThatIsDoneIsNoProblem(t *testing.T) {
	answers := healthy()
	silence(&answers[2], "connection refused")
	for i := range 2 {
		answers[i].Status.Groups[0].Voters = []cluster.NodeID{"a"}
		*linkAt(answers[i], 1) = cluster.MemberStatus{Node: "c", Gossip: "left", GossipAddr: "g",
			Link: "down (goodbye)"}
		answers[i].Status.Anomalies = map[string]int{"not-entitled": 7}
		answers[i].Status.AnomalyAges = map[string]cluster.Seconds{"not-entitled": 61}
	}
	r := examine(answers)
	require.Len(t, r.Checks, r.Count(OK), "%+v", r)
	answers[0].Status.AnomalyAges["not-entitled"] = 59
	require.Len(t, ofKind(examine(answers), anomaly), 1)
}

// Of a, b, c only a was left. It readmitted b, whose new directory has no record, not yet c.
func TestOnTheWayBackFromAnEmergencyNothingElseIsAdvised(t *testing.T) {
	answers := healthy()
	silence(&answers[2], "never seen")
	answers[2].via = ""
	ids := answers[1].Status.Groups[0].Voters
	answers[0].Status.Groups[0].Voters = ids[:2]
	answers[0].Status.Emergencies = []cluster.EmergencyStatus{{Voters: ids, Lost: ids[1:],
		Readmitted: []cluster.ReadmissionStatus{{Node: "b"}}}}
	for i := range 2 {
		*linkAt(answers[i], 1) = cluster.MemberStatus{Node: "c", Voter: i == 1, Link: "none"}
	}
	r := examine(answers)
	require.Zero(t, r.Count(Warn), "%+v", r)
	require.Equal(t, 1, r.Count(Fail), "%+v", r)
	require.Contains(t, ofKind(r, emergencyRecord)[0].Fix, "docs/emergency.md#back-to-full-strength")

	// Here b was left, too, and nobody declared it there.
	answers[0].Status.Emergencies[0].Lost = ids[2:]
	r = examine(answers)
	require.Equal(t, 2, r.Count(Fail), "%+v", r)
	require.Equal(t, "it counts c, and does not know that others declared them lost",
		ofKind(r, emergencyRecord)[1].What)
}

func TestALostNodeThatRunsIsToBeStopped(t *testing.T) {
	answers := healthy()
	answers[0].Status.Emergencies = []cluster.EmergencyStatus{{Lost: []cluster.NodeID{"c"}}}
	got := ofKind(examine(answers), emergencyRecord)
	require.Len(t, got, 2, "the record of a, and c")
	require.Equal(t, "c", got[1].Where)
	require.Equal(t, "it runs, and was declared lost: it is not counted", got[1].What)
	require.True(t, strings.HasPrefix(got[1].Fix, "stop it"), got[1].Fix)
}

// Both the links and the lists show a change of the voters.
func TestVotersThatDifferAreToldOnce(t *testing.T) {
	answers := healthy()
	answers[2].Status.Groups[0].Voters = []cluster.NodeID{"a", "b", "d", "e"}
	for i, peer := range []cluster.NodeID{"c", "c", "a"} {
		answers[i].Status.Findings = []findings.Finding{{Kind: findings.VotersDiffer, Peer: peer,
			Detail: "x", Advice: "y"}}
	}
	require.Len(t, ofKind(examine(answers), "voters-differ"), 1)

	// b, which does not answer, differs as well.
	silence(&answers[1], "no answer")
	answers[2].Status.Findings[0].Peer = "b"
	require.Len(t, ofKind(examine(answers), "voters-differ"), 1)
}

func TestOneCauseIsOneCheck(t *testing.T) {
	answers := healthy()
	for i, peer := range []cluster.NodeID{"b", "a", "b"} {
		answers[i].Status.Findings = []findings.Finding{{Kind: findings.ClockRate, Peer: peer,
			Detail: "said by " + string(answers[i].Node), Advice: "fix it"}}
	}
	got := ofKind(examine(answers), "clock-rate")
	require.Len(t, got, 1, "both ends of a - b, and b - c: b is the cause")
	require.Equal(t, "b - a, c", got[0].Where)
	require.Equal(t, "said by a", got[0].What)
	require.Equal(t, "fix it", got[0].Fix)
	require.NotEmpty(t, got[0].Why)

	for i := range answers {
		answers[i].Status.Findings = nil
		g := &answers[i].Status.Groups[0]
		g.Leader, g.Leading, g.Explanation = "", false, "nobody stands"
	}
	for _, i := range []int{0, 1} { // c is cut off
		linkAt(answers[i], 1).Link = "down (timeout)"
		linkAt(answers[2], i).Link = "down (timeout)"
	}
	r := examine(answers)
	require.Equal(t, 2, r.Count(Fail), "%+v", r)
	require.Equal(t, "a, b, c", ofKind(r, noLeader)[0].Where)
	require.Equal(t, "c - a, b", ofKind(r, linkDown)[0].Where)
	require.Equal(t, "a - c: a has it down (timeout); c has it down (timeout); "+
		"b - c: b has it down (timeout); c has it down (timeout)", ofKind(r, linkDown)[0].What)
}

// What only follows from another problem is not told beside it.
func TestWhatFollowsIsNotTold(t *testing.T) {
	answers := healthy()[:1]
	st := answers[0].Status
	st.Findings = []findings.Finding{{Kind: findings.Alone, Detail: "nobody", Advice: "join"}}
	st.Groups[0].Leader, st.Groups[0].Leading, st.Groups[0].Explanation = "", false, "2 needed"
	for i, id := range []cluster.NodeID{"b", "c"} {
		st.Members[i] = cluster.MemberStatus{Node: id, Voter: true, Link: "none"}
		answers = append(answers, Answer{Node: id, Error: "never seen"})
	}
	r := examine(answers)
	require.Equal(t, 2, r.Count(Fail), "%+v", r)
	require.Equal(t, "a", ofKind(r, findings.Alone)[0].Where)
	require.Len(t, ofKind(r, noLeader), 1)

	answers = healthy() // a knows of d, which does not run
	answers[0].Status.Groups[0].Voters = []cluster.NodeID{"a", "b", "c", "d"}
	answers[0].Status.Anomalies = map[string]int{"not-entitled": 7}
	r = examine(append(answers, Answer{Node: "d", Error: "never seen"}))
	require.Equal(t, 1, r.Count(Fail), "%+v", r)
	require.Zero(t, r.Count(Warn), "%+v", r)
	require.Contains(t, ofKind(r, findings.VotersDiffer)[0].What, "and it does not answer")
}

func TestADuplicateIsNotTakenForTheMember(t *testing.T) {
	answers := healthy()
	duplicate := *answers[1].Status
	duplicate.Identity, duplicate.Members = "other", nil
	r := examine(append([]Answer{{Node: "b", via: "second", Status: &duplicate}}, answers...))
	require.Len(t, ofKind(r, "name-twice"), 1)
	require.Empty(t, ofKind(r, linkDown), "the links of the member count, whoever answered first")
	r = examine(append(healthy(), healthy()[0]))
	require.Len(t, r.Checks, r.Count(OK), "one node at two addresses is no duplicate")
}

func TestObserversAndPastEmergenciesAreNoProblem(t *testing.T) {
	answers := healthy()
	for i := range answers {
		answers[i].Status.Groups[0].Voters = []cluster.NodeID{"a"}
	}
	answers[0].Status.Emergencies = []cluster.EmergencyStatus{{Lost: []cluster.NodeID{"x"},
		Readmitted: []cluster.ReadmissionStatus{{Node: "x"}}}}
	r := examine(answers)
	require.Len(t, r.Checks, r.Count(OK))
}

func TestReportsAreJSON(t *testing.T) {
	answers := healthy()
	answers[1].Status.Version = "v2"
	data, err := json.Marshal(Report{Checks: ofKind(examine(answers), versionsDiffer)})
	require.NoError(t, err)
	require.JSONEq(t, `{"checks":[{"level":"WARN","subject":"versions","what":"v1 on a, c; v2 on b","kind":"versions-differ",
		"why":"fine during a rolling upgrade, and not for longer",
		"fix":"finish the upgrade: docs/operations.md#rolling-upgrade","see":"docs/errors.md#versions-differ"}]}`, string(data))
}

// A process on a copy of c's directory is refused: its links and its view follow from that.
func TestWhatARefusalExplainsIsNotTold(t *testing.T) {
	answers := healthy()
	for i := range 2 {
		linkAt(answers[i], 1).Link, linkAt(answers[2], i).Link = "down (refused)", "down (refused)"
		answers[i].Status.Findings = []findings.Finding{{Kind: findings.DirectoryCopied, Peer: "c",
			Detail: "a copy", Advice: "stop it"}}
	}
	g := &answers[2].Status.Groups[0]
	g.Leader, g.Explanation = "", "2 of 3 needed"
	r := examine(answers)
	require.Equal(t, 1, r.Count(Fail), "%+v", r)
	require.Zero(t, r.Count(Warn), "%+v", r)
	require.Equal(t, findings.DirectoryCopied, r.Checks[0].Kind, "the cause comes first")

	answers[1].Status.Findings = nil // what it has with b is told
	r = examine(answers)
	require.Equal(t, "b - c", ofKind(r, linkDown)[0].Where)
	require.Equal(t, "c", ofKind(r, noLeader)[0].Where)
}

// Two names of c's list are mistyped: nobody is to start them.
func TestNamesOfOneListAloneAreNotToBeStarted(t *testing.T) {
	answers := healthy()
	answers[2].Status.Groups[0].Voters = []cluster.NodeID{"c", "x", "y"}
	for _, id := range []cluster.NodeID{"x", "y"} {
		answers = append(answers, Answer{Node: id, Error: "never seen"})
	}
	r := examine(answers)
	require.Equal(t, 1, r.Count(Fail), "%+v", r)
	differ := ofKind(r, findings.VotersDiffer)[0]
	require.Contains(t, differ.Fix, "stop the node whose list is wrong, and correct it")
	require.Contains(t, differ.Fix, "take the name out, if it is mistyped")
}

func TestTheSettingThatDiffersIsTheReason(t *testing.T) {
	answers := healthy()
	answers[0].Status.Findings = []findings.Finding{{Kind: findings.SettingsDiffer, Peer: "b",
		Detail: `heartbeat-broadcast is "1s" on node "a" and "2s" on node "b"`}}
	require.Equal(t, "with two values of heartbeat-broadcast, two leaders are possible",
		ofKind(examine(answers), findings.SettingsDiffer)[0].Why)
}
