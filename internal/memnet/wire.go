package memnet

import (
	"context"
	"time"
)

// Rule is what a firewall does with the packets from one host to another.
type Rule uint8

// The rules.
const (
	Pass   Rule = iota // they arrive
	Drop               // they are lost; TCP sends them again until the rule ends
	Reject             // a reset answers them, and a dial is refused; datagrams are lost
)

// Filter sets the rule for all packets from one host to another, from now on. Packets that
// were dropped before are sent again, unless the rule is Drop.
func (n *Network) Filter(from, to string, rule Rule) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rules[[2]string{from, to}] = rule
	if rule == Drop {
		return
	}
	again := n.lost
	n.lost = nil
	for _, p := range again {
		p.send() // elsewhere it is lost again
	}
}

// Delay makes every packet take the time that latency returns for it; the packets of a connection
// stay in order, datagrams may not. A reader that a reset wakes returns after the time that lag
// returns, so that a concurrent writer may get the error instead. Both functions must be safe for
// concurrent use. Delay must be called before the first connection.
func (n *Network) Delay(latency func(from, to string) time.Duration, lag func() time.Duration) {
	n.latency, n.lag = latency, lag
}

// Rate lets the packets of each connection leave at so many bytes a second. It must be called
// after Delay and before the first connection.
func (n *Network) Rate(bytes int) { n.perByte = time.Second / time.Duration(bytes) }

// packet is one that travels from one end of a connection to the other.
type packet struct {
	from   *Conn
	size   int // bytes of data
	arrive func()
	reset  func() // what a reset in answer does to the sender
}

// send sends a packet: at once if nothing delays it. Called with Network.mu held.
func (p packet) send() {
	c, n := p.from, p.from.host.net
	from, to := c.host.name, c.peer.host.name
	switch rule := n.rules[[2]string{from, to}]; {
	case rule == Drop:
		n.lost = append(n.lost, p)
		return
	case rule == Reject:
		p.reset()
		return
	case n.latency == nil:
		p.arrive()
		return
	}
	now := time.Now()
	at := c.last.Add(time.Nanosecond)
	if now != c.sent { // what leaves at one moment stays together
		if then := now.Add(n.latency(from, to)); then.After(at) {
			at = then
		}
	}
	at = at.Add(time.Duration(p.size) * n.perByte)
	c.sent, c.last = now, at
	time.AfterFunc(at.Sub(now), func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		p.arrive()
	})
}

// shakeHands waits for as long as a connection takes to be made, for ever if a
// packet of it is lost.
func (n *Network) shakeHands(ctx context.Context, from, to string) error {
	if n.latency != nil {
		timer := time.NewTimer(n.latency(from, to) + n.latency(to, from))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	n.mu.Lock()
	there, back := n.rules[[2]string{from, to}], n.rules[[2]string{to, from}]
	n.mu.Unlock()
	switch {
	case there == Reject:
		return errRefused
	case there == Drop || back != Pass:
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}
