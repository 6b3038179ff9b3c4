package netmesh

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/memnet"
)

// impersonates returns a Hello to n that claims to be the process of victim, with all that a
// stranger can learn: by a probe of the victim, and by a link to it under another name.
func impersonates(t *testing.T, victim, n *node) *hello {
	t.Helper()
	var probed, linked hello
	h := helloFrom(victim)
	h.MaxVersion, h.Probe = maxVersion, true
	s := intrude(t, victim)
	require.NoError(t, s.send(frameHello, h))
	require.NoError(t, s.expect(frameWelcome, &probed))
	h.Probe = false
	s = intrude(t, victim)
	require.NoError(t, s.send(frameHello, h))
	require.NoError(t, s.expect(frameWelcome, &linked))
	reset(s.conn)
	probed.To, probed.Dial, probed.MinVersion = string(n.cfg.Node), 1<<60, minVersion
	if probed.Process == 0 {
		probed.Process = linked.Process
	}
	probed.Evidence, probed.Proofs = nil, nil
	return &probed
}

// buries does all that proves a death: it makes a link and its evidence connection, and shows the
// certificate. It reports whether there was a link.
func (s *stranger) buries(t *testing.T, n *node, h *hello) bool {
	var theirs hello
	require.NoError(t, s.send(frameHello, h))
	if s.expect(frameWelcome, &theirs) != nil || s.send(frameJoin, &ping{}) != nil {
		return false
	}
	_ = s.send(frameFacts, &Facts{})
	for secret, tries := newCertificate(), 0; tries < 20; tries++ { // until the Join was read
		e, claim := intrude(t, n), *h
		claim.Evidence, claim.Commitment = theirs.Evidence, secret.commitment()
		claim.Local, claim.Remote = endsOf(e.conn)
		if e.send(frameHello, &claim) == nil && e.expect(frameWelcome, &hello{}) == nil {
			e.shows(secret[:])
			break
		}
		time.Sleep(glance)
	}
	return true
}

// A stranger that knows all that a member tells strangers cannot replace its link, and so cannot
// claim that the member is dead, whoever dialed: §6.8.
func TestAStrangerDoesNotReplaceALinkThatIsUp(t *testing.T) {
	plainOnly(t)
	without := func(*Config) {}
	for name, c := range map[string]struct {
		edit   func(*Config)
		dialed bool
	}{
		"it dialed":            {without, true},
		"it was dialed":        {without, false},
		"during a move to TLS": {goes(acceptsWay), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The order of the names prefers the stranger's dials.
			a, b := start(t, "b", c.edit), start(t, "a", c.edit)
			if c.dialed {
				b.knows(a)
			} else {
				a.knows(b)
			}
			a.sees(t, "a", "up 1")
			until(t, func() bool { return a.stands("a") })
			for range 3 {
				require.False(t, intrude(t, a).buries(t, a, impersonates(t, b, a)))
			}
			time.Sleep(3 * a.cfg.times.redialMax)
			require.Equal(t, []string{"up 1"}, a.all("a"))
			require.True(t, b.Send("b", "g", ack(3)))
			a.sees(t, "a", "g HeartbeatAck 3")
		})
	}
}

// greets returns a Hello that claims to be n's, with all that anybody could know about n.
func (n *node) greets(to *node) *hello {
	h := n.hello(to.cfg.Node, 1<<60)
	h.MinVersion, h.Address = minVersion, "127.0.0.1:1"
	return h
}

// callsUnder calls a node with a Hello again and again until ctx ends. It keeps no link for long.
func callsUnder(ctx context.Context, h *hello, host *memnet.Host, n *node) {
	for ctx.Err() == nil {
		if conn, err := host.Dial(ctx, n.cfg.Bind); err == nil {
			s := newHandshake(conn, time.Minute)
			if s.send(frameHello, h) == nil && s.expect(frameWelcome, &hello{}) == nil {
				_ = s.send(frameJoin, &ping{})
				_, _, _ = s.frames.next()
			}
			reset(conn)
		}
		time.Sleep(glance)
	}
}

// A stranger calls all the time under the name of a voter, as a later start on its directory. It
// does not replace the voter, does not come first when the voter's link is reset, and does not get
// the voter refused at its next dial. The voter is so far away that the stranger calls first.
func TestAStrangerDoesNotComeBeforeAProcessThatReturns(t *testing.T) {
	plainOnly(t)
	for name, change := range map[string]func(*hello){
		"the same start":            func(*hello) {},
		"a later start":             func(h *hello) { h.Boot += 5 },
		"a later, another process":  func(h *hello) { h.Boot += 5; h.Process++ },
		"the same, another process": func(h *hello) { h.Process++ },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, net *memnet.Network) {
				net.Delay(func(from, to string) time.Duration {
					if from == "b" || to == "b" {
						return 300 * time.Millisecond
					}
					return 0
				}, nil)
				a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net))
				b.AddPeer("a", a.cfg.Bind)
				time.Sleep(10 * time.Second)
				h := b.greets(a)
				change(h)
				ctx, stop := context.WithCancel(t.Context())
				var stranger sync.WaitGroup
				stranger.Go(func() { callsUnder(ctx, h, net.Host("x"), a) })
				want := []string{"up 1"}
				for range 3 {
					time.Sleep(1900 * time.Millisecond)
					b.resetLink("a")
					time.Sleep(10 * time.Second)
					want = append(want, "down reset", "up 1")
				}
				stop()
				stranger.Wait()
				require.Equal(t, want, a.all("b"))
				require.Equal(t, want, b.all("a"))
				require.Zero(t, b.Counters()[ReasonCopied], "the real one was refused")
			})
		})
	}
}

// A process takes a name over without proof that it is the process of the links before. Its end
// proves nothing, because that process may live: §6.8, §6.9.
func TestTheEndOfWhoShowsNothingProvesNothing(t *testing.T) {
	plainOnly(t)
	a, b := start(t, "a"), start(t, "b")
	b.knows(a)
	a.sees(t, "b", "up 1")
	until(t, func() bool { return a.stands("b") })
	h := b.greets(a)
	b.RemovePeer("a")
	a.sees(t, "b", "down goodbye")
	s := intrude(t, a)
	require.True(t, s.buries(t, a, h))
	_ = closeWrite(s.conn)
	a.sees(t, "b", "down eof")
	time.Sleep(3 * a.cfg.times.redialMax)
	require.Zero(t, a.count("b", "died certified"))
}

// With DeathProof.Off a certificate is no proof either.
func TestACertificateProvesNothingWhereProofsAreOff(t *testing.T) {
	a := start(t, "a", func(c *Config) { c.DeathProof.Off = true })
	m := inKernel(t, a)
	e := m.dial(t)
	require.NoError(t, m.present(e))
	until(t, func() bool { return a.stands("x") })
	e.shows(m.secret[:])
	_ = closeWrite(m.conn)
	a.sees(t, "x", "down eof")
	time.Sleep(3 * a.cfg.times.redialMax)
	require.Equal(t, []string{"up 1", "down eof"}, a.all("x"))
}
