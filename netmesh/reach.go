package netmesh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/google/uuid"
)

const (
	// reachTries is how many dials must fail before the peer counts as unreachable.
	reachTries = 3
	// reachPause is the time between two further dials: somebody may open the way.
	reachPause = 30 * time.Second
)

// reach is what is known about dialing a peer that made the link itself: when
// that link is lost, both should be able to make the next one.
type reach struct {
	settled bool // the peer was reached, or this side made the link
	fails   int  // in a row
	addr    string
	cause   string // of the last failure
}

func (r *reach) failing() bool { return !r.settled && r.fails >= reachTries }

// verification is the dialer's errand while a link is up: to find out whether
// the peer could be dialed. Called with Mesh.mu held.
func (p *peer) verification() errand {
	l := p.link
	if p.reach.settled || p.removed || l.dialed || l.ending() || l.info.Version < factsVersion {
		return errand{}
	}
	addr := p.addr
	if addr == "" {
		addr = l.info.Address
	}
	return errand{addr: addr, verify: l}
}

// verify dials the peer beside the link, and returns how long to wait before
// the next errand.
func (p *peer) verify(e errand) time.Duration {
	err := p.m.probe(e.verify, e.addr)
	if e.verify.ending() || p.ctx.Err() != nil {
		return 0 // it was interrupted
	}
	return p.verified(e, err)
}

// verified takes note of a dial beside the link, and tells both ends if it
// changes what is known.
func (p *peer) verified(e errand, err error) (wait time.Duration) {
	p.takeTurn()
	defer p.leaveTurn()
	was, now, current := p.noteReach(e, err)
	if !current {
		return 0
	}
	p.m.finds(p.node, FindingAdvertiseUnreachable, p.unreached(&now))
	if was.failing() != now.failing() {
		nudge(e.verify.news)
	}
	return now.pause(p.m.cfg.RedialMin)
}

// pause is the time until the next dial, if there is one.
func (r *reach) pause(least time.Duration) time.Duration {
	switch {
	case r.settled:
		return 0
	case r.failing():
		return reachPause
	}
	return least << r.fails
}

func (p *peer) noteReach(e errand, err error) (was, now reach, current bool) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.link != e.verify {
		return reach{}, reach{}, false
	}
	was = p.reach
	if p.reach = (reach{settled: true}); err != nil {
		p.reach = reach{fails: was.fails + 1, addr: e.addr, cause: err.Error()}
	}
	return was, p.reach, true
}

// unreached is what this node says about dialing the peer; "" if there is nothing to say.
func (p *peer) unreached(r *reach) string {
	if !r.failing() {
		return ""
	}
	return fmt.Sprintf("node %q is connected because it dialed; nobody reaches it at %s, the address that it advertises: node %q gets %s",
		p.node, r.addr, p.m.cfg.Node, printable(r.cause))
}

// unreachable is what is known about dialing the end of l that was not dialed, by
// the other end's trying.
func (l *link) unreachable(theirs *facts) string {
	if l.dialed {
		return l.m.unreachedBy(l.p.node, theirs)
	}
	l.m.mu.RLock()
	now := l.p.reach
	l.m.mu.RUnlock()
	return l.p.unreached(&now)
}

// unreachedBy is what the peer says about dialing this node.
func (m *Mesh) unreachedBy(peer elector.NodeID, theirs *facts) string {
	if theirs.Unreachable == "" {
		return ""
	}
	return fmt.Sprintf("node %q does not reach this node, %q, at %s, the address that it advertises: node %q gets %s",
		peer, m.cfg.Node, printable(theirs.Dialed), peer, printable(theirs.Unreachable))
}

// probe asks who answers at addr, and is content with the process behind l. It
// gives up when l ends: the dialer has better things to do then.
func (m *Mesh) probe(l *link, addr string) error {
	ctx, cancel := context.WithCancel(l.p.ctx)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-l.stop:
		case <-ctx.Done():
		}
	}()
	conn, err := m.connect(ctx, l.node, addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { reset(conn) })()
	defer func() { _ = conn.Close() }() // no link: how it ends proves nothing
	return m.ask(newGreeting(conn, m.cfg.HandshakeTimeout), l)
}

func (m *Mesh) ask(g *greeting, l *link) error {
	h := m.hello(l.node, 0)
	h.Probe = true
	if err := g.send(frameHello, h); err != nil {
		return err
	}
	var w hello
	if err := g.expect(frameWelcome, &w); err != nil {
		return err
	}
	if refused := m.checkWelcome(&w, l.node); refused != nil {
		return refused
	}
	if who := uuid.UUID(w.Identity); who != l.identity || w.Boot != l.boot || l.twin(w.Process) {
		return fmt.Errorf("another process called %q answers, at boot %d of identity %s and not %d of %s",
			l.node, w.Boot, who, l.boot, l.identity)
	}
	return nil
}

// errNoLink ends the handshake of a connection that was never to be a link.
var errNoLink = errors.New("no link is wanted")

// answerProbe says who answers, and lets the asker close first.
func (m *Mesh) answerProbe(g *greeting, h *hello) error {
	g.part(frameWelcome, m.welcomeTo(h))
	return errNoLink
}
