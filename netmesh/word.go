package netmesh

import (
	"encoding/binary"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
)

// word is a beat or an ack. It has one form in datagrams and in frames, where later versions may
// append to it: 64-bit numbers, big endian.
type word struct {
	kind wordKind
	beat pair.Beat
	ack  pair.Ack
	came uint64 // the datagrams of the session that the sender has received: see path
}

type wordKind uint8

const (
	beatWord wordKind = iota
	ackWord
	wordKinds
)

// wordSizes are the lengths of the kinds of words, in bytes.
var wordSizes = [wordKinds]int{7 * 8, 5 * 8}

// sequence is 0 for no word.
func (w *word) sequence() uint64 { return max(w.beat.Sequence, w.ack.Sequence) }

// append appends the word to a datagram or to the body of a frame.
func (w *word) append(to []byte) []byte {
	b, a := &w.beat, &w.ack
	if w.kind == ackWord {
		return appendNumbers(to, a.Sequence, uint64(a.SentAt), w.came, a.Revision, uint64(a.Wanted))
	}
	return appendNumbers(to, b.Sequence, uint64(b.SentAt), w.came, b.Revision, uint64(b.Period),
		uint64(b.Late), b.Hash)
}

func appendNumbers(to []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		to = binary.BigEndian.AppendUint64(to, n)
	}
	return to
}

// readWord returns the word at the begin of a body, or what no correct peer sends.
func readWord(kind wordKind, body []byte) (w word, err error) {
	if len(body) < wordSizes[kind] {
		return w, refuse(ReasonGarbage, "a beat or an ack of %d bytes", len(body))
	}
	number := func(i int) uint64 { return binary.BigEndian.Uint64(body[8*i:]) }
	span := func(i int) time.Duration { return time.Duration(number(i)) }
	w = word{kind: kind, came: number(2)}
	if kind == beatWord {
		w.beat = pair.Beat{Sequence: number(0), SentAt: elector.Time(number(1)), Revision: number(3),
			Period: span(4), Late: span(5), Hash: number(6)}
	} else {
		w.ack = pair.Ack{Sequence: number(0), SentAt: elector.Time(number(1)), Revision: number(3),
			Wanted: span(4)}
	}
	sentAt := max(w.beat.SentAt, w.ack.SentAt)
	if w.sequence() == 0 || sentAt <= 0 || min(w.beat.Period, w.beat.Late, w.ack.Wanted) < 0 {
		return w, refuse(ReasonGarbage, "beat %+v, ack %+v", w.beat, w.ack)
	}
	return w, nil
}

// hand hands a word that came a while ago to the handler. Called with callbacks held.
func (l *link) hand(w *word, age time.Duration) {
	if w.kind == beatWord {
		l.m.handler.Beaten(l.p.node, l.info.Session, w.beat, age)
	} else {
		l.m.handler.Acked(l.p.node, l.info.Session, w.ack)
	}
}
