package netmesh

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// connections returns how many connections a node holds, with those that are about to end.
func (n *node) connections() int {
	n.Mesh.mu.RLock()
	defer n.Mesh.mu.RUnlock()
	return len(n.live)
}

// TestSimultaneousDialsLeaveOneConnection: both dial at the same moment, many
// times. No side may ever see its link go down.
func TestSimultaneousDialsLeaveOneConnection(t *testing.T) {
	for i := range 200 {
		a, b := start(t, "a"), start(t, "b")
		begin := make(chan struct{})
		go func() { <-begin; a.knows(b) }()
		go func() { <-begin; b.knows(a) }()
		close(begin)
		a.sees(t, "b", "up 1")
		b.sees(t, "a", "up 1")
		oneEach := func() bool {
			return a.connections() == 1 && b.connections() == 1 && a.Links()[0].Dialed != b.Links()[0].Dialed
		}
		require.Eventually(t, oneEach, patience, time.Millisecond, "both ends speak of one connection")
		require.True(t, a.Send("b", "g", ack(9)))
		require.True(t, b.Send("a", "g", ack(8)))
		b.sees(t, "a", "g HeartbeatAck 9")
		a.sees(t, "b", "g HeartbeatAck 8")
		for _, e := range append(a.all("b"), b.all("a")...) {
			require.NotContains(t, e, "down", "round %d: a %v, b %v", i, a.all("b"), b.all("a"))
		}
		require.Eventually(t, oneEach, patience, time.Millisecond, "and go on with it")
		a.close(t)
		b.close(t)
	}
}

// TestWhoWasUnknownIsDialedWithItsKey: a meets b by a dial of b, and then dials b before b has its
// link. What a says on its own connection shows that it is the process which b has linked
// meanwhile, so b goes on with that connection, and a does not lose it.
func TestWhoWasUnknownIsDialedWithItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const far = 100 * time.Millisecond
		var fromA atomic.Int64
		fromA.Store(int64(far))
		net := memnet.New()
		net.Delay(func(from, _ string) time.Duration {
			if from == "a" {
				return time.Duration(fromA.Load())
			}
			return far / 10
		}, nil)
		a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net))
		b.AddPeer("a", a.cfg.Bind)
		time.Sleep(far * 3 / 2) // a has said welcome
		fromA.Store(0)
		a.AddPeer("b", b.cfg.Bind)
		time.Sleep(far * 3 / 20) // b has, too
		fromA.Store(int64(far))
		time.Sleep(a.cfg.times.idle)
		require.Equal(t, []string{"up 1"}, a.all("b"))
		require.Equal(t, []string{"up 1", "up 1"}, b.all("a"))
		require.True(t, a.Links()[0].Dialed)
		require.Empty(t, a.offered)
	})
}

// The end of one handshake with a node without a record does not take the key of another one.
func TestTheKeyOfAnotherHandshakeIsKept(t *testing.T) {
	a := start(t, "a")
	c := connKey{node: "b", identity: uuid.New(), boot: 1}
	first, second := []byte("first"), []byte("second")
	require.Nil(t, a.offer(&c, &claimed{}, first))
	require.Nil(t, a.offer(&c, &claimed{}, second))
	a.answered("b", first)
	require.Equal(t, second, a.offered["b"])
	a.answered("b", second)
	require.Empty(t, a.offered)
}

func TestMeshOfManyHasOneConnectionPerPair(t *testing.T) {
	const size = 7
	var nodes []*node
	for i := range size {
		nodes = append(nodes, start(t, nodeName(i)))
	}
	for _, n := range nodes {
		n.knows(nodes...)
	}
	for _, n := range nodes {
		until(t, func() bool { return n.connections() == size-1 && n.up() == size-1 })
	}
	require.True(t, nodes[0].Send("*", "g", heartbeat(1)))
	for _, n := range nodes[1:] {
		n.sees(t, nodeName(0), "g LeaderHeartbeat 1")
	}
}

func nodeName(i int) (id nodeID) { return nodeID(fmt.Sprintf("n%d", i)) }

func (n *node) up() (count int) {
	for _, l := range n.Links() {
		if l.Up {
			count++
		}
	}
	return count
}

func TestReincarnation(t *testing.T) {
	virtual(t, func(t *testing.T, hosts *memnet.Network) {
		a := start(t, "a", onHost(hosts))
		h := helloFrom(a)
		var conn net.Conn // the newest
		dial := func(boot uint64, identity string) error {
			id := uuid.NewSHA1(uuid.Nil, []byte(identity))
			h.Boot, h.Identity = boot, id[:]
			h.Dial++
			g := intrudeOn(t, hosts, a)
			require.NoError(t, g.send(frameHello, h))
			if err := g.expect(frameWelcome, &hello{}); err != nil {
				return err
			}
			require.NoError(t, g.send(frameJoin, &ping{}))
			synctest.Wait()
			conn = g.raw
			return nil
		}
		end := func(end func(net.Conn)) { end(conn); synctest.Wait() }
		fin := func(c net.Conn) { require.NoError(t, closeWrite(c)) }
		require.NoError(t, dial(3, "x"))
		end(fin)
		require.NoError(t, dial(4, "x"))
		require.Equal(t, []string{"up 3", "down eof", "up 4"}, a.all("x"),
			"how a link ends proves nothing")

		require.Equal(t, ReasonCopied, reasonOf(dial(3, "x")), "an older process")
		require.Equal(t, ReasonDuplicateName, reasonOf(dial(9, "y")), "another directory proves nothing")
		require.Equal(t, reasonAlreadyConnected, reasonOf(dial(5, "x")), "while a silent link stands")
		require.Len(t, a.all("x"), 3)

		time.Sleep(time.Minute) // x is silent
		require.Equal(t, "down timeout", last(a.all("x"), 1)[0])
		require.NoError(t, dial(4, "x"))
		time.Sleep(time.Minute)
		require.NoError(t, dial(6, "x"))
		require.Equal(t, []string{"up 4", "down timeout", "up 6"}, last(a.all("x"), 3),
			"a time-out is no end")
		end(reset)
		require.NoError(t, dial(7, "x"))
		require.Equal(t, []string{"down reset", "up 7"}, last(a.all("x"), 2))

		a.RemovePeer("x")
		synctest.Wait()
		time.Sleep(time.Second)
		require.Equal(t, "down local", last(a.all("x"), 1)[0])
		require.NoError(t, dial(1, "y"), "what is removed is forgotten")
		require.Equal(t, "up 1", last(a.all("x"), 1)[0])
	})
}

// TestLastFramesOfAReplacedConnectionArrive, because the peer sent them before it knew that this
// end goes on with another connection.
func TestLastFramesOfAReplacedConnectionArrive(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a := start(t, "a", onHost(net))
		dial := func(h *hello) *stranger {
			s := intrudeOn(t, net, a)
			s.link(h)
			synctest.Wait()
			return s
		}
		h := helloFrom(a)
		first := dial(h)
		h.Dial = 2
		second := dial(h)
		first.says(1)
		synctest.Wait()
		require.Equal(t, []string{"up 1", "up 1", "g HeartbeatAck 1"}, a.all("x"))

		a.Disconnect("x", "enough")
		synctest.Wait()
		second.says(2)
		synctest.Wait()
		require.Zero(t, a.count("x", "g HeartbeatAck 2"), "what was ended on purpose says no more")
	})
}
