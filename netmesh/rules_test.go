package netmesh

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	id := uuid.NewSHA1(uuid.Nil, []byte("b"))
	kept := func(dialer elector.NodeID) *peer {
		l := &link{connKey: connKey{node: "b", identity: id, boot: 5, dialer: dialer, dial: 7},
			stop: make(chan struct{})}
		return &peer{known: true, identity: id, boot: 5, link: l}
	}
	keyed := func(dialer elector.NodeID) *peer {
		p := kept(dialer)
		p.keys = [][]byte{{1}, {2}}
		return p
	}
	knows := func(key byte, dial uint64) claimed {
		return claimed{sender: "b", dial: dial, first: proofOf([]byte{key}, frameHello, "b", dial)}
	}
	byTLS := claimed{authenticated: true}
	for name, c := range map[string]struct {
		kept   *peer
		boot   uint64
		dialer elector.NodeID
		dial   uint64
		by     claimed
		want   decision
	}{
		"nothing known":               {nil, 5, "b", 1, claimed{}, keepNew},
		"smaller dialer against us":   {kept("b"), 5, "a", 1, claimed{}, keepNew},
		"larger dialer against us":    {kept("a"), 5, "b", 99, claimed{}, keepOld},
		"newer of the same dialer":    {kept("b"), 5, "b", 8, claimed{}, keepNew},
		"older of the same dialer":    {kept("b"), 5, "b", 6, claimed{}, keepOld},
		"the same dial once more":     {kept("b"), 5, "b", 7, claimed{}, keepOld},
		"next boot, whoever dialed":   {kept("a"), 6, "b", 1, claimed{}, askFirst},
		"earlier boot, older process": {kept("b"), 4, "a", 99, claimed{}, breaksRule},

		"newer, of somebody who shows nothing":   {keyed("b"), 5, "b", 8, claimed{}, askFirst},
		"smaller, of somebody who shows nothing": {keyed("b"), 5, "a", 1, claimed{}, askFirst},
		"newer, and knows the key":               {keyed("b"), 5, "b", 8, knows(1, 8), keepNew},
		"newer, and knows the key before":        {keyed("b"), 5, "b", 8, knows(2, 8), askFirst},
		"newer, with the proof of another dial":  {keyed("b"), 5, "b", 9, knows(1, 8), askFirst},
		"newer, by TLS":                          {keyed("b"), 5, "b", 8, byTLS, keepNew},
		"older, and knows the key":               {keyed("b"), 5, "b", 6, knows(1, 6), keepOld},
	} {
		c.by.dial = c.dial
		got, refused := c.kept.judge(&connKey{node: "b", identity: id, boot: c.boot, dialer: c.dialer,
			dial: c.dial}, &c.by)
		require.Equal(t, c.want, got, name)
		require.Equal(t, c.want == keepNew, refused == nil, name)
	}
}

// quiet makes a link on which nothing travels after the first ping.
func quiet(c *Config) { c.times.ping, c.times.idle = time.Hour, 2*time.Hour }

// TestRefusedNewcomerMakesTheKeptLinkProveItself: the newcomer would not dial if it still had the
// link that is kept.
func TestRefusedNewcomerMakesTheKeptLinkProveItself(t *testing.T) {
	a, b := start(t, "a", quiet), start(t, "b", quiet)
	a.knows(b)
	sent := func(n uint64) func() bool {
		return func() bool { l := a.Links(); return len(l) == 1 && l[0].FramesOut == n }
	}
	require.Eventually(t, sent(3), patience, glance, "a ping, the answer to one, and the facts")
	require.Equal(t, reasonAlreadyConnected, a.consider(&handshake{}, b.hello("a", 99)).Reason)
	require.Eventually(t, sent(4), patience, glance)
}

// A mesh that closes answers no probe, or the other end would take its address for one that can be
// reached.
func TestAMeshThatClosesRefusesWhoeverAsks(t *testing.T) {
	a, b := start(t, "a"), start(t, "b")
	a.close(t)
	for name, ask := range map[string]func(*hello){
		"a link":  func(*hello) {},
		"a probe": func(h *hello) { h.Probe = true },
		"a death": func(h *hello) { h.Evidence = []byte("key") },
	} {
		h := b.hello("a", 1)
		ask(h)
		refused := a.consider(&handshake{}, h)
		require.NotNil(t, refused, name)
		require.Equal(t, reasonClosing, refused.Reason, name)
	}
}

// TestOldEvidenceProvesNothing: evidence about a link before the present one
// must not release promises made since.
func TestOldEvidenceProvesNothing(t *testing.T) {
	a, b := start(t, "a"), start(t, "b")
	a.knows(b)
	a.sees(t, "b", "up 1")
	until(t, func() bool { return a.evidenceTo("b") != nil })
	p := a.peers["b"]
	dial := func(e *evidence) {
		p.dialFailed(dialTask{addr: e.addr, proof: e}, syscall.ECONNREFUSED)
	}
	e := a.evidenceTo("b")
	dial(&evidence{l: e.l})
	b.close(t)
	a.sees(t, "b", "down goodbye")
	dial(&evidence{l: e.l})
	require.Equal(t, []string{"up 1", "down goodbye"}, a.all("b"))
}

// TestFramesOfAReplacedConnectionCount: both connections lead to the same process.
func TestFramesOfAReplacedConnectionCount(t *testing.T) {
	up := &peer{m: &Mesh{}, link: &link{info: PeerInfo{Boot: 2}}}
	require.True(t, up.sameProcess(&link{info: PeerInfo{Boot: 2}}))
	require.False(t, up.sameProcess(&link{info: PeerInfo{Boot: 1}}), "an earlier process")
	down := &peer{m: &Mesh{}}
	require.False(t, down.sameProcess(&link{info: PeerInfo{Boot: 2}}),
		"after LinkDown nothing is received")
}

// TestDyingListenerIsAskedAgain: the first dial for the proof meets a listener that the
// kernel has not closed yet.
func TestDyingListenerIsAskedAgain(t *testing.T) {
	a := start(t, "a")
	m := inKernel(t, a)
	e := m.evidence()
	m.dying.Store(true)
	_ = m.conn.Close()
	_ = e.conn.Close()
	a.sees(t, "x", "died refused-after-eof")
	require.False(t, m.dying.Load(), "the first dial was broken off")
}

// TestListenerIsClosedLast: no dial is refused as long as any part of the process works.
func TestListenerIsClosedLast(t *testing.T) {
	a := startWith(t, "a", &recorder{slow: "b", release: make(chan struct{})})
	b := start(t, "b")
	b.knows(a)
	a.sees(t, "b", "up 1")
	until(t, func() bool { return b.Send("a", "g", ack(1)) })
	require.Eventually(t, a.held.Load, patience, glance)
	closed := make(chan error)
	go func() { closed <- a.Close(context.Background()) }()
	until(t, func() bool { return !a.Send("b", "g", ack(1)) || a.ctx.Err() != nil })
	conn, err := net.DialTimeout("tcp", a.Addr().String(), time.Second)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	close(a.release)
	require.NoError(t, <-closed)
}

func TestReusedDecoderKeepsNothingOfTheMessageBefore(t *testing.T) {
	enc, dec := newEncoder(), newDecoder()
	full := largest()
	_, frame, err := enc.batch([]queued{full}, smallFrame)
	require.NoError(t, err)
	require.NoError(t, dec.batch(frame[frameHeader:],
		func(_ string, m elector.Message) { require.Equal(t, full.msg, m) }))
	enc.begin()
	require.NoError(t, enc.codec.Encode([]any{[]byte("g"), uint8(elector.NodeUnavailable)}))
	require.NoError(t, dec.batch(enc.body, func(_ string, m elector.Message) {
		require.Equal(t, elector.Message{Kind: elector.NodeUnavailable}, m)
	}))
}
