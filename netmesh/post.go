package netmesh

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// openDatagrams prepares the datagrams of a session, which begins. Until then, and if that fails,
// its beats go on the stream.
func (l *link) openDatagrams(h *handshake) {
	p := &l.pairs
	if l.info.Session == 0 {
		return
	}
	seals, err := newDirections(l.info.Session, l.key, h.state(), l.dialed)
	if err == nil {
		p.seals, l.inbox.seals = seals.out, seals.in
		p.poster, p.err = l.m.socket.to(l.packetAddr())
	} else {
		p.err = err
	}
}

// packetAddr is where the other end's mesh listens. A name is replaced by the address from which the
// peer has dialed: to look it up could take long, and the name may belong to a third party.
func (l *link) packetAddr() string {
	if l.dialed {
		return l.info.Remote
	}
	host, port, err := net.SplitHostPort(l.info.Address)
	from, _, err2 := net.SplitHostPort(l.info.Remote)
	if _, notIP := netip.ParseAddr(host); notIP != nil && err == nil && err2 == nil {
		host = from
	}
	return net.JoinHostPort(host, port)
}

// way decides how a beat or an ack goes that is sent now. Called with pairs.mu held.
func (l *link) way(kind datagramKind) (datagram, stream bool) {
	p := &l.pairs
	p.used = true
	if p.poster == nil {
		return false, true
	}
	p.path.hear(l.inbox.told.Load())
	roundTrip, _ := l.meter.read()
	return p.path.next(kind, time.Duration(l.m.age()), roundTrip)
}

// post sends a datagram, which has a gap for the head and all except its proof. A sequence is sealed
// once only. Called with pairs.mu held.
func (l *link) post(kind datagramKind, sequence uint64, packet []byte) {
	p := &l.pairs
	if sequence <= p.sealed[kind] {
		return
	}
	p.sealed[kind] = sequence
	packet[0], packet[1] = datagramForm, byte(kind)
	binary.BigEndian.PutUint64(packet[2:], l.info.Session)
	binary.BigEndian.PutUint64(packet[10:], sequence)
	packet = p.seals[kind].seal(packet)
	if l.m.cfg.Faults == nil {
		p.err = p.poster.Send(packet)
		return
	}
	after, lost := l.m.cfg.Faults.Datagram(l.node, false)
	switch {
	case lost:
	case after <= 0:
		p.err = p.poster.Send(packet)
	default:
		late := bytes.Clone(packet)
		time.AfterFunc(after, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.err = p.poster.Send(late)
		})
	}
}

// The values of LinkStatus.Beats.
const (
	BeatsNone      = "none"
	BeatsStream    = "stream"
	BeatsDatagrams = "datagrams"
)

// beats fills in how beats and acks go to the other end, and why.
func (l *link) beats(s *LinkStatus) {
	p := &l.pairs
	p.mu.Lock()
	defer p.mu.Unlock()
	p.path.hear(l.inbox.told.Load())
	_, port, _ := net.SplitHostPort(l.packetAddr())
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
	case p.path.unanswered == [datagramKinds]int{}, p.path.sent < mostUnanswered:
		s.BeatsWhy = "datagrams are being tried"
	default:
		s.BeatsWhy = fmt.Sprintf("no answer to datagrams: is UDP port %s open in firewalls?", port)
	}
	s.DatagramsOut, s.DatagramsLost = p.path.sent, p.path.lost
	s.DatagramsIn = l.inbox.came.Load()
	l.inbox.mu.Lock()
	defer l.inbox.mu.Unlock()
	s.DatagramsRefused = l.inbox.refused
}
