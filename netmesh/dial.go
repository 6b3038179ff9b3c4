package netmesh

import (
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

const (
	// proofDials are made at most to an address of a process that seems dead.
	proofDials = 12
	// proofRetry is the pause after the first of them, doubled after each.
	proofRetry = 100 * time.Microsecond
	// proofWait is how long the first of them waits for a dying process to close its listener.
	proofWait = 2 * time.Millisecond
	// evidenceRest is how much later than its link an evidence connection may end.
	evidenceRest = 2 * time.Millisecond
)

// dialTask is what the dialer is to do next.
type dialTask struct {
	addr  string    // "" for nothing
	proof *evidence // whose process seems dead; nil for none
	later bool      // not at once
	rest  bool      // only once it is known whether the process has died
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
		case t.rest:
			pause(p.ctx, evidenceRest, p.wake, nil)
		case t.later:
			p.pauseUnlessNeeded(p.rest(&redial))
		default:
			err := p.m.dial(p, t.addr, t.proof != nil)
			if err == nil || p.ctx.Err() != nil {
				continue
			}
			again := p.dialFailed(t, err)
			if again == 0 {
				again = p.rest(&redial)
			}
			pause(p.ctx, again, p.wake, nil)
		}
	}
}

// pauseUnlessNeeded pauses until there is a link or a proof to seek. The end of an evidence
// connection wakes the dialer too, but is no reason to dial a peer that comes and goes.
func (p *peer) pauseUnlessNeeded(d time.Duration) {
	idle := func() bool {
		p.m.mu.RLock()
		defer p.m.mu.RUnlock()
		return p.link == nil && (p.evidence == nil || !p.evidence.proofWanted)
	}
	for end := time.Now().Add(d); p.ctx.Err() == nil && time.Now().Before(end) && idle(); {
		pause(p.ctx, time.Until(end), p.wake, nil)
	}
}

// nextTask takes the next thing to dial. Where the process behind the last link
// listened goes first: a refusal there is evidence.
func (p *peer) nextTask() dialTask {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	e := p.evidence
	p.dialing = false
	switch {
	case e != nil && e.proofWanted:
		return dialTask{addr: e.addr, proof: e}
	case p.link != nil:
		return dialTask{}
	}
	t := dialTask{addr: p.addr, later: p.dialLater}
	if p.elsewhere && p.addr != "" {
		t.addr = p.reached
	}
	t.rest = !p.dialLater && p.lostNow && e != nil && e.seen == elector.EvidenceNone && e.provable()
	p.dialLater, p.lostNow = false, false
	if !t.rest && !t.later {
		_, t.later = p.neighbours()
		p.dialing = !t.later
	}
	return t
}

// neighbours counts the peers that are dialed at the address of p, with p itself, and reports
// whether another of them is being dialed now. Otherwise an attacker who invents members could
// have any number of connections made to any address. A voter has no neighbours: an attacker may
// claim its address. Called with Mesh.mu held.
func (p *peer) neighbours() (count int, busy bool) {
	if p.m.cfg.isVoter(p.node) {
		return 1, false
	}
	for _, o := range p.m.peers {
		if o == p || o.link == nil && o.addr == p.addr {
			count++
			busy = busy || o != p && o.dialing
		}
	}
	return count, busy
}

// rest is the pause before the next redial. It grows with the time that handshakes take. All peers
// at one address together are dialed as often as one would be.
func (p *peer) rest(redial *backoff) time.Duration {
	p.m.mu.RLock()
	defer p.m.mu.RUnlock()
	count, _ := p.neighbours()
	t := &p.m.cfg.times
	redial.max = t.redialMax + (p.handshakes.limit()-t.handshake)/4
	return redial.next() * time.Duration(count)
}

// dialFailed takes note of a failed dial and of what it proves. It returns the pause after which
// a dial that was to prove a death should be repeated, or 0. A repeat is needed because a kernel
// closes the files of a dying process one by one: the first dial may still meet its listener, and
// then break off.
func (p *peer) dialFailed(t dialTask, err error) (again time.Duration) {
	var answered *refusal
	refused := evidenceOf(err) == elector.EvidenceRefused
	if errors.As(err, &answered) {
		p.m.countReason(answered.Reason)
		p.m.refused(p.node, t.addr, answered)
	}
	p.m.mu.Lock()
	p.status.err, p.dialing = err.Error(), false
	p.refusing = p.refusing || refused
	p.elsewhere = !p.elsewhere && p.reached != "" // addr may be a lie, or old
	if e := t.proof; e != nil {
		again = proofRetry << e.dials
		e.dials++
		// A dying listener breaks off a TLS handshake, too, and that looks like a refusal.
		said := answered != nil && answered.Reason != ReasonTLS
		if refused || said || e.dials >= proofDials {
			e.proofWanted, again = false, 0
		}
		if refused {
			e.proof = elector.ProofRefusedAfterEOF
		}
	}
	p.m.mu.Unlock()
	if t.proof != nil && refused {
		p.conclude()
	}
	fields := []any{"peer", p.node, "addr", t.addr, "cause", err}
	if answered == nil || answered.Reason == reasonAlreadyConnected ||
		answered.Reason == reasonClosing {
		p.m.log.Debug("dial failed", fields...)
	} else {
		p.m.log.warn(answered.Reason.String(), string(p.node), "peer not connected", fields...)
	}
	return again
}

// backoff makes pauses that double up to a limit. Each is shortened by up to half at random, so
// that members which lost each other do not dial in step. The seed is the pair of names and the
// boot counter: the random part differs between members, and runs can be repeated.
type backoff struct {
	min, max time.Duration
	current  time.Duration // 0: begin again
	random   *rand.Rand
}

// newBackoff returns the pauses between redials of the peer.
func (p *peer) newBackoff() backoff {
	pair := fnv.New64a()
	pair.Write([]byte(p.m.cfg.Node + "\x00" + p.node)) // never fails
	random := rand.New(rand.NewPCG(p.m.cfg.Boot, pair.Sum64()))
	return backoff{min: p.m.cfg.times.redialMin, max: p.m.cfg.times.redialMax, random: random}
}

func (b *backoff) next() time.Duration {
	b.current = min(max(b.min, 2*b.current), b.max)
	return b.current - time.Duration(b.random.Int64N(int64(b.current/2+1)))
}
