package netmesh

import (
	"math/bits"
	"sync"
	"time"
)

// meter measures round-trip time and loss of one link by its pings.
type meter struct {
	mu       sync.Mutex
	last     uint64        // number of the newest ping; the first is 1
	sent     [64]departure // by number modulo 64
	answered uint64        // one bit per ping, the newest lowest
	rtt      time.Duration // smoothed; 0 before the first answer
}

// departure is when a ping left, by the time of this process and by the clock
// that is compared with the peer's.
type departure struct {
	at    time.Time
	clock time.Duration
}

// next numbers a ping that leaves now.
func (m *meter) next(now time.Time, clock time.Duration) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.sent[m.last%64] = departure{now, clock}
	m.answered <<= 1
	return m.last
}

// newest is the number of the last ping that left; 0 before the first.
func (m *meter) newest() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// pong takes an answer into account, and returns by the clock when its ping left;
// one that nobody asked for, or that came before, is not ok and changes nothing.
func (m *meter) pong(number uint64, now time.Time) (left time.Duration, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if number == 0 || number > m.last || m.last-number >= 64 {
		return 0, false
	}
	bit := uint64(1) << (m.last - number)
	if m.answered&bit != 0 {
		return 0, false
	}
	m.answered |= bit
	sent := m.sent[number%64]
	sample := now.Sub(sent.at)
	if m.rtt == 0 {
		m.rtt = sample
	} else {
		m.rtt += (sample - m.rtt) / 8 // RFC 6298's weight
	}
	return sent.clock, true
}

// read returns the smoothed round-trip time, 0 if unknown, and the share of
// the last 63 pings that got no answer. The newest ping does not count: its answer may
// be on its way.
func (m *meter) read() (rtt time.Duration, loss float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last < 2 {
		return m.rtt, 0
	}
	due := min(m.last-1, 63)
	got := uint64(bits.OnesCount64((m.answered >> 1) & (1<<due - 1)))
	return m.rtt, float64(due-got) / float64(due)
}
