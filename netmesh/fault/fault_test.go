package fault_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/elector"
	beats "github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/netmesh"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a mesh that writes down what it is told about its only peer.
type node struct {
	*netmesh.Mesh
	mu      sync.Mutex
	session uint64 // of the newest link
	events  []string
}

func (n *node) note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, fmt.Sprintf(format, args...))
}

func (n *node) LinkUp(p netmesh.PeerInfo) {
	n.mu.Lock()
	n.session = p.Session
	n.mu.Unlock()
	n.note("up")
}
func (n *node) LinkDown(_ elector.NodeID, ev elector.Evidence) { n.note("down %s", ev) }
func (n *node) Died(elector.NodeID, elector.Proof)             { n.note("died") }
func (n *node) Noted(elector.NodeID, netmesh.Note)             { n.note("note") }
func (*node) Changed(elector.NodeID, uint64, []beats.Change)   {}
func (n *node) Beaten(_ elector.NodeID, _ uint64, b beats.Beat, _ time.Duration) {
	n.note("beat %d", b.Sequence)
}
func (*node) Acked(elector.NodeID, uint64, beats.Ack) {}
func (n *node) Received(_ elector.NodeID, _ string, m elector.Message) {
	n.note("got %d", m.Sequence)
}

func (n *node) told() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.events)
}

// pair starts a, with a fault layer, and b on a network in memory, of which dialer dials.
func pair(t *testing.T, dialer string) (a, b *node, faults *fault.Faults, hosts *memnet.Network) {
	hosts, faults = memnet.New(), fault.New()
	nodes := map[string]*node{}
	for _, name := range []string{"a", "b"} {
		cfg := netmesh.Config{
			Cluster: "test", Node: elector.NodeID(name), Identity: uuid.NewSHA1(uuid.Nil, []byte(name)),
			Boot: 1, Bind: name + ":7000", Network: hosts.Host(name),
		}
		if name == "a" {
			cfg.Faults = faults
		}
		n := &node{}
		var err error
		n.Mesh, err = netmesh.Listen(cfg, n)
		require.NoError(t, err)
		t.Cleanup(func() { n.end(t) })
		nodes[name] = n
	}
	peer := map[string]string{"a": "b", "b": "a"}[dialer]
	nodes[dialer].AddPeer(elector.NodeID(peer), peer+":7000")
	time.Sleep(1500 * time.Millisecond)
	return nodes["a"], nodes["b"], faults, hosts
}

func (n *node) end(t *testing.T) { require.NoError(t, n.Close(context.Background())) }

const idle = 3 * time.Second // the mesh's idle time-out

func TestOneWayCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, faults, _ := pair(t, "a")
		faults.Cut("b", fault.Out)
		require.True(t, a.Send("b", "g", elector.Message{Kind: elector.LeaderHeartbeat, Sequence: 1}))
		require.True(t, b.Send("a", "g", elector.Message{Kind: elector.HeartbeatAck, Sequence: 2}))
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"up"}, b.told(), "b hears nothing")
		require.Equal(t, []string{"up", "got 2"}, a.told(), "a hears b")
		require.Positive(t, a.Links()[0].Loss)

		time.Sleep(idle)
		require.Equal(t, []string{"up", "down timeout"}, b.told())
		time.Sleep(time.Minute)
		require.Len(t, b.told(), 2, "no handshake comes through")
		faults.Heal("b")
		time.Sleep(10 * time.Second)
		require.Equal(t, "up", a.told()[len(a.told())-1])
		require.Equal(t, []string{"up", "down timeout", "up"}, b.told())
	})
}

// Who misses an answer pings again soon, so that a link on which nobody speaks outlives the loss of
// many pings and answers.
func TestLossEndsNoLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, faults, _ := pair(t, "a")
		faults.Loss("b", 0.4)
		time.Sleep(time.Hour)
		require.Equal(t, []string{"up"}, a.told())
		require.Equal(t, []string{"up"}, b.told())
		faults.Loss("b", 1)
		time.Sleep(time.Second + idle + time.Millisecond)
		require.Equal(t, []string{"up", "down timeout"}, b.told()[:2])
	})
}

// TestFaultsHoldForDatagrams, which would go round a cut otherwise. The stream does not carry them
// after the first one.
func TestFaultsHoldForDatagrams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, faults, _ := pair(t, "a")
		seq := uint64(0)
		say := func(from, to *node, peer elector.NodeID) int {
			seq++
			told := len(to.told())
			from.mu.Lock()
			session := from.session
			from.mu.Unlock()
			require.True(t, from.Beat(peer, session, beats.Beat{Sequence: seq, SentAt: 1}))
			synctest.Wait()
			return len(to.told()) - told
		}
		answer := func() {
			require.Equal(t, 1, say(a, b, "b"))
			require.Equal(t, 1, say(b, a, "a"))
		}
		answer()
		answer()
		require.Equal(t, netmesh.BeatsDatagrams, a.Links()[0].Beats)
		require.Equal(t, netmesh.BeatsDatagrams, b.Links()[0].Beats)

		faults.Cut("b", fault.Out)
		require.Zero(t, say(a, b, "b"))
		require.Equal(t, 1, say(b, a, "a"), "the other direction")
		faults.Heal("b")
		answer()
		faults.Cut(elector.AllMembers, fault.In)
		require.Zero(t, say(b, a, "a"))
		require.Equal(t, 1, say(a, b, "b"))
		faults.HealAll()
		answer()
		faults.Loss("b", 1)
		require.Zero(t, say(a, b, "b"))
		faults.Heal("b")
		answer()

		faults.Delay("b", 40*time.Millisecond, 0)
		require.Zero(t, say(a, b, "b"))
		time.Sleep(39 * time.Millisecond)
		told := len(b.told())
		time.Sleep(2 * time.Millisecond)
		require.Len(t, b.told(), told+1)
	})
}

func TestWhatComesInDuringACutIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, faults, _ := pair(t, "b")
		faults.Cut(elector.AllMembers, fault.In)
		require.True(t, b.Send("a", "g", elector.Message{Kind: elector.LeaderHeartbeat, Sequence: 1}))
		time.Sleep(time.Second)
		faults.HealAll()
		require.True(t, b.Send("a", "g", elector.Message{Kind: elector.LeaderHeartbeat, Sequence: 2}))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"up", "got 2"}, a.told())
		require.Equal(t, []string{"up"}, b.told())
	})
}

// TestGoodbyeLostIsNoDeath: a living process whose goodbye cannot get out must
// not look dead.
func TestGoodbyeLostIsNoDeath(t *testing.T) {
	for _, dialer := range []string{"a", "b"} {
		synctest.Test(t, func(t *testing.T) {
			a, b, faults, _ := pair(t, dialer)
			b.AddPeer("a", "a:7000")
			faults.Cut("b", fault.Out)
			a.end(t)
			time.Sleep(time.Minute)
			require.Equal(t, []string{"up", "down reset"}, b.told())
		})
	}
}

// TestDeathBehindACutShowsWhenItIsHealed, and not before.
func TestDeathBehindACutShowsWhenItIsHealed(t *testing.T) {
	for _, dialer := range []string{"a", "b"} {
		synctest.Test(t, func(t *testing.T) {
			a, _, faults, hosts := pair(t, dialer)
			a.AddPeer("b", "b:7000")
			faults.Cut("b", fault.Both)
			hosts.Kill("b")
			time.Sleep(time.Minute)
			require.Equal(t, []string{"up", "down timeout"}, a.told())
			faults.HealAll()
			time.Sleep(2 * time.Second)
			require.Equal(t, []string{"up", "down timeout", "died"}, a.told())
		})
	}
}

func TestDelayAndLossAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, faults, _ := pair(t, "a")
		faults.Delay("b", 40*time.Millisecond, 0)
		time.Sleep(time.Minute)
		require.InDelta(t, 0.040, a.Links()[0].RTT.Seconds(), 0.001)
		require.Zero(t, a.Links()[0].Loss)
		faults.Delay("b", 40*time.Millisecond, 20*time.Millisecond)
		for seq := range uint64(20) {
			a.Send("b", "g", elector.Message{Kind: elector.LeaderHeartbeat, Sequence: seq})
		}

		faults.Delay("b", 40*time.Millisecond, 0)
		faults.Loss(elector.AllMembers, 0.5)
		require.Equal(t, "*: loss 0.5; b: delay 40ms+0s", faults.String())
		for range 10 { // it may well end for silence meanwhile
			time.Sleep(time.Second)
			if a.Links()[0].Loss > 0 {
				return
			}
		}
		t.Error("nothing was lost")
	})
}

// TestLateFramesLeaveBeforeTheGoodbye, unless they are late for long.
func TestLateFramesLeaveBeforeTheGoodbye(t *testing.T) {
	for delay, want := range map[time.Duration][]string{
		100 * time.Millisecond: {"up", "got 7", "down goodbye"},
		2 * time.Second:        {"up", "down reset"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b, faults, _ := pair(t, "a")
			faults.Delay("b", delay, 0)
			a.Send("b", "g", elector.Message{Kind: elector.LeadershipCession, Sequence: 7})
			a.end(t)
			time.Sleep(time.Minute)
			require.Equal(t, want, b.told(), delay)
		})
	}
}

func TestReset(t *testing.T) {
	for _, dialer := range []string{"a", "b"} {
		synctest.Test(t, func(t *testing.T) {
			a, b, faults, _ := pair(t, dialer)
			faults.Reset("nobody")
			faults.Reset("b")
			time.Sleep(10 * time.Second)
			for _, n := range []*node{a, b} { // a new connection may replace a link that just broke
				told := slices.DeleteFunc(n.told(), func(e string) bool { return e == "down reset" })
				require.Equal(t, []string{"up", "up"}, told)
			}
		})
	}
}

func TestFaultsAreListedAndHealed(t *testing.T) {
	f := fault.New()
	require.Equal(t, "none", f.String())
	f.Cut("b", fault.In)
	require.False(t, f.Blocks("b"))
	f.Cut("b", fault.Out)
	f.Delay("c", time.Second, -1)
	f.Loss("d", 7)
	require.Equal(t, "b: cut both; c: delay 1s+0s; d: loss 1", f.String())
	require.True(t, f.Blocks("b"))
	require.True(t, f.Cuts("b"))
	require.False(t, f.Cuts("c"))
	f.Heal("b")
	f.Delay("c", 0, 0)
	f.Heal("d")
	require.Equal(t, "none", f.String())
	f.Cut(elector.AllMembers, fault.Out)
	require.True(t, f.Cuts("anybody"))
	f.HealAll()
	require.False(t, f.Cuts("anybody"))
}
