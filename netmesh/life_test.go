package netmesh

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/memnet"
)

// fast gives a mesh the times that follow from the timers for one room.
func fast(c *Config) { c.times, c.Inactivity = times{}, 60*time.Millisecond }

// framesIn is the number of frames that have come from the first peer of n.
func (n *node) framesIn() uint64 { return n.Links()[0].FramesIn }

// counted is a connection that counts writes.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// A link on which no answer is missing carries a ping and its answer a second, each way. One end's
// ping goes along with its answer to the other end's, so there are three writes a second.
func TestAnIdleLinkIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var writes atomic.Int64
		_, counts := wrapped(func(c net.Conn) net.Conn { return counted{c, &writes} })
		hosts := memnet.New()
		a, b := start(t, "a", onHost(hosts), fast, counts), start(t, "b", onHost(hosts), fast, counts)
		a.AddPeer("b", "b:7000")
		time.Sleep(10 * time.Second)
		before := a.framesIn()
		writes.Store(0)
		time.Sleep(100 * time.Second)
		require.InDelta(t, 2*100, a.framesIn()-before, 2*10)
		require.InDelta(t, 3*100, writes.Load(), 3*10)
		require.Equal(t, []string{"up 1"}, b.all("a"))
	})
}

// A node that says something to a silent peer notices the silence within the idle time-out. A node
// that says nothing notices it a second later.
func TestSilenceCountsFromTheFirstWordWithoutAnswer(t *testing.T) {
	for says, most := range map[bool]time.Duration{true: 0, false: restPing + 80*time.Millisecond} {
		virtual(t, func(t *testing.T, net *memnet.Network) {
			a, b := pairOn(t, net, fast)
			time.Sleep(10 * time.Second)
			cut(net, "a", "b", memnet.Drop)
			if says {
				require.True(t, a.Send("b", "g", ack(1))) // by itself it would get no answer
			}
			time.Sleep(a.cfg.Inactivity * 2)
			if says {
				time.Sleep(time.Millisecond)
			} else {
				require.True(t, a.Links()[0].Up)
				time.Sleep(most)
			}
			require.Equal(t, "down timeout", last(a.all("b"), 1)[0])
			time.Sleep(restPing + 80*time.Millisecond)
			require.Equal(t, "down timeout", last(b.all("a"), 1)[0])
		})
	}
}

// While an answer is missing many pings follow each other, unless round trips are long.
func TestWhoMissesAnAnswerPingsOften(t *testing.T) {
	for oneWay, want := range map[time.Duration][2]uint64{
		0: {20, 27}, 50 * time.Millisecond: {9, 16}, 300 * time.Millisecond: {3, 8},
	} {
		virtual(t, func(t *testing.T, net *memnet.Network) {
			net.Delay(func(string, string) time.Duration { return oneWay }, nil)
			standard := func(c *Config) { c.times = times{} }
			a, b := start(t, "a", onHost(net), standard), start(t, "b", onHost(net), standard)
			a.AddPeer("b", "b:7000")
			time.Sleep(time.Minute)
			before := a.framesIn()
			time.Sleep(20 * time.Second)
			require.LessOrEqual(t, a.framesIn(), before+2*21, "%s: no more than one a second and its answer", oneWay)
			before = a.Links()[0].FramesOut
			cut(net, "a", "b", memnet.Drop)
			time.Sleep(restPing + 3*time.Second)
			b.sees(t, "a", "down timeout")
			pings := a.Links()[0].FramesOut - before
			require.True(t, want[0] <= pings && pings <= want[1], "%s: %d", oneWay, pings)
		})
	}
}

// The link to a peer that answers stays, however seldom anything is said: a ping follows the last
// message, which may need no answer.
func TestALinkOnWhichSomebodySpeaksStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pairOn(t, memnet.New(), fast)
		for range 50 {
			require.True(t, a.Send("b", "g", ack(1)))
			time.Sleep(333 * time.Millisecond)
		}
		require.NotContains(t, append(a.all("b"), b.all("a")...), "down timeout")
	})
}

// An older build ends a link on which nothing comes for the idle time-out. It gets a ping in every
// third of that time.
func TestAnOlderPeerIsPingedAllTheTime(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a := start(t, "a", onHost(net), fast)
		s, h := intrudeOn(t, net, a), helloFrom(a)
		h.MaxVersion = version4 - 1
		s.link(h)
		for range 100 {
			require.NoError(t, s.raw.SetReadDeadline(time.Now().Add(2*a.cfg.Inactivity)))
			kind, body, err := s.frames.next()
			require.NoError(t, err)
			if kind == framePing {
				var p ping
				require.NoError(t, s.dec.one(body, &p))
				require.NoError(t, s.send(framePong, &p))
			}
		}
	})
}

// A process that was held up gives its peers the time for an answer, and for a write, once more: it
// has not read yet what came meanwhile.
func TestWhoeverWasHeldUpWaitsAgain(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, _ := pairOn(t, net, fast)
		time.Sleep(10 * time.Second)
		cut(net, "a", "b", memnet.Drop)
		require.True(t, a.Send("b", "g", ack(1)))
		for range 10 {
			synctest.Wait()
			a.checkLinks(a.age(), true)
			time.Sleep(a.cfg.Inactivity)
			require.True(t, a.Links()[0].Up)
		}
		time.Sleep(2 * a.cfg.Inactivity)
		require.False(t, a.Links()[0].Up)
	})
	var l link
	l.life.writing.Store(1)
	l.excuse(2)
	require.EqualValues(t, 2, l.life.writing.Load())
	require.Zero(t, l.life.asked.Load(), "nothing was asked")
}

// lateClock makes alarms ring late: it goes back by a step each time it is read.
type lateClock struct{ now, step atomic.Int64 }

func (c *lateClock) Now() time.Duration { return time.Duration(c.now.Add(-c.step.Load())) }

// A process that is held up all the time ends silent links, too.
func TestWhoeverIsAlwaysHeldUpEndsSilentLinks(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		c := &lateClock{}
		c.now.Store(int64(time.Hour))
		a, _ := pairOn(t, net, fast, func(cfg *Config) { cfg.Clock = c })
		time.Sleep(10 * time.Second)
		require.True(t, a.Links()[0].Up)
		cut(net, "a", "b", memnet.Drop)
		c.step.Store(int64(100 * time.Millisecond))
		time.Sleep(10 * time.Second)
		require.False(t, a.Links()[0].Up)
	})
}
