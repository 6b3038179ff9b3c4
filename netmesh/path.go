package netmesh

import "time"

const (
	// mostUnanswered datagrams in a row let beats go on the stream.
	mostUnanswered = 3
	// tryAgain is how often a datagram is tried while they are not answered.
	tryAgain = time.Second
)

// path decides whether words go to the other end by datagram, on the stream, or both. An ack does
// not show which copy of a beat it answers. So each end tells with its words, whichever way they
// go, how many datagrams of the session it has received: a greater number than before is an answer.
// Times are ages of the mesh.
type path struct {
	sent uint64 // datagrams
	came uint64 // of these, as far as the other end has told

	unanswered [wordKinds]int // sent since, by kind
	since      time.Duration  // when the first of them left
	tried      time.Duration  // when the last one left
	answers    int            // in a row
	needed     int            // answers until the stream is not needed, less 1
}

// hear takes what the other end tells.
func (p *path) hear(came uint64) {
	if came <= p.came || came > p.sent {
		return
	}
	p.came = came
	p.unanswered = [wordKinds]int{}
	p.answers++
}

// flows reports whether datagrams are answered.
func (p *path) flows() bool { return p.answers > p.needed }

// next decides how a word goes that leaves now. After datagrams were not answered, more than one
// answer is needed: a path that loses most of them is not good enough.
func (p *path) next(kind wordKind, now, roundTrip time.Duration) (datagram, stream bool) {
	failing := p.unanswered[kind] >= mostUnanswered
	if failing && now-p.since > 2*roundTrip {
		p.answers, p.needed = 0, mostUnanswered-1
	}
	if failing && !p.flows() && now-p.tried < tryAgain {
		return false, true
	}
	if p.unanswered == ([wordKinds]int{}) {
		p.since = now
	}
	p.unanswered[kind]++
	p.sent, p.tried = p.sent+1, now
	return true, !p.flows()
}
