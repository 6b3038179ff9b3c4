package netmesh

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/stretchr/testify/require"
)

// at puts a node on a host of another name, like a copy of a process elsewhere.
func at(n *memnet.Network, host string) func(*Config) {
	return func(c *Config) { c.Network, c.Bind = n.Host(host), host+":7000" }
}

// A process on a copy of a data directory is refused as long as the process on the original is
// linked and answers, whatever its boot counter and whoever dials: §6.9.
func TestACopyNeverTakesThePlaceOfAProcessThatAnswers(t *testing.T) {
	for name, theirBoot := range map[string]uint64{"later": 6, "equal": 5, "earlier": 4} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ours, theirs bytes.Buffer
				net := memnet.New()
				a := start(t, "a", onHost(net), logs(&ours))
				b := start(t, "b", onHost(net), boot(5))
				b.AddPeer("a", "a:7000")
				time.Sleep(time.Minute)
				clone := start(t, "b", at(net, "clone"), boot(theirBoot), logs(&theirs))
				clone.AddPeer("a", "a:7000")
				time.Sleep(time.Minute)

				require.Equal(t, []string{"up 5"}, a.all("b"))
				require.Equal(t, []string{"up 1"}, b.all("a"))
				require.Empty(t, clone.all("a"))
				require.True(t, a.observed("b refused data-dir-copied", "boot 5", "copied"))
				require.True(t, clone.observed("a refused data-dir-copied", "boot 5", "copied"))
				for _, log := range []string{ours.String(), theirs.String()} {
					require.Contains(t, log, "[ERROR]")
					require.Contains(t, log, "data-dir-copied")
				}

				// After a link breaks the original is accepted again, and not the copy. The death
				// of the original does not make the copy the right one.
				b.resetLink("a")
				time.Sleep(time.Minute)
				require.Equal(t, 2, a.count("b", "up 5"))
				net.Kill("b")
				time.Sleep(time.Minute)
				require.Empty(t, clone.all("a"))
				require.NoError(t, a.Forget("b", time.Second))
				time.Sleep(time.Minute)
				require.Equal(t, []string{"up 1"}, clone.all("a"), "the operator has decided")
			})
		})
	}
}

// A process that is killed and started again is accepted at once, even by members that have not
// noticed its end yet: §6.6.
func TestARestartIsTakenInAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, _ := calledOn(t, net)
		time.Sleep(a.cfg.times.ping / 3)
		net.Kill("b")
		b2 := start(t, "b", onHost(net), boot(2))
		began := time.Now()
		b2.AddPeer("a", "a:7000")
		synctest.Wait()
		require.Zero(t, time.Since(began))
		require.Equal(t, "up 2", last(a.all("b"), 1)[0])
		require.Equal(t, 1, a.count("b", "died reincarnated"))
	})
}

// A later start is accepted when the link to the earlier one has been silent for the idle time-out.
// That proves nothing, since a paused process is silent, too: §6.9.
func TestALaterStartReplacesASilentProcessWithoutProof(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, b := calledOn(t, net)
		cut(net, "a", "b", memnet.Drop)
		clone := start(t, "b", at(net, "clone"), boot(2))
		clone.AddPeer("a", "a:7000")
		time.Sleep(a.cfg.times.idle - 2*a.cfg.times.ping)
		require.Equal(t, []string{"up 1"}, a.all("b"))
		time.Sleep(2*a.cfg.times.ping + a.cfg.times.redialMax + a.cfg.times.handshake)
		require.Equal(t, "up 2", last(a.all("b"), 1)[0])
		require.Zero(t, a.count("b", "died reincarnated"))
		cut(net, "a", "b", memnet.Pass)
		time.Sleep(time.Minute)
		require.Len(t, a.all("b"), 3, "the first does not come back beside the second")
		require.True(t, b.observed("a refused data-dir-copied", "boot 2"))
	})
}

// A pong that was in flight when the question was asked shows only that the process lived before.
func TestOnlyAPongToALaterPingAnswersAQuestion(t *testing.T) {
	q := question{after: 7, answered: make(chan struct{})}
	l := &link{questions: []question{q}}
	l.answer(q.after)
	require.Len(t, l.questions, 1)
	l.answer(q.after + 1)
	require.Empty(t, l.questions)
	<-q.answered
}

// An older build tells no process number. Then only the boot counter decides.
func TestAProcessWithoutANumberIsNoTwin(t *testing.T) {
	known := &connKey{process: 7}
	for process, twin := range map[uint64]bool{0: false, 7: false, 8: true} {
		require.Equal(t, twin, known.twin(process))
	}
	require.False(t, (&connKey{}).twin(7))
}

func TestForget(t *testing.T) {
	const quiet = 10 * time.Second
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, b := calledOn(t, net)
		require.NoError(t, a.Forget("nobody", quiet))
		require.ErrorContains(t, a.Forget("b", quiet),
			`the process of node "b" lives: there is a link to it, connected at b:`)
		b.resetLink("a")
		net.Kill("b") // nothing proves it: the reset came first
		time.Sleep(quiet / 2)
		require.ErrorContains(t, a.Forget("b", quiet),
			`the link to node "b" is down for 5s only; after 10s`)

		lost := start(t, "b", at(net, "new"), other)
		lost.AddPeer("a", "a:7000")
		time.Sleep(time.Minute)
		require.Zero(t, a.count("b", "up 1")-1)
		require.True(t, a.observed("b refused duplicate-name", "identity"))
		require.NoError(t, a.Forget("b", quiet))
		require.True(t, a.Links()[0].Forgotten)
		time.Sleep(time.Minute)
		require.Equal(t, 2, a.count("b", "up 1"))
		require.False(t, a.Links()[0].Forgotten)
		require.Zero(t, a.count("b", "died reincarnated"))
	})
}

// A process that was stopped may find the Hello of an ended process after it has linked the
// next one. That is a restart, and no copy: the advice about copies discards a data directory.
func TestARestartIsNotReportedAsACopy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*hello)
		end    func(net.Conn)
		reason Reason
	}{
		"killed":                 {func(*hello) {}, func(c net.Conn) { _ = c.Close() }, reasonVanished},
		"reset":                  {func(*hello) {}, reset, reasonVanished},
		"killed, and wiped":      {wiped, func(c net.Conn) { _ = c.Close() }, reasonVanished},
		"it lives":               {func(*hello) {}, func(net.Conn) {}, ReasonCopied},
		"it lives, on new files": {wiped, func(net.Conn) {}, ReasonDuplicateName},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := start(t, "a", votersAX)
			late, h := intrude(t, a), helloFrom(a)
			h.Boot = 2
			next := intrude(t, a)
			next.link(h)
			a.sees(t, "x", "up 2")
			h.Boot, h.Process = 1, 7
			c.change(h)
			require.NoError(t, late.send(frameHello, h))
			c.end(late.raw)
			a.counts(t, c.reason)
			found := a.observed("x refused data-dir-copied") || a.observed("x refused duplicate-name")
			require.Equal(t, c.reason != reasonVanished, found)
			require.Equal(t, 1, a.up())
		})
	}
}

func wiped(h *hello) { h.Identity = bytes.Clone(h.Identity); h.Identity[0]++ }

func votersAX(c *Config) { c.Facts = Facts{Voters: []string{"a", "x"}, VoterCount: 2} }

// The process that was dialed may end, and a later one may dial, before its Welcome is read.
func TestAWelcomeOfAnEndedProcessIsNotReportedAsACopy(t *testing.T) {
	plainOnly(t)
	for name, lives := range map[string]bool{"killed": false, "it lives": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := start(t, "a", votersAX)
			h := helloFrom(a)
			h.Boot = 2
			first := intrude(t, a)
			first.link(h)
			a.sees(t, "x", "up 2")
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				conn, err := l.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { _ = conn.Close() }) // a collector closes what nobody refers to
				s := &stranger{newHandshake(conn, patience), t}
				_ = s.expect(frameHello, &hello{})
				h.Boot, h.MinVersion = 1, minVersion
				_ = s.send(frameWelcome, h)
				if !lives {
					_ = conn.Close()
				}
			}()
			t.Cleanup(func() { _ = l.Close(); <-answered })
			reset(first.conn)
			a.sees(t, "x", "down reset")
			a.AddPeer("x", l.Addr().String())
			<-answered
			until(t, func() bool {
				return strings.Contains(a.Links()[0].LastErr, "handshake with x")
			})
			a.close(t) // it has told the observer all by then
			require.Equal(t, lives, a.observed("x refused data-dir-copied"))
		})
	}
}
