package netmesh

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/lsn"
)

// session is the number of the session with a peer.
func (n *node) session(peer nodeID) uint64 { return n.linkTo(peer).info.Session }

func beat(seq uint64) pair.Beat {
	return pair.Beat{Sequence: seq, SentAt: 7, Period: time.Second, Late: time.Millisecond,
		Revision: 3, Hash: math.MaxUint64}
}

func ackOf(seq uint64) pair.Ack { return pair.Ack{Sequence: seq, SentAt: 7, Revision: 3} }

// burst are changes as a follower makes them.
func burst(from, n int) (all []pair.Change) {
	for i := from; i < from+n; i++ {
		all = append(all, pair.Change{
			What: pair.Join, Revision: uint64(i), Group: fmt.Sprint("g", i%999), Term: lsn.MaxTerm,
		})
	}
	return all
}

// Both ends of a link have one number for its session, and no two links have the same.
func TestEachLinkIsASession(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, b := pairOn(t, net)
		seen := map[uint64]bool{0: true}
		for range 5 {
			number := a.session("b")
			require.Equal(t, number, b.session("a"))
			require.False(t, seen[number])
			seen[number] = true
			require.True(t, b.Beat("a", number, beat(1)))
			a.resetLink("b")
			time.Sleep(time.Minute)
			require.False(t, a.Change("b", number, burst(1, 1)), "it has ended")
			require.False(t, a.Beat("b", number, beat(1)))
			require.False(t, a.Ack("b", number, ackOf(1)))
		}
		require.False(t, a.Beat("nobody", a.session("b"), beat(1)))
	})
	require.Equal(t, uint64(0x1_0000_0002), session(1, 2))
	require.Zero(t, session(0, 2))
	require.Zero(t, session(1, 0))
}

// Changes neither replace each other nor are they left out, also if they take many frames.
func TestChangesKeepTheirOrder(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, edit func(*Config)) {
		virtual(t, func(t *testing.T, net *memnet.Network) {
			a, b := pairOn(t, net, edit)
			number, all := a.session("b"), burst(1, 30_000)
			require.True(t, a.Change("b", number, all[:1]))
			for i := 1; i < len(all); i += 97 {
				require.True(t, a.Change("b", number, all[i:min(i+97, len(all))]))
				if i%11 == 0 {
					synctest.Wait()
				}
			}
			disown := pair.Change{What: pair.Disown, Group: "g", Term: 1}
			require.True(t, a.Change("b", number, []pair.Change{disown}))
			synctest.Wait()
			want := []string{"up 1"}
			for _, c := range append(all, disown) {
				want = append(want, c.String())
			}
			require.Equal(t, want, b.all("a"))
		})
	})
}

// A link whose peer does not read ends when the limit is reached, and says why.
func TestWhoReadsNoChangesLosesItsLink(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		var log lines
		a, b := pairOn(t, net, func(c *Config) {
			c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Debug})
		})
		number, all := a.session("b"), burst(1, maxChanges/2)
		net.Filter("a", "b", memnet.Drop) // the writer blocks
		require.True(t, a.Change("b", number, burst(0, 1<<16)))
		synctest.Wait()
		a.Change("b", number, all)
		a.Change("b", number, all)
		a.Change("b", number, all[:1])
		synctest.Wait()
		net.Filter("a", "b", memnet.Pass)
		time.Sleep(time.Second)
		require.Contains(t, a.all("b"), "down local")
		require.Contains(t, b.all("a"), "down goodbye")
		require.True(t, log.have("1048576 changes of followed elections wait"))
	})
}

// Of beats and acks the newest waits.
func TestANewerBeatReplacesOneThatWaits(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, b := pairOn(t, net)
		number, l := a.session("b"), a.linkTo("b")
		l.pairs.mu.Lock()
		l.pairs.words = [wordKinds]word{{beat: beat(1)}, {kind: ackWord, ack: ackOf(1)}}
		l.pairs.mu.Unlock()
		require.True(t, a.Beat("b", number, beat(2)))
		require.True(t, a.Ack("b", number, ackOf(2)))
		synctest.Wait()
		require.Equal(t, []string{"up 1", "beat 2", "ack 2"}, b.all("a"))
	})
}

func TestChangesSurviveTheWire(t *testing.T) {
	all := []pair.Change{{What: pair.Observe, Revision: 1, Group: "g", Term: 2},
		{What: pair.Leave, Revision: math.MaxUint64, Group: string(make([]byte, MaxNameLength))}}
	n, frame, err := newEncoder().changes(all, maxFrame)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	got, err := newDecoder().changes(frame[frameHeader:])
	require.NoError(t, err)
	require.Equal(t, all, got)
}

// Builds before version 6 know no pairs: they are told nothing of them.
func TestOlderBuildsHaveNoSession(t *testing.T) {
	for name, edit := range map[string]func(*hello){
		"version 5":      func(h *hello) { h.MaxVersion = version5 },
		"without a half": func(h *hello) { h.MaxVersion = maxVersion },
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, "a", quiet)
			s, h := intrude(t, a), helloFrom(a)
			edit(h)
			s.link(h)
			a.sees(t, "x", "up 1")
			require.Zero(t, a.session("x"))
			require.False(t, a.Change("x", 0, burst(1, 1)))
			require.False(t, a.Beat("x", 0, beat(1)))
			require.False(t, a.Ack("x", 0, ackOf(1)))
			s.write(append([]byte{0, 0, 0, 57, byte(frameBeat)}, (&word{beat: beat(1)}).append(nil)...)...)
			s.says(1)
			a.sees(t, "x", "g HeartbeatAck 1")
			require.Equal(t, []string{"up 1", "g HeartbeatAck 1"}, a.all("x"))
			require.True(t, a.Send("x", "g", heartbeat(3)))
			for { // what comes first besides pings and facts
				kind, _, err := s.frames.next()
				require.NoError(t, err)
				if kind != framePing && kind != frameFacts {
					require.Equal(t, frameBatch, kind)
					break
				}
			}
		})
	}
}
