package memnet

import (
	"context"
	"slices"
	"time"
)

// Rule is what becomes of the packets from one host to another, as a firewall
// between the two decides.
type Rule uint8

// The rules.
const (
	Pass   Rule = iota // they arrive
	Drop               // they are lost; TCP sends them again until the rule ends
	Reject             // a reset answers them, and a dial is refused
)

// Filter sets the rule for all packets from one host to another, from now on.
// What was dropped before is sent again.
func (n *Network) Filter(from, to string, rule Rule) {
	n.wire.Lock()
	if rule == Pass {
		delete(n.rules, [2]string{from, to})
	} else {
		n.rules[[2]string{from, to}] = rule
	}
	var again []packet
	if rule != Drop {
		n.lost = slices.DeleteFunc(n.lost, func(p packet) bool {
			back := p.path.from == from && p.path.to == to
			if back {
				again = append(again, p)
			}
			return back
		})
	}
	n.wire.Unlock()
	for _, p := range again {
		p.path.send(p)
	}
}

// Delay makes every packet take the time that latency returns, which is asked
// for each, and keeps the packets of a connection in order. Goroutines that a
// reset wakes read it after the time that lag returns: whoever writes meanwhile
// takes the error. Both must be safe for concurrent use. Call it before the
// first connection.
func (n *Network) Delay(latency func(from, to string) time.Duration, lag func() time.Duration) {
	n.latency, n.lag = latency, lag
}

func (n *Network) rule(from, to string) Rule {
	n.wire.Lock()
	defer n.wire.Unlock()
	return n.rules[[2]string{from, to}]
}

// path is one direction of a connection. Guarded by Network.wire.
type path struct {
	net      *Network
	from, to string
	sent     time.Time // when the newest packet left
	last     time.Time // when it arrives
}

// packet is what travels on a path.
type packet struct {
	path   *path
	arrive func()
	reset  func() // what a reset in answer does to the sender
}

// send sends a packet: at once if nothing delays it.
func (p *path) send(packet packet) {
	n := p.net
	n.wire.Lock()
	switch n.rules[[2]string{p.from, p.to}] {
	case Drop:
		n.lost = append(n.lost, packet)
		n.wire.Unlock()
		return
	case Reject:
		n.wire.Unlock()
		packet.reset()
		return
	}
	if n.latency == nil {
		n.wire.Unlock()
		packet.arrive()
		return
	}
	now := time.Now()
	at := p.last.Add(time.Nanosecond)
	if now != p.sent { // what leaves at one moment stays together
		if then := now.Add(n.latency(p.from, p.to)); then.After(at) {
			at = then
		}
	}
	p.sent, p.last = now, at
	time.AfterFunc(at.Sub(now), packet.arrive)
	n.wire.Unlock()
}

// shakeHands waits for as long as a connection takes to be made, for ever if a
// packet of it is lost, and reports whether it is refused on the way.
func (n *Network) shakeHands(ctx context.Context, from, to string) (rejected bool, err error) {
	if n.latency != nil {
		timer := time.NewTimer(n.latency(from, to) + n.latency(to, from))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	switch {
	case n.rule(from, to) == Reject:
		return true, nil
	case n.rule(from, to) == Drop || n.rule(to, from) != Pass:
		<-ctx.Done()
		return false, ctx.Err()
	}
	return false, nil
}
