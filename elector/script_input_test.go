package elector_test

import (
	"strings"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// input reads what happens; nothing at all is a tick.
func (s *script) input(words []string) elector.Input {
	words = s.options(words)
	if len(words) == 0 {
		return elector.Tick{}
	}
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch words[0] {
	case "start":
		return s.start(words[1:])
	case "up":
		return elector.LinkUp{Peer: elector.NodeID(arg(1))}
	case "down":
		return elector.LinkDown{Peer: elector.NodeID(arg(1)), Evidence: elector.EvidenceReset}
	case "died":
		return elector.Died{Peer: elector.NodeID(arg(1)), Proof: elector.ProofRefusedAfterEOF}
	case "carry": // carry b 3 at=2s
		in := elector.Carry{Peer: elector.NodeID(arg(1)), Term: lsn.Term(s.atoi(arg(2)))}
		if at, ok := strings.CutPrefix(arg(3), "at="); ok {
			in.At = elector.Time(s.duration(at))
		}
		return in
	case "lose": // lose b, or lose b 3
		in := elector.Lose{Peer: elector.NodeID(arg(1))}
		if arg(2) != "" {
			in.Term = lsn.Term(s.atoi(arg(2)))
		}
		return in
	case "backed": // backed b at=2s
		at, _ := strings.CutPrefix(arg(2), "at=")
		peer := s.voter(arg(1))
		return elector.Backed{By: []elector.Backing{
			{Peer: peer.Node, Identity: peer.Identity, SentAt: elector.Time(s.duration(at))}}}
	case "covered":
		return elector.Covered{All: true}
	case "uncovered":
		return elector.Covered{}
	case "measured":
		return elector.Measured{RoundTrip: s.duration(arg(1))}
	case "held-up":
		return elector.HeldUp{For: s.duration(arg(1))}
	case "tuned":
		return elector.Tuned{Peer: elector.NodeID(arg(1)), Period: s.duration(arg(2)),
			Detection: s.duration(arg(3))}
	case "persisted":
		done := elector.Persisted{Term: lsn.Term(s.atoi(arg(1)))}
		if v, ok := strings.CutPrefix(arg(2), "record="); ok {
			done.Record = s.lsn(v)
		}
		return done
	case "publish":
		return elector.Publish{Value: s.value(arg(1))}
	case "add", "remove", "no":
		return s.change(words)
	case "confirm":
		return elector.Confirm{}
	case "issued":
		return elector.Issued{LSN: s.lsn(arg(1))}
	case "transfer":
		return elector.Transfer{To: elector.NodeID(arg(1))}
	case "able", "unable":
		return elector.Eligible{Able: words[0] == "able"}
	case "cold", "prepared":
		return elector.Prepared{Ready: words[0] == "prepared"}
	case "guard", "unguard":
		return elector.Guard{Held: words[0] == "guard"}
	case "resign":
		return s.resign(arg(1))
	case "pause":
		return elector.Pause{For: s.duration(arg(1))}
	case "resume":
		return elector.Pause{}
	case "prefer":
		return elector.Prefer{Priority: s.atoi(strings.TrimPrefix(arg(1), "priority="))}
	case "stop":
		return elector.Stop{Abrupt: arg(1) == "abrupt"}
	}
	return s.received(words)
}

// resign reads "rest=30s", or nothing.
func (s *script) resign(word string) elector.Input {
	if v, ok := strings.CutPrefix(word, "rest="); ok {
		return elector.Resign{Rest: s.duration(v)}
	}
	return elector.Resign{}
}

// options takes random=N out of the words.
func (s *script) options(words []string) []string {
	var rest []string
	for _, w := range words {
		if v, ok := strings.CutPrefix(w, "random="); ok {
			s.random = uint64(s.atoi(v))
			continue
		}
		rest = append(rest, w)
	}
	return rest
}

func (s *script) start(words []string) elector.Input {
	in := elector.Start{}
	for _, w := range words {
		if v, ok := strings.CutPrefix(w, "term="); ok {
			in.Term = lsn.Term(s.atoi(v))
		}
		if v, ok := strings.CutPrefix(w, "reserved="); ok {
			in.Reserved = lsn.Term(s.atoi(v))
		}
		if v, ok := strings.CutPrefix(w, "min="); ok {
			in.Min = lsn.Term(s.atoi(v))
		}
		in.Led = in.Led || w == "led"
		s.recordField(&in.Record, w)
	}
	return in
}

func (s *script) lsn(text string) lsn.LSN {
	term, counter, _ := strings.Cut(text, ".")
	return lsn.LSN{Term: lsn.Term(s.atoi(term)), Counter: uint64(s.atoi(counter))}
}

// received reads "b: Kind field=value ...". "yes", "no" and "ack" answer the
// newest question or heartbeat that went to b. "b/2:" is another directory of that name.
func (s *script) received(words []string) elector.Input {
	sender := s.voter(strings.TrimSuffix(words[0], ":"))
	from := sender.Node
	var m elector.Message
	switch words[1] {
	case "yes", "no":
		m = s.reply(from, words[1] == "yes")
	case "ack":
		hb := s.newest(from, elector.LeaderHeartbeat)
		m = elector.Message{
			Kind: elector.HeartbeatAck, Term: hb.Term, Sequence: hb.Sequence,
			SentAt: hb.SentAt, LSN: hb.LSN, MayStand: true,
			Record: s.m.Record().Accepted.LSN,
		}
	case "stored":
		m = elector.Message{Kind: elector.RecordAck, Term: s.m.Status().Term,
			Record: s.m.Record().Accepted.LSN}
	default:
		m.Kind = s.kind(words[1])
	}
	own := s.m.Record().Accepted
	r := elector.Record{Lineage: own.Lineage, Founded: own.Founded}
	for _, w := range words[2:] {
		if !s.recordField(&r, w) {
			s.field(&m, w)
		} else if strings.HasPrefix(w, "record=") {
			m.Record = r.LSN
		}
	}
	if m.Record != (lsn.LSN{}) {
		m.Lineage, m.Founded = r.Lineage, r.Founded
	}
	if m.Kind == elector.RecordOffer {
		m.Offer = &r
	}
	return elector.Received{From: from, Identity: sender.Identity, Message: m}
}

func (s *script) kind(name string) elector.Kind {
	for k := elector.ElectionScouting; k.Valid(); k++ {
		if k.String() == name {
			return k
		}
	}
	s.d.Fatalf(s.t, "no message is called %q", name)
	return 0
}

// reply answers what this machine asks at the moment.
func (s *script) reply(from elector.NodeID, yes bool) elector.Message {
	scouting := s.newest(from, elector.ElectionScouting)
	proposal := s.newest(from, elector.ElectionProposal)
	if s.m.State().Role == elector.Follower {
		return elector.Message{
			Kind: elector.ElectionScoutingResponse, Term: scouting.Term, ProposedTerm: scouting.ProposedTerm,
			Round: scouting.Round, WillVote: yes, Record: echoed(yes, scouting),
		}
	}
	return elector.Message{
		Kind: elector.ElectionProposalResponse, Term: proposal.Term, ProposedTerm: proposal.Term,
		SentAt: proposal.SentAt, WillVote: yes, Record: echoed(yes, proposal),
	}
}

// echoed is the LSN that an answer has: a yes echoes that of the question.
func echoed(yes bool, question elector.Message) (n lsn.LSN) {
	if yes {
		n = question.Record
	}
	return n
}

// field sets one field=value of a message.
func (s *script) field(m *elector.Message, word string) {
	key, val, _ := strings.Cut(word, "=")
	switch key {
	case "term":
		m.Term = s.term(val)
	case "proposed":
		m.ProposedTerm = s.term(val)
	case "round":
		m.Round += uint64(s.atoi(val)) // another round than the open one
	case "priority":
		m.Priority = s.atoi(val)
	case "cause":
		m.Cause = s.cause(val)
	case "leader":
		m.Leader = elector.NodeID(val)
	case "leader-term":
		m.LeaderTerm = s.term(val)
	case "retry-after":
		m.RetryAfter = s.duration(val)
	case "seq":
		m.Sequence = uint64(s.atoi(val))
	case "sent":
		m.SentAt = elector.Time(s.duration(val))
	case "lsn":
		m.LSN = s.lsn(val)
	case "committed":
		m.Committed = s.lsn(val)
	case "entered":
		m.Entered = s.term(val)
	case "yes":
		m.WillVote = true
	case "cold":
		m.Cold = true
	case "not-candidate":
		m.MayStand = false
	case "reach":
		m.Reach = uint8(s.atoi(val))
	case "period":
		m.Period = s.duration(val)
	case "late":
		m.Late = s.duration(val)
	case "successor":
		m.Successor = elector.NodeID(val)
	default:
		s.d.Fatalf(s.t, "no field is called %q", key)
	}
}

// term reads a term; "2^63" and "2^64-1" are there for what is absurd.
func (s *script) term(val string) lsn.Term {
	switch val {
	case "2^63":
		return lsn.MaxTerm + 1
	case "2^63-1":
		return lsn.MaxTerm
	case "2^64-1":
		return ^lsn.Term(0)
	}
	return lsn.Term(s.atoi(val))
}

func (s *script) cause(name string) scouting.Cause {
	for c := scouting.CauseNone; c.Valid(); c++ {
		if c.String() == name {
			return c
		}
	}
	s.d.Fatalf(s.t, "no cause is called %q", name)
	return 0
}
