package netmesh

import (
	"fmt"
	"math"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// wireItem is one message of one group as it travels: a msgpack array without
// field names. A newer build may append fields, never reorder them; missing ones
// are zero, unknown ones are skipped. Names are byte strings so that a decoder
// that is reused allocates nothing.
type wireItem struct {
	Group        []byte
	Kind         uint8
	Term         uint64
	ProposedTerm uint64
	Round        uint64
	Priority     int64
	WillVote     bool
	Cause        uint8
	Leader       []byte
	LeaderTerm   uint64
	RetryAfter   int64
	Sequence     uint64
	SentAt       int64
	LSNTerm      uint64
	LSNCounter   uint64
	MayStand     bool
	Successor    []byte
	Reach        uint8
	Period       int64 // in microseconds, as Late
	Late         int64
}

// maxItem is the most bytes that one encoded message takes.
const maxItem = 3*(MaxNameLength+3) + 16*9 + 5

// maxMicros is the longest duration, in microseconds.
const maxMicros = math.MaxInt64 / uint64(time.Microsecond)

// set makes w the wire form of m.
func (w *wireItem) set(group string, m *elector.Message) {
	w.Group = append(w.Group[:0], group...)
	w.Kind = uint8(m.Kind)
	w.Term, w.ProposedTerm, w.LeaderTerm = uint64(m.Term), uint64(m.ProposedTerm), uint64(m.LeaderTerm)
	w.Round, w.Priority = m.Round, int64(m.Priority)
	w.WillVote, w.Cause = m.WillVote, uint8(m.Cause)
	w.Leader = append(w.Leader[:0], m.Leader...)
	w.RetryAfter = int64(m.RetryAfter)
	w.Sequence, w.SentAt = m.Sequence, int64(m.SentAt)
	w.LSNTerm, w.LSNCounter = uint64(m.LSN.Term), m.LSN.Counter
	w.MayStand = m.MayStand
	w.Successor = append(w.Successor[:0], m.Successor...)
	w.Reach = m.Reach
	w.Period, w.Late = m.Period.Microseconds(), m.Late.Microseconds()
}

// clear makes every field zero and keeps the buffers.
func (w *wireItem) clear() {
	*w = wireItem{Group: w.Group[:0], Leader: w.Leader[:0], Successor: w.Successor[:0]}
}

// check reports what no correct peer sends.
func (w *wireItem) check() error {
	switch {
	case !elector.Kind(w.Kind).Valid():
		return fmt.Errorf("message kind %d", w.Kind)
	case !scouting.Cause(w.Cause).Valid():
		return fmt.Errorf("cause %d", w.Cause)
	case w.RetryAfter < 0:
		return fmt.Errorf("negative retryAfter, %s", time.Duration(w.RetryAfter))
	case uint64(w.Period) > maxMicros || uint64(w.Late) > maxMicros:
		return fmt.Errorf("period of %d us or lateness of %d us, negative or above %d", w.Period, w.Late,
			maxMicros)
	case int64(int(w.Priority)) != w.Priority:
		return fmt.Errorf("priority %d out of range", w.Priority)
	case len(w.Group) == 0:
		return fmt.Errorf("message without group")
	case max(len(w.Group), len(w.Leader), len(w.Successor)) > MaxNameLength:
		return fmt.Errorf("name above %d bytes", MaxNameLength)
	}
	return nil
}

// message returns what w carries; w has passed check.
func (w *wireItem) message(names *interner) (group string, m elector.Message) {
	return names.of(w.Group), elector.Message{
		Kind:         elector.Kind(w.Kind),
		Term:         lsn.Term(w.Term),
		ProposedTerm: lsn.Term(w.ProposedTerm),
		Round:        w.Round,
		Priority:     int(w.Priority),
		WillVote:     w.WillVote,
		Cause:        scouting.Cause(w.Cause),
		Leader:       elector.NodeID(names.of(w.Leader)),
		LeaderTerm:   lsn.Term(w.LeaderTerm),
		RetryAfter:   time.Duration(w.RetryAfter),
		Sequence:     w.Sequence,
		SentAt:       elector.Time(w.SentAt),
		LSN:          lsn.LSN{Term: lsn.Term(w.LSNTerm), Counter: w.LSNCounter},
		MayStand:     w.MayStand,
		Successor:    elector.NodeID(names.of(w.Successor)),
		Reach:        w.Reach,
		Period:       time.Duration(w.Period) * time.Microsecond,
		Late:         time.Duration(w.Late) * time.Microsecond,
	}
}

// interner turns the names that a peer uses into strings once.
type interner struct {
	known map[string]string
	size  int // of all, in bytes
	most  int // above this size all names are forgotten and learned again
}

// Bounds, in bytes, of the names that a peer can make this process keep by inventing them.
const (
	maxInterned      = 1 << 20 // the names of ten thousand elections
	maxInternedGuest = 1 << 16 // for a peer without a vote, since there may be many
	internedCost     = 64      // about that of one name without its text
)

func (n *interner) of(b []byte) string {
	if s, ok := n.known[string(b)]; ok {
		return s
	}
	s := string(b)
	if n.known == nil {
		n.known = make(map[string]string)
	}
	if n.size += len(s) + internedCost; n.size > n.most {
		n.known, n.size = make(map[string]string), len(s)+internedCost
	}
	n.known[s] = s
	return s
}
