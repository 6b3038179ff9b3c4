package elector

import (
	"fmt"
	"strings"
	"time"
)

// String returns the message on one line, with the fields that its kind uses.
// This form is the language of traces, golden files and bug reports.
func (m Message) String() string {
	w := words{}
	w.add("%s", m.Kind)
	w.add("term=%d", m.Term)
	switch m.Kind {
	case ElectionScouting:
		w.add("proposed=%d round=%x", m.ProposedTerm, m.Round)
		w.nonzero("priority", m.Priority)
	case ElectionScoutingResponse:
		w.add("proposed=%d round=%x", m.ProposedTerm, m.Round)
		w.verdict(m)
	case ElectionProposal:
		w.add("sent=%s", m.SentAt)
	case ElectionProposalResponse:
		w.add("proposed=%d sent=%s", m.ProposedTerm, m.SentAt)
		w.verdict(m)
	case LeaderHeartbeat:
		w.add("lsn=%d.%d seq=%d sent=%s", m.LSN.Term, m.LSN.Counter, m.Sequence, m.SentAt)
	case HeartbeatAck:
		w.add("lsn=%d.%d seq=%d sent=%s", m.LSN.Term, m.LSN.Counter, m.Sequence, m.SentAt)
		w.nonzero("priority", m.Priority)
		if !m.Candidate {
			w.add("not-candidate")
		}
		w.nonzero("reach", int(m.Reach))
	case LeadershipCession:
		if m.Successor != "" {
			w.add("successor=%s", m.Successor)
		}
	}
	return w.String()
}

// words are joined by spaces.
type words []string

func (w *words) add(format string, args ...any) { *w = append(*w, fmt.Sprintf(format, args...)) }

func (w *words) nonzero(name string, v int) {
	if v != 0 {
		w.add("%s=%d", name, v)
	}
}

// verdict adds the yes, or the no with its cause and hints.
func (w *words) verdict(m Message) {
	if m.WillVote {
		w.add("yes")
		return
	}
	w.add("no cause=%s", m.Cause)
	if m.Leader != "" {
		w.add("leader=%s leader-term=%d", m.Leader, m.LeaderTerm)
	}
	if m.RetryAfter != 0 {
		w.add("retry-after=%s", m.RetryAfter)
	}
}

func (w words) String() string { return strings.Join(w, " ") }

// String returns the envelope as "-> to: message".
func (e Envelope) String() string { return fmt.Sprintf("-> %s: %s", e.To, e.Message) }

// String returns the anomaly on one line.
func (a Anomaly) String() string {
	return fmt.Sprintf("%s peer=%s term=%d message=%s", a.Kind, a.Peer, a.Term, a.Msg)
}

// String returns the effects, one a line, in the order in which a driver acts on them.
func (e Effects) String() string {
	var b strings.Builder
	for _, t := range e.Transitions {
		fmt.Fprintln(&b, t)
	}
	if e.Anomaly.Kind != AnomalyNone {
		fmt.Fprintf(&b, "anomaly %s\n", e.Anomaly)
	}
	if e.Persist != 0 {
		fmt.Fprintf(&b, "persist term=%d\n", e.Persist)
	}
	for _, m := range e.Messages {
		fmt.Fprintln(&b, m)
	}
	if e.StopWork {
		fmt.Fprintln(&b, "stop work")
	}
	if e.Wake != Never {
		fmt.Fprintf(&b, "wake %s\n", time.Duration(e.Wake))
	}
	return b.String()
}
