package netmesh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/elector"
)

const (
	proofDials = 8 // at most, to an address of a process that seems dead
	// checkDials is how many dials to the address of a peer that made the link itself must
	// fail before a refusal there counts for nothing.
	checkDials = 3
)

// dialTask is what the dialer is to do next.
type dialTask struct {
	addr   string // "" for nothing
	proof  proofWanted
	beside *link // check that addr leads to the process behind this link; nil: make one
	later  bool  // not at once
}

// dialLoop dials the peer whenever there is an address and no link, for ever.
func (p *peer) dialLoop() {
	redial := p.newBackoff()
	for p.ctx.Err() == nil {
		t := p.nextTask()
		switch {
		case t.addr == "":
			began := time.Now()
			select {
			case <-p.wake:
			case <-p.ctx.Done():
			}
			if time.Since(began) >= redial.max { // a link that lasted
				redial.current = 0
			}
		case t.beside != nil:
			pause(p.ctx, p.checkAddress(t), p.wake, nil)
		case t.later:
			pause(p.ctx, redial.next(), p.wake, nil)
		default:
			err := p.m.dial(p, t.addr)
			if err == nil || p.ctx.Err() != nil {
				continue
			}
			again := p.dialFailed(t, err)
			if again == 0 {
				again = redial.next()
			}
			pause(p.ctx, again, p.wake, nil)
		}
	}
}

// nextTask takes the next thing to dial. Where the process behind the last link
// listened goes first: a refusal there is evidence.
func (p *peer) nextTask() dialTask {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if l := p.link; l != nil {
		if l.dialed || p.checked.leads || p.checked.fails >= checkDials || p.removed ||
			isClosed(l.stop) || l.info.Version < evidenceVersion || p.m.cfg.NoDeathProof {
			return dialTask{}
		}
		return dialTask{addr: cmp.Or(p.addr, l.info.Address), beside: l}
	}
	t := dialTask{addr: p.addr, later: p.dialLater}
	if p.proof.addr != "" {
		t.addr, t.proof = p.proof.addr, p.proof
	}
	p.dialLater = false
	return t
}

// dialFailed takes note of a failed dial, and of what it proves. The result is after which
// pause a dial that was to prove a death should be tried again, 0 if it should not: a kernel
// closes the files of a dying process one by one, so that the first dial may meet a listener
// that goes away a moment later, and break off.
func (p *peer) dialFailed(t dialTask, err error) (again time.Duration) {
	var answered *refusal
	refused, proof := evidenceOf(err) == elector.EvidenceRefused, t.proof.addr != ""
	if errors.As(err, &answered) {
		p.m.countReason(answered.Reason)
		p.m.refused(p.node, t.addr, answered)
	}
	fields := []any{"peer", p.node, "addr", t.addr, "cause", err}
	if answered == nil || answered.Reason == reasonAlreadyConnected ||
		answered.Reason == reasonClosing {
		p.m.log.Debug("dial failed", fields...)
	} else {
		p.m.log.warnRefused(answered.Reason, string(p.node), "peer not connected", fields...)
	}
	p.m.mu.Lock()
	p.status.err = err.Error()
	if proof && p.proof.epoch == t.proof.epoch {
		p.proof.dials++
		again = time.Millisecond << p.proof.dials
		if refused || answered != nil || p.proof.dials >= proofDials {
			p.proof, again = proofWanted{}, 0
		}
	}
	p.m.mu.Unlock()
	if proof && refused {
		p.prove(t.proof.epoch)
	}
	return again
}

// checkAddress dials beside the link, once or until checkDials failed: a refusal at an
// address that does not lead to the living process proves nothing when that is gone. The
// result is how long to wait before the next task.
func (p *peer) checkAddress(t dialTask) time.Duration {
	err := p.m.probe(t.beside, t.addr)
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.link != t.beside || isClosed(t.beside.stop) || p.ctx.Err() != nil {
		return 0 // it was interrupted
	}
	if err == nil {
		p.checked.leads = true
		return 0
	}
	p.checked.fails++
	if p.checked.fails == checkDials {
		p.m.log.Info("nobody answers where this member says it listens: its death cannot be proven",
			"peer", p.node, "addr", t.addr, "cause", err)
	}
	return p.m.cfg.times.redialMin << p.checked.fails
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
	mine := m.hello(l.node, 0)
	mine.Probe = true
	theirs, err := m.introduce(newHandshake(conn, m.cfg.times.handshake), mine)
	if err != nil {
		return err
	}
	c := theirs.connection(l.dialer)
	if c.identity != l.identity || c.boot != l.boot || c.twin(l.process) {
		return fmt.Errorf("another process called %q answers, at boot %d of identity %s and not %d of %s",
			l.node, c.boot, uuid.UUID(c.identity), l.boot, l.identity)
	}
	return nil
}

// backoff makes pauses that double up to a limit, each cut by up to half at
// random, so that members that lost each other do not dial in step.
type backoff struct {
	min, max time.Duration
	current  time.Duration // 0: begin anew
	random   *rand.Rand
}

// newBackoff returns the pauses between redials of the peer.
func (p *peer) newBackoff() backoff {
	name := fnv.New64a()
	name.Write([]byte(p.node)) // never fails
	random := rand.New(rand.NewPCG(p.m.cfg.Seed, name.Sum64()))
	return backoff{min: p.m.cfg.times.redialMin, max: p.m.cfg.times.redialMax, random: random}
}

func (b *backoff) next() time.Duration {
	b.current = min(max(b.min, 2*b.current), b.max)
	return b.current - time.Duration(b.random.Int64N(int64(b.current/2+1)))
}
