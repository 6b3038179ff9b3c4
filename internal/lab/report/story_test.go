package report_test

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
	"github.com/bmqelect/bmqelect/lsn"
)

const sec = time.Second

// life writes a lane by hand: each call ends the span before it.
type life struct {
	lane history.Lane
	end  time.Duration
}

func node(id history.NodeID, end time.Duration) *life {
	return &life{lane: history.Lane{Node: id, Voter: true, Candidate: true}, end: end}
}

func (l *life) is(from time.Duration, role elector.Role, term lsn.Term,
	leader history.NodeID) *life {
	return l.span(history.Span{From: from, Process: history.Up, Role: role, Term: term, MaxTerm: term,
		Leader: leader})
}

func (l *life) leads(from time.Duration, term lsn.Term, lease time.Duration) *life {
	return l.span(history.Span{
		From: from, Process: history.Up, Role: elector.Leader, Term: term, MaxTerm: term,
		Leader: l.lane.Node, LeaseUntil: lease,
	})
}

func (l *life) down(from time.Duration) *life { return l.span(history.Span{From: from}) }

// paused goes on in the same role.
func (l *life) paused(from time.Duration) *life {
	s := l.lane.Spans[len(l.lane.Spans)-1]
	s.From, s.Process = from, history.Paused
	return l.span(s)
}

func (l *life) span(s history.Span) *life {
	if n := len(l.lane.Spans); n > 0 {
		l.lane.Spans[n-1].To = s.From
	}
	s.To = l.end
	l.lane.Spans = append(l.lane.Spans, s)
	return l
}

func (l *life) went(at time.Duration, t elector.Transition) *life {
	l.lane.Transitions = append(l.lane.Transitions, history.Transition{At: at, Transition: t})
	return l
}

// takeover is a run with one of everything: leader a is cut off, its lease runs
// out, c takes over; b is paused, d crashes, o watches.
func takeover() verdict.Run {
	const end = 60 * sec
	a := node("a", end).leads(-5*sec, 10, 22*sec).is(24*sec, elector.Follower, 10, "").is(42*sec,
		elector.Follower, 11, "c").
		went(24*sec, elector.Transition{From: elector.Leader, To: elector.Follower,
			Reason: elector.LeaseExpired, Term: 10}).
		went(42*sec, elector.Transition{From: elector.Follower, To: elector.Follower,
			Reason: elector.LeaderFound, Term: 11, Leader: "c", Peer: "c"})
	b := node("b", end).is(-5*sec, elector.Follower, 10, "a").is(23*sec, elector.Follower, 10, "").
		is(26*sec, elector.Follower, 11, "c").paused(45*sec).is(50*sec, elector.Follower, 11, "c")
	c := node("c", end).is(-5*sec, elector.Follower, 10, "a").is(23*sec, elector.Follower, 10, "").
		is(25500*time.Millisecond, elector.Candidate, 11, "").leads(26*sec, 11, history.Forever).
		went(23*sec, elector.Transition{From: elector.Follower, To: elector.Follower,
			Reason: elector.LeaderNoHeartbeat, Term: 10, Peer: "a"}).
		went(25500*time.Millisecond, elector.Transition{From: elector.Follower, To: elector.Candidate,
			Reason: elector.Proposed, Term: 11}).
		went(26*sec, elector.Transition{From: elector.Candidate, To: elector.Leader,
			Reason: elector.Elected, Term: 11, Leader: "c"})
	d := node("d", end).is(-5*sec, elector.Follower, 10, "a").is(23*sec, elector.Follower, 10,
		"").is(26*sec, elector.Follower, 11, "c").
		down(48*sec).is(55*sec, elector.Follower, 11, "c")
	o := node("o", end).is(-5*sec, elector.Follower, 10, "a").is(23*sec, elector.Follower, 10,
		"").is(26*sec, elector.Follower, 11, "c")
	d.lane.Candidate = false
	o.lane.Voter, o.lane.Candidate = false, false
	h := &history.History{
		Scenario: "leader-cut-off", Mode: "simulated", Seed: 7, Duration: end, Quorum: 3,
		Lanes: []history.Lane{a.lane, b.lane, c.lane, d.lane, o.lane},
		Marks: []history.Mark{
			{At: 20 * sec, Text: "isolate a"}, {At: 40 * sec, Text: "heal all"},
			{At: 45 * sec, Text: "pause b"},
			{At: 48 * sec, Text: "crash d"}, {At: 50 * sec, Text: "resume b"},
			{At: 52 * sec, Text: "transfer to b", Note: "b is not fit"},
			{At: 55 * sec, Text: "restart d"},
		},
		Arrows: []history.Arrow{
			{From: "a", To: "b", Sent: 19 * sec, Received: 19*sec + 5*time.Millisecond,
				Kind: elector.LeaderHeartbeat.String(), Text: "LeaderHeartbeat term=10"},
			{From: "a", To: "c", Sent: 21 * sec, Received: history.Forever,
				Kind: elector.LeaderHeartbeat.String(),
				Text: "LeaderHeartbeat term=10"},
		},
		Sent: []history.Bucket{{At: 0, Count: 1200}, {At: 30 * sec, Count: 800}},
	}
	for _, peer := range []history.NodeID{"b", "c", "d", "o"} {
		h.Cuts = append(h.Cuts, history.Cut{From: "a", To: peer, Start: 20 * sec, End: 40 * sec},
			history.Cut{From: peer, To: "a", Start: 20 * sec, End: 40 * sec})
	}
	return verdict.Run{History: h,
		About: "the leader is cut off from all; the others wait for its lease to end and elect another one", Verdicts: []verdict.Verdict{
			{Text: "{from: 0s, to: 20s, leader: a, term: 10}", Seen: "a leads in term 10", From: 0,
				To: 20 * sec, Held: true},
			{Text: "{from: 20s, leader_within: 6s}", Seen: "c leads from 26s", At: 20 * sec, From: 20 * sec,
				To: 26 * sec, Held: true},
			{Text: "{from: 10s, to: 60s, leader_changes: 0}", Seen: "1 leader change: a, then c",
				At: 26 * sec, From: 10 * sec, To: 60 * sec},
		}}
}

// steady is a variant of takeover in which nothing happens.
func steady() verdict.Run {
	const end = 60 * sec
	h := &history.History{
		Scenario: "leader-cut-off", Variant: "no faults", Mode: "simulated", Seed: 7, Duration: end,
		Quorum: 2,
		Lanes: []history.Lane{
			node("a", end).leads(-5*sec, 10, history.Forever).lane,
			node("b", end).is(-5*sec, elector.Follower, 10, "a").lane,
			node("c", end).is(-5*sec, elector.Follower, 10, "a").lane,
		},
		Sent: []history.Bucket{{At: 0, Count: 90}},
	}
	return verdict.Run{History: h, Verdicts: []verdict.Verdict{
		{Text: "{from: 0s, leader: a}", Seen: "a leads", To: end, Held: true},
	}}
}

// split is a run in which c leads from 20 s on, and a goes on until 40 s. No lease forbids it.
func split() verdict.Run {
	const end = 60 * sec
	return verdict.Run{History: &history.History{
		Scenario: "split", Mode: "simulated", Seed: 7, Duration: end, Quorum: 2, NoLease: true,
		Lanes: []history.Lane{
			node("a", end).leads(-5*sec, 1, history.Forever).is(40*sec, elector.Follower, 2, "c").lane,
			node("b", end).is(-5*sec, elector.Follower, 1, "a").is(20*sec, elector.Follower, 2, "c").lane,
			node("c", end).is(-5*sec, elector.Follower, 1, "a").leads(20*sec, 2, history.Forever).lane,
		},
	}}
}

// hostile is a run whose every name and text tries to be more than text.
func hostile() verdict.Run {
	const evil = "<script>alert(1)</script>"
	r := takeover()
	h := r.History
	h.Scenario, h.Variant, r.About = evil, `"><img src=x onerror=alert(2)>`, "\x1b[31mred</title></style>\u202e & 'quoted'"
	h.Lanes[1].Node = "</script>&\x1b]0;title\a"
	h.Marks[0].Text, h.Marks[1].Note = "]]></text>"+evil, "<!--"
	h.Arrows[0].Text = "</script><script>alert(3)</script>"
	h.Broken = []string{"I1: two leaders\n" + evil + "\x00"}
	h.Problems = []string{"\u2028" + evil}
	r.Verdicts[0].Text, r.Verdicts[2].Seen = "\xff"+evil, evil
	return r
}
