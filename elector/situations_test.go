package elector_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// acts reports whether in has an effect on a clone of s: a message, a report, or a change of its
// state. What is due anyway does not count; a tick is what makes something due.
func acts(s *driven, in elector.Input) bool {
	if _, ok := in.(elector.HeldUp); ok {
		return muchLater(s, in) != muchLater(s, elector.Tick{})
	}
	m, at := s.Clone(), s.now
	if _, ok := in.(elector.Tick); ok {
		at = min(m.Clone().Step(at, 7, nil).Wake, s.now.Add(time.Hour))
		m.Step(at-1, 0, nil)
	}
	before, held, wake := m.State(), m.Clone().Held(), s.Clone().Step(s.now, 0, nil).Wake
	e := m.Step(at, 7, in)
	after := m.State()
	before.Now, after.Now = 0, 0
	quiet := e.Persist == (elector.Terms{}) && len(e.Messages) == 0 && len(e.Transitions) == 0 &&
		e.Anomaly == elector.Anomaly{}
	return !quiet || after != before || e.Wake != wake || !reflect.DeepEqual(m.Clone().Held(), held)
}

// muchLater is what becomes of s by an input that comes after all deadlines.
func muchLater(s *driven, in elector.Input) elector.State {
	m := s.Clone()
	m.Step(s.now.Add(time.Hour), 7, in)
	return m.State()
}

// situations are machines in the given role, with everything open that can be.
func situations(t testing.TB, role elector.Role) []*driven {
	switch role {
	case elector.Dormant:
		return dormants(t)
	case elector.Follower:
		return followers(t)
	case elector.Candidate:
		return []*driven{
			candidate(t, 3), candidate(t, 5), undurable(scout(t, 3)),
			veteran(t).toScout().toCandidate(t, 3), recorded(t).toScout().toCandidate(t, 3),
		}
	default:
		return leaders(t)
	}
}

func dormants(t testing.TB) []*driven {
	m, err := elector.New(valid())
	require.NoError(t, err)
	stopped := follower(t)
	stopped.step(elector.Stop{})
	return []*driven{{Machine: m, now: 1}, stopped}
}

func followers(t testing.TB) []*driven {
	bound := follower(t)
	bound.step(elector.LinkDown{Peer: "b"})
	waiting := follower(t)
	waiting.hear("b", elector.Message{Kind: elector.LeaderHeartbeat, Term: 3})
	waiting.hear("b", elector.Message{Kind: elector.LeadershipCession, Term: 3})
	adopting := follower(t)
	adopting.Step(adopting.now, 0, elector.Received{
		From: "b", Message: elector.Message{Kind: elector.LeaderHeartbeat, Term: 5},
	})
	unable := follower(t)
	unable.step(elector.Eligible{})
	resting := follower(t)
	resting.step(elector.Resign{Rest: time.Minute})
	paused := follower(t)
	paused.step(elector.Pause{For: time.Minute})
	asking := bootWith(t, elector.Config{QoS: quality}, 3, 2)
	asking.hear("b", elector.Message{Kind: elector.LeaderHeartbeat, Term: 3, Sequence: 1,
		Period: 500 * millis})
	return []*driven{boot(t, 3, 2), follower(t), voter(t), scout(t, 3), bound, waiting, adopting,
		unable, resting, paused, asking, recorded(t), recorded(t).toScout(), fetching(t)}
}

// recordOf is a record of the voters a, b and c.
func recordOf(term lsn.Term, counter uint64) elector.Record {
	var voters []elector.Voter
	for _, id := range []string{"a", "b", "c"} {
		voters = append(voters, elector.Voter{Node: elector.NodeID(id), Identity: directory(id)})
	}
	return elector.Record{LSN: lsn.LSN{Term: term, Counter: counter},
		Voters: elector.NewRoster(voters...)}
}

// recorded is a follower of nobody that has a record of term 2.
func recorded(t testing.TB) *driven {
	return bootFrom(t, elector.Config{}, 3, 2, recordOf(2, 1))
}

// fetching is one whose round failed because b has a newer record, which is on its way to disk.
func fetching(t testing.TB) *driven {
	d := recorded(t).toScout()
	for _, id := range []elector.NodeID{"b", "c"} {
		d.hear(id, elector.Message{Kind: elector.ElectionScoutingResponse, Term: 2, ProposedTerm: 3,
			Round: d.State().Follower.Round.ID, Cause: scouting.CauseRecord, Record: recordOf(2, 2).LSN})
	}
	newer := recordOf(2, 2)
	d.Step(d.now, 7, elector.Received{From: "b", Message: elector.Message{Kind: elector.RecordOffer,
		Term: 2, Record: newer.LSN, Offer: &newer}})
	return d
}

// writing are leaders with a record: one that writes it anew, one whose record is committed, one
// that has a change of voters to write, and one whose first record is to come.
func writing(t testing.TB) []*driven {
	syncing := recorded(t).toScout().toCandidate(t, 3).toLeader(t, 3)
	synced := &driven{Machine: syncing.Clone(), now: syncing.now}
	synced.hear("b", elector.Message{Kind: elector.RecordAck, Term: 3,
		Record: synced.Record().Accepted.LSN})
	changing := &driven{Machine: synced.Clone(), now: synced.now}
	changing.step(elector.ChangeVoters{Add: elector.Voter{Node: "d", Identity: directory("d")}})
	return []*driven{syncing, synced, changing}
}

// quality is a quality of service that the timers of Article allow.
var quality = detector.QoS{
	Detect: 2 * time.Second, Mistakes: detector.Recurrence(time.Hour), Accuracy: 0.999,
}

// undurable makes a candidate of a scout; its term is not on disk yet.
func undurable(d *driven) *driven {
	d.Step(d.now, 0, elector.Received{From: "b", Message: elector.Message{
		Kind: elector.ElectionScoutingResponse, Term: 2, ProposedTerm: 3,
		Round: d.State().Follower.Round.ID, WillVote: true,
	}})
	return d
}

func leaders(t testing.TB) []*driven {
	stale := elector.Message{Kind: elector.InvalidHeartbeat, Term: 4}
	reaffirming := leader(t, 3)
	reaffirming.hear("c", stale)
	raising := leader(t, 3)
	raising.Step(raising.now, 0, elector.Received{From: "c", Message: stale})
	acked := leader(t, 3)
	acked.hear("b", elector.Message{
		Kind: elector.HeartbeatAck, Term: 3, Sequence: 1, SentAt: acked.now, MayStand: true,
	})
	return append(append(workers(acked), writing(t)...),
		leader(t, 3), leader(t, 5), reaffirming, raising, acked, veteran(t).toScout().toCandidate(t,
			3).toLeader(t, 3),
	)
}

// workers are clones of a leader that holds guarded work: at it, asking a
// successor, and after the work was told to stop, for every cause.
func workers(from *driven) []*driven {
	var ds []*driven
	for _, ins := range [][]elector.Input{
		{},
		{elector.Transfer{To: "b"}},
		{elector.Eligible{}},
		{elector.Resign{}},
		{elector.Resign{Rest: time.Minute}},
		{elector.Pause{For: time.Minute}},
		{elector.Stop{}},
	} {
		d := &driven{Machine: from.Clone(), now: from.now}
		d.step(elector.Guard{Held: true})
		for _, in := range ins {
			d.step(in)
		}
		ds = append(ds, d)
	}
	return ds
}

// samples are many inputs of the kind that a row of the tables is about.
func samples(name string, s *driven) []elector.Input {
	var ins []elector.Input
	for _, peer := range []elector.NodeID{"b", "c"} {
		switch name {
		case "LinkUp":
			ins = append(ins, elector.LinkUp{Peer: peer})
		case "LinkDown":
			ins = append(ins, elector.LinkDown{Peer: peer})
		case "Tuned":
			ins = append(ins, elector.Tuned{Peer: peer, Period: 100 * millis, Detection: 2000 * millis})
		case "Backed":
			ins = append(ins, elector.Backed{By: []elector.Backing{
				{Peer: peer, Identity: directory(string(peer)), SentAt: s.now}}})
		case "Died":
			ins = append(ins, elector.Died{Peer: peer})
		case "Transfer":
			ins = append(ins, elector.Transfer{}, elector.Transfer{To: peer})
		}
		for term := lsn.Term(1); term < 8; term++ {
			ins = append(ins, termed(name, s, peer, term)...)
		}
	}
	return append(ins, commands[name]...)
}

// commands are the samples that speak of no peer and no term.
var commands = map[string][]elector.Input{
	"Covered":  {elector.Covered{All: true}},
	"Tick":     {elector.Tick{}},
	"Measured": {elector.Measured{RoundTrip: time.Millisecond}},
	"HeldUp":   {elector.HeldUp{For: time.Second}},
	"Eligible": {elector.Eligible{}, elector.Eligible{Able: true}},
	"Guard":    {elector.Guard{}, elector.Guard{Held: true}},
	"Resign":   {elector.Resign{}, elector.Resign{Rest: time.Minute}, elector.Resign{Rest: -1}},
	"Prefer":   {elector.Prefer{Priority: 7}},
	"Pause":    {elector.Pause{}, elector.Pause{For: time.Minute}, elector.Pause{For: -1}},
	"Stop":     {elector.Stop{}, elector.Stop{Abrupt: true}},
	"Confirm":  {elector.Confirm{}},
	"Prepared": {elector.Prepared{}, elector.Prepared{Ready: true}},
	"Publish":  {elector.Publish{}, elector.Publish{Value: elector.Value{Size: 1, Hash: [32]byte{1}}}},
	"ChangeVoters": {elector.ChangeVoters{}, elector.ChangeVoters{Remove: "b"},
		elector.ChangeVoters{Add: elector.Voter{Node: "d", Identity: directory("d")}}},
}

// termed are the samples that speak for a term.
func termed(name string, s *driven, peer elector.NodeID, term lsn.Term) []elector.Input {
	switch name {
	case "Start":
		return []elector.Input{elector.Start{Term: term}}
	case "Carry":
		return []elector.Input{elector.Carry{Peer: peer, Term: term, At: s.now}}
	case "Lose":
		return []elector.Input{elector.Lose{Peer: peer, Term: term}}
	case "Persisted":
		return []elector.Input{elector.Persisted{Term: term},
			elector.Persisted{Term: term, Record: s.Record().Accepted.LSN}}
	case "Issued":
		return []elector.Input{elector.Issued{LSN: lsn.LSN{Term: term, Counter: 4}}}
	}
	for k := elector.ElectionScouting; k.Valid(); k++ {
		if k.String() == name {
			return messages(k, s, peer, term)
		}
	}
	return nil
}

// messages are well-formed messages; the answers among them answer what the machine asks now.
func messages(k elector.Kind, s *driven, from elector.NodeID, term lsn.Term) []elector.Input {
	var ins []elector.Input
	identity, accepted := directory(string(from)), s.Record().Accepted.LSN
	for _, yes := range []bool{false, true} {
		for _, successor := range []elector.NodeID{"", "a", "c"} {
			ins = append(ins, elector.Received{From: from, Identity: identity, Message: elector.Message{
				Kind: k, Term: term, ProposedTerm: max(term, 3), Round: s.State().Follower.Round.ID,
				WillVote: yes, MayStand: yes, Successor: successor, Sequence: 1, SentAt: s.now,
			}})
		}
	}
	switch newer := recordOf(term, 2); k {
	case elector.RecordOffer:
		ins = nil
		for _, r := range []elector.Record{recordOf(term, 1), newer} {
			ins = append(ins, elector.Received{From: from, Identity: identity, Message: elector.Message{
				Kind: k, Term: term, Record: r.LSN, Offer: &r,
			}})
		}
	case elector.RecordAck:
		if accepted.Term <= term {
			ins = append(ins, elector.Received{From: from, Identity: identity, Message: elector.Message{
				Kind: k, Term: term, Record: accepted}})
		}
	}
	return ins
}
