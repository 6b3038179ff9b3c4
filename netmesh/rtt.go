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
	sent     [64]time.Time // by number modulo 64
	answered uint64        // one bit per ping, the newest lowest
	rtt      time.Duration // smoothed; 0 before the first answer
}

// next numbers a ping that leaves now.
func (m *meter) next(now time.Time) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.sent[m.last%64] = now
	m.answered <<= 1
	return m.last
}

// pong takes an answer into account; one that nobody asked for changes nothing.
func (m *meter) pong(number uint64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if number == 0 || number > m.last || m.last-number >= 64 {
		return
	}
	bit := uint64(1) << (m.last - number)
	if m.answered&bit != 0 {
		return
	}
	m.answered |= bit
	sample := now.Sub(m.sent[number%64])
	if m.rtt == 0 {
		m.rtt = sample
	} else {
		m.rtt += (sample - m.rtt) / 8 // RFC 6298's weight
	}
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
