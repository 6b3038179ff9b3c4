package netmesh

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	// askVersion is the first version of the protocol whose links end only if an answer is
	// missing. Older ones end them if nothing comes for the idle time-out: they need pings.
	askVersion = 4
	// firstPings are sent at the ping interval, so that round trips are soon known.
	firstPings = 8
	// restPing is the ping interval of a link on which nothing is missing.
	restPing = time.Second
	// handling is life.heard while the handler has what came last.
	handling = math.MaxInt64
)

// life is what shows whether the peer of a link lives. The times are ages of the mesh; no
// frame costs a timer.
type life struct {
	heard   atomic.Int64 // the newest frame came
	asked   atomic.Int64 // the first frame left that nothing has followed from the peer; 0: none
	pinged  atomic.Int64 // the newest ping left
	writing atomic.Int64 // the write under way began; 0: there is none
}

// begin takes note of a write. Pongs ask nothing: two peers would go on pinging each other.
func (l *life) begin(now int64, kind frameKind) {
	l.writing.Store(now)
	if kind != framePong && l.asked.Load() == 0 {
		l.asked.Store(now)
	}
}

// age is the time since the mesh was made, in nanoseconds, at least 1.
func (m *Mesh) age() int64 { return max(int64(time.Since(m.started)), 1) }

// watchLinks ends links whose peers do not answer, and sends pings, until the mesh closes.
// One timer serves all links.
func (m *Mesh) watchLinks() {
	timer := time.NewTimer(m.cfg.times.ping)
	defer timer.Stop()
	due := m.age() + int64(m.cfg.times.ping)
	for {
		select {
		case <-timer.C:
		case <-m.ctx.Done():
			return
		}
		now := m.age()
		next := m.checkLinks(now, now-due >= int64(m.cfg.times.ping))
		due = m.age() + next
		timer.Reset(time.Duration(next))
	}
}

// checkLinks looks at all links, and returns after what time to do so again. If this process
// was held up, what came meanwhile is not read yet: the peers have the time for an answer
// once more.
func (m *Mesh) checkLinks(now int64, heldUp bool) (next int64) {
	next = int64(m.cfg.times.ping)
	m.mu.RLock()
	defer m.mu.RUnlock()
	for l := range m.live {
		if heldUp {
			l.life.excuse(now)
		}
		next = min(next, l.check(now))
	}
	return next
}

// excuse lets the time for an answer and for a write begin anew.
func (l *life) excuse(now int64) {
	for _, since := range [...]*atomic.Int64{&l.asked, &l.writing} {
		if old := since.Load(); old != 0 {
			since.CompareAndSwap(old, now)
		}
	}
}

// check ends the link if the peer is silent or takes nothing, or pings it if that is due.
// It returns the time until the link may have to end; the greatest if nothing is due.
func (l *link) check(now int64) (next int64) {
	t := &l.m.cfg.times
	asked, heard, writing := l.life.asked.Load(), l.life.heard.Load(), l.life.writing.Load()
	next = math.MaxInt64
	if writing != 0 {
		if next = writing + int64(t.idle) - now; next <= 0 {
			l.expire(l.conn.SetWriteDeadline)
			return math.MaxInt64
		}
	}
	if asked != 0 && heard != handling {
		// Silent for the idle time-out, and asked for two ping intervals.
		end := max(heard+int64(t.idle), asked+2*int64(t.ping)) - now
		if end <= 0 {
			l.expire(l.conn.SetReadDeadline)
			return math.MaxInt64
		}
		next = min(next, end)
	}
	if now-l.life.pinged.Load() >= l.pingEvery(asked != 0 && now-asked >= int64(t.ping)) {
		l.pingNow.wake()
	}
	return next
}

// expire lets reads or writes fail from now on, unless the link is at its end anyway.
func (l *link) expire(setDeadline func(time.Time) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended && !l.endsSoon {
		_ = setDeadline(time.Now()) // fails on a dead connection, as the read or write does
	}
}

// pingEvery is the pause between two pings, in nanoseconds.
func (l *link) pingEvery(answerMissing bool) int64 {
	t := &l.m.cfg.times
	if answerMissing || l.info.Version < askVersion || l.meter.newest() < firstPings {
		return int64(t.ping)
	}
	return int64(max(t.ping, restPing))
}
