package netmesh

import (
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/clock"
)

const (
	// firstPings are sent at the ping interval, so that round trips are soon known.
	firstPings = 8
	// restPing is the ping interval of a link on which nothing is missing.
	restPing = time.Second
	// againIn is the part of the ping interval after which a ping follows one that was not answered,
	// unless two round trips are longer: 20 of them fit into the idle time-out. Links are not looked
	// at more often.
	againIn = 10
	// mostLate is how often in a row this process may be held up before that excuses a silent
	// peer no more: a process that is always late must end silent links, too.
	mostLate = 16
)

// life holds what shows whether the peer of a link lives. Its times are ages of the mesh, so that
// no frame costs a timer.
type life struct {
	busy    atomic.Bool  // the handler has the newest frame that came
	asked   atomic.Int64 // when the first frame left since the newest one came; 0: none did
	pinged  atomic.Int64 // when the newest ping left
	writing atomic.Int64 // when the write under way began; 0: there is none
}

// begin takes note of a write, and of whether it asks for an answer.
func (l *life) begin(now int64, asks bool) {
	l.writing.Store(now)
	if asks && l.asked.Load() == 0 {
		l.asked.Store(now)
	}
}

// age is the time since the mesh was made, in nanoseconds, at least 1.
func (m *Mesh) age() int64 { return max(int64(time.Since(m.started)), 1) }

// watchLinks ends links whose peers do not answer, and sends pings, until the mesh closes.
// One alarm serves all links.
func (m *Mesh) watchLinks() {
	alarm := clock.NewAlarm(m.cfg.Clock)
	defer alarm.Close()
	pause, late := m.cfg.times.ping, 0
	for {
		due := m.age() + int64(pause)
		alarm.Set(m.cfg.Clock.Now() + pause)
		select {
		case <-alarm.Rings():
		case <-m.ctx.Done():
			return
		}
		now := m.age()
		if now-due < int64(m.cfg.times.ping) {
			late = 0
		} else {
			late++
		}
		heldUp := late > 0 && late <= mostLate
		pause = time.Duration(m.checkLinks(now, heldUp))
	}
}

// checkLinks looks at all links, and returns after what time to do so again. If this process
// was held up, what came meanwhile is not read yet: the peers have the time for an answer
// once more.
func (m *Mesh) checkLinks(now int64, heldUp bool) (next int64) {
	next = 2 * int64(m.cfg.times.ping)
	m.mu.RLock()
	defer m.mu.RUnlock()
	for l := range m.live {
		if heldUp {
			l.excuse(now)
		}
		next = min(next, l.check(now))
	}
	return next
}

// excuse lets the time for an answer and for a write begin anew.
func (l *link) excuse(now int64) {
	for _, since := range [...]*atomic.Int64{&l.life.asked, &l.life.writing} {
		if old := since.Load(); old != 0 {
			since.CompareAndSwap(old, now)
		}
	}
}

// check ends the link if the peer answers or takes nothing, or pings it if that is due. It
// returns the time until it has to be called again, as far as this link is concerned.
func (l *link) check(now int64) (next int64) {
	idle, ping := int64(l.m.cfg.times.idle), int64(l.m.cfg.times.ping)
	asked, pinged, writing := l.life.asked.Load(), l.life.pinged.Load(), l.life.writing.Load()
	next = 2 * ping
	if writing != 0 && now-writing >= idle {
		l.expire(l.conn.SetWriteDeadline)
		return next
	}
	missing := false // an answer
	if asked != 0 && !l.life.busy.Load() {
		if now-asked >= idle {
			l.expire(l.conn.SetReadDeadline)
			return next
		}
		if missing = now-asked >= ping; missing {
			next = asked + idle - now
		} else {
			next = max(asked+ping-now, ping/againIn)
		}
	}
	every := l.pingEvery(missing)
	if now-pinged >= every {
		if l.life.pinged.CompareAndSwap(pinged, now) { // none has left along with an answer
			l.pingNow.wake()
		}
		pinged = now
	}
	if every <= ping {
		next = min(next, max(pinged+every-now, ping/againIn))
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

// pingEvery is the pause between two pings, in nanoseconds. While an answer is missing it is short,
// so that a link ends only if very many pings or their answers are lost: a path may lose frames,
// and beats that go by datagrams do not show that the link works.
func (l *link) pingEvery(answerMissing bool) int64 {
	t := &l.m.cfg.times
	switch {
	case answerMissing:
		roundTrip, _ := l.meter.read()
		return int64(min(max(2*roundTrip, t.ping/againIn), t.ping))
	case l.info.Version < version4 || l.meter.newest() < firstPings:
		return int64(t.ping)
	}
	return int64(max(t.ping, restPing))
}
