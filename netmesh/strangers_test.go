package netmesh

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// votersAB makes a and b the voters: everybody else is a stranger.
func votersAB(c *Config) { c.Facts = Facts{Voters: []string{"a", "b"}, VoterCount: 2} }

// guest is a valid Hello with another name.
func guest(a *node, name string) *hello {
	h, id := helloFrom(a), uuid.NewSHA1(uuid.Nil, []byte(name))
	h.Node, h.Identity = name, id[:]
	return h
}

// Names that come and go leave nothing behind and do not fill the log.
func TestNamesThatComeAndGoFillNothing(t *testing.T) {
	plainOnly(t)
	var log bytes.Buffer
	a := start(t, "a", votersAB, logs(&log))
	for i := range maxMembers + 10 {
		s := intrude(t, a)
		s.link(guest(a, fmt.Sprint("guest", i)))
		_, _, _ = s.frames.next() // the link is up, or refused
		reset(s.conn)
	}
	until(t, func() bool { return len(a.Links()) == 0 })
	require.Zero(t, a.Counters()[reasonCrowded])
	b := start(t, "b", votersAB)
	b.knows(a)
	a.sees(t, "b", "up 1")
	require.NoError(t, b.Mesh.Close(t.Context()))
	until(t, func() bool { return len(a.Links()) == 1 })
	require.True(t, a.Links()[0].Peer.Node == "b", "the identity of a voter is kept")
	require.NoError(t, a.Mesh.Close(t.Context()))
	require.Equal(t, 1, strings.Count(log.String(), "link down"))
}

// Strangers that stay take the places of strangers, not those of voters and invited members.
func TestStrangersTakeNoVotersPlace(t *testing.T) {
	plainOnly(t)
	a := start(t, "a", votersAB, func(c *Config) { c.times.idle = time.Hour })
	for i := range maxStrangers {
		name := fmt.Sprint("guest", i)
		intrude(t, a).link(guest(a, name))
		a.sees(t, elector.NodeID(name), "up 1")
	}
	intrude(t, a).link(guest(a, "guest"))
	a.counts(t, reasonCrowded)
	require.Equal(t, maxStrangers, len(a.Links()))
	b, observer := start(t, "b", votersAB), start(t, "observer")
	b.knows(a)
	a.sees(t, "b", "up 1")
	a.knows(observer)
	a.sees(t, "observer", "up 1")
}

// Strangers that listen nowhere get one line in the log, not one for each name.
func TestStrangersThatListenNowhereFillNoLog(t *testing.T) {
	plainOnly(t)
	virtual(t, func(t *testing.T, net *memnet.Network) {
		var log bytes.Buffer
		a := start(t, "a", votersAB, onHost(net), logs(&log))
		for i := range 5 {
			h, s, evidence := guest(a, fmt.Sprint("guest", i)), intrudeOn(t, net, a), intrudeOn(t, net, a)
			h.MaxVersion, h.Address = maxVersion, "x:7000"
			require.NoError(t, s.send(frameHello, h))
			var theirs hello
			require.NoError(t, s.expect(frameWelcome, &theirs))
			require.NoError(t, s.send(frameJoin, &ping{}))
			synctest.Wait()
			h.Evidence = theirs.Evidence
			h.Local, h.Remote = endsOf(evidence.conn)
			require.NoError(t, evidence.send(frameHello, h))
			require.NoError(t, evidence.expect(frameWelcome, &hello{}))
			time.Sleep(time.Second) // three dials to where it is said to listen fail
			reset(s.conn)
			reset(evidence.conn)
		}
		a.close(t)
		require.Equal(t, 1, strings.Count(log.String(), "nobody answers where"), log.String())
	})
}

// A process tells an address at which nobody answers. The address is dialed ever more rarely, and
// soon no more if the process has no vote: it may belong to a third party. Each evidence connection
// begins that anew.
func TestWhereNobodyAnswersIsDialedRarely(t *testing.T) {
	for voter, want := range map[string]struct{ least, most int64 }{"x": {10, 40}, "b": {3, 3}} {
		virtual(t, func(t *testing.T, network *memnet.Network) {
			n, counted := wrapped(func(c net.Conn) net.Conn { return c })
			a := start(t, "a", onHost(network), func(c *Config) {
				c.Facts = Facts{Voters: []string{"a", voter}, VoterCount: 2}
				c.times.idle = time.Hour
			}, counted)
			m := joins(t, a, network.Host("x"), "x:7000")
			require.NoError(t, m.listener.Close())
			for round := range int64(3) {
				require.NoError(t, m.present(m.dial(t)))
				time.Sleep(5 * time.Minute)
				require.GreaterOrEqual(t, n.dialed.Load(), (round+1)*want.least)
				require.LessOrEqual(t, n.dialed.Load(), (round+1)*want.most)
			}
		})
	}
}

// Connections that say nothing do not keep a member out.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	a := start(t, "a", func(c *Config) { c.times.handshake = time.Hour })
	b := start(t, "b")
	for range 3 * maxPending {
		intrude(t, a)
	}
	a.counts(t, reasonCrowded)
	b.knows(a)
	a.sees(t, "b", "up 1")
	require.LessOrEqual(t, len(a.pending.All()), maxPending)
}

// Anybody can claim by gossip that a member listens elsewhere. Its old address is not forgotten.
func TestAFalseAddressDoesNotKeepAMemberOut(t *testing.T) {
	for name, invite := range map[string]func(a, b *node){
		"a dialed b": func(a, _ *node) { a.AddPeer("b", "b:7000") },
		"b dialed a": func(_, b *node) { b.AddPeer("a", "a:7000") },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, net *memnet.Network) {
				a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net))
				invite(a, b)
				time.Sleep(time.Minute)
				a.AddPeer("b", "nowhere:9")
				net.Kill("b")
				time.Sleep(time.Minute)
				start(t, "b", onHost(net, boot(2))).AddPeer("a", "nowhere:9")
				time.Sleep(time.Minute)
				require.Equal(t, "up 2", last(a.all("b"), 1)[0])

				// And it may move: both addresses are tried.
				net.Kill("b")
				moved := start(t, "b", onHost(net, boot(3), func(c *Config) { c.Bind = "b:7001" }))
				a.AddPeer("b", "b:7001")
				time.Sleep(time.Minute)
				require.Equal(t, "up 3", last(a.all("b"), 1)[0])
				require.Equal(t, 1, moved.count("a", "up 1"))
			})
		})
	}
}

// Whatever a stranger sends from its first byte on, it leaves nothing behind.
func FuzzHandshake(f *testing.F) {
	a := start(f, "a", votersAB)
	stream := func(change func(*hello), more ...byte) {
		h, enc := helloFrom(a), newEncoder()
		change(h)
		frame, err := enc.encode(frameHello, h)
		require.NoError(f, err)
		f.Add(append(bytes.Clone(frame), more...))
	}
	stream(func(*hello) {})
	join, err := newEncoder().encode(frameJoin, &ping{})
	require.NoError(f, err)
	_, batch, err := newEncoder().batch([]queued{{"g", heartbeat(1)}}, maxFrame)
	require.NoError(f, err)
	stream(func(*hello) {}, append(join, batch...)...)
	stream(func(h *hello) { h.Probe = true })
	stream(func(h *hello) { h.MaxVersion, h.Evidence = maxVersion, make([]byte, 16) })
	f.Fuzz(func(t *testing.T, sent []byte) {
		theirs, ours := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		go func() {
			_, _ = theirs.Write(sent)
			_ = theirs.Close()
		}()
		l, err := a.welcome(newHandshake(ours, patience))
		if l != nil {
			require.NoError(t, err)
			require.Empty(t, elector.NameProblem(l.node))
			require.NotEqual(t, a.cfg.Node, l.node)
			l.run()
		}
		for _, known := range a.Links() { // a voter's identity is remembered
			require.Equal(t, elector.NodeID("b"), known.Peer.Node)
		}
	})
}
