package netmesh

import (
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// errand is what the dialer is to do next.
type errand struct {
	addr   string // "" for nothing
	proof  proofWanted
	verify *link // dial beside this link; nil: make one
	lazy   bool  // not at once
}

// dialLoop dials the peer whenever there is an address and no link, for ever.
func (p *peer) dialLoop() {
	pause := p.pauses()
	for p.ctx.Err() == nil {
		e := p.errand()
		if e.addr == "" {
			p.rest(&pause)
			continue
		}
		if e.verify != nil {
			p.sleep(p.verify(e))
			continue
		}
		if e.lazy {
			p.sleep(pause.next())
			continue
		}
		err := p.m.dial(p, e)
		if err == nil {
			continue
		}
		p.dialFailed(e, err)
		if retry, ok := p.proveLater(e, err); ok {
			p.sleep(retry)
			continue
		}
		p.sleep(pause.next())
	}
}

// errand takes the next thing to dial. Where the process behind the last link
// listened goes first: a refusal there is evidence.
func (p *peer) errand() errand {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.link != nil {
		return p.verification()
	}
	e := errand{addr: p.addr, lazy: p.lazy}
	if p.proof.addr != "" {
		e.addr, e.proof = p.proof.addr, p.proof
	}
	p.lazy = false
	return e
}

// proofDials is how often the address of a process that seems dead is dialed to
// be sure.
const proofDials = 8

// proveLater takes note of a dial that was to prove a death, and returns after
// which pause it should be tried again, if it should. A kernel closes the files
// of a dying process one by one: the first dial may meet a listener that goes
// away a moment later, and break off.
func (p *peer) proveLater(e errand, err error) (pause time.Duration, again bool) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if e.proof.addr == "" || p.proof.epoch != e.proof.epoch {
		return 0, false
	}
	p.proof.dials++
	var answered *refusal
	if evidenceOf(err) == elector.EvidenceRefused || errors.As(err, &answered) || p.proof.dials >= proofDials {
		p.proof = proofWanted{}
		return 0, false
	}
	return time.Millisecond << p.proof.dials, true
}

// dialFailed takes note of a failed dial, and of what it proves.
func (p *peer) dialFailed(e errand, err error) {
	if p.ctx.Err() != nil {
		return
	}
	p.m.mu.Lock()
	p.status.err = err.Error()
	p.m.mu.Unlock()
	var refused *refusal
	if errors.As(err, &refused) {
		p.m.stats.count(refused.Reason)
		p.m.refused(p.node, e.addr, refused)
	}
	if refused != nil && refused.Reason != ReasonAlreadyConnected && refused.Reason != ReasonClosing {
		p.m.log.warnRefused(refused.Reason, string(p.node), "peer not connected",
			"peer", p.node, "addr", e.addr, "cause", err)
	} else {
		p.m.log.Debug("dial failed", "peer", p.node, "addr", e.addr, "cause", err)
	}
	if e.proof.addr != "" && evidenceOf(err) == elector.EvidenceRefused {
		p.m.prove(p, e.proof.epoch)
	}
}

// rest waits until there may be something to dial. After a link that lasted the
// pauses start small again.
func (p *peer) rest(pause *backoff) {
	began := time.Now()
	select {
	case <-p.wake:
	case <-p.ctx.Done():
	}
	if time.Since(began) >= pause.max {
		pause.reset()
	}
}

// sleep waits for d, or until something changed.
func (p *peer) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.wake:
	case <-p.ctx.Done():
	}
}

// backoff makes pauses that double up to a limit, each cut by up to half at
// random, so that members that lost each other do not dial in step.
type backoff struct {
	min, max time.Duration
	current  time.Duration
	random   *rand.Rand
}

// pauses returns the pauses between redials of the peer.
func (p *peer) pauses() backoff {
	name := fnv.New64a()
	name.Write([]byte(p.node)) // never fails
	random := rand.New(rand.NewPCG(p.m.cfg.Seed, name.Sum64()))
	return backoff{min: p.m.cfg.RedialMin, max: p.m.cfg.RedialMax, random: random}
}

func (b *backoff) next() time.Duration {
	b.current = min(max(b.min, 2*b.current), b.max)
	return b.current - time.Duration(b.random.Int64N(int64(b.current/2+1)))
}

func (b *backoff) reset() { b.current = 0 }
