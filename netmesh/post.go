package netmesh

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// openDatagrams prepares the datagrams of a session. Without them its words go on the stream.
func (l *link) openDatagrams(h *handshake) {
	p := &l.pairs
	if l.info.Session == 0 {
		return
	}
	if p.seals, l.inbox.seals, p.err = l.makeSeals(h); p.err == nil {
		p.poster, p.err = l.m.socket.to(l.packetAddr())
	}
}

// packetAddr is where the other end's mesh listens. The address from which the peer has dialed
// replaces a name: to look that up could take long, and it may belong to a third party.
func (l *link) packetAddr() string {
	if l.dialed {
		return l.info.Remote
	}
	host, port, _ := net.SplitHostPort(l.info.Address)
	if _, err := netip.ParseAddr(host); err != nil {
		host, _, _ = net.SplitHostPort(l.info.Remote)
	}
	return net.JoinHostPort(host, port)
}

// say sends a word by datagram, on the stream, or both. A sequence is sealed only once.
func (m *Mesh) say(to elector.NodeID, session uint64, w word) bool {
	l := m.linkOf(to, session)
	if l == nil {
		return false
	}
	p := &l.pairs
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used, w.came = true, l.inbox.came.Load()
	datagram, stream := false, true
	if p.poster != nil && w.sequence() > p.sealed[w.kind] {
		p.path.hear(l.inbox.told.Load())
		roundTrip, _ := l.meter.read()
		datagram, stream = p.path.next(w.kind, time.Duration(m.age()), roundTrip)
		stream = stream || w.kind == ackWord && w.sequence() <= p.streamed
	}
	if w.kind == ackWord {
		if p.answer = (word{}); datagram && !stream {
			p.answer = w
		}
	}
	if datagram {
		p.sealed[w.kind] = w.sequence()
		l.post(p.seals.seal(p.packet[:0], session, &w))
	}
	if stream {
		p.words[w.kind] = w
		l.ready.wake()
	}
	return true
}

// answerOnStream lets the answer to a beat that came on the stream go there, too: its datagram may
// have been the one that was lost before. It may have left by datagram alone, or be still to come.
func (l *link) answerOnStream(beat uint64) {
	p := &l.pairs
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streamed = max(p.streamed, beat)
	if p.answer.sequence() >= beat {
		p.words[ackWord], p.answer = p.answer, word{}
		l.ready.wake()
	}
}

// post sends a datagram, as far as the fault layer lets it. Called with pairs.mu held.
func (l *link) post(packet []byte) {
	p := &l.pairs
	if l.m.cfg.Faults != nil {
		after, lost := l.m.cfg.Faults.Datagram(l.node, false)
		if lost {
			return
		}
		if after > 0 {
			late := bytes.Clone(packet)
			time.AfterFunc(after, func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.err = p.poster.Send(late)
			})
			return
		}
	}
	p.err = p.poster.Send(packet)
}

// The values of LinkStatus.Beats.
const (
	BeatsNone      = "none"
	BeatsStream    = "stream"
	BeatsDatagrams = "datagrams"
)

// NoDatagrams is LinkStatus.BeatsWhy where no datagrams are meant to be sent.
const NoDatagrams = "the network of the program has no datagrams"

// beats fills in how beats and acks go to the other end, and why.
func (l *link) beats(s *LinkStatus) {
	p := &l.pairs
	p.mu.Lock()
	defer p.mu.Unlock()
	p.path.hear(l.inbox.told.Load())
	s.Beats = BeatsStream
	switch {
	case l.info.Session == 0:
		s.Beats, s.BeatsWhy = BeatsNone, "the peer's build knows none"
	case !p.used:
		s.Beats, s.BeatsWhy = BeatsNone, "no election needs them between these two nodes"
	case p.err != nil:
		s.BeatsWhy = p.err.Error()
	case p.path.flows():
		s.Beats = BeatsDatagrams
	default:
		_, port, _ := net.SplitHostPort(l.packetAddr())
		s.BeatsWhy = fmt.Sprintf("no answer to datagrams: is UDP port %s open in firewalls?", port)
	}
}
