package netmesh

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/memnet"
)

// rally lets a send a beat to b, and b answer it, n times, one a period.
func rally(t *testing.T, a, b *node, from uint64, n int) {
	t.Helper()
	for i := range uint64(n) {
		require.True(t, a.Beat(b.cfg.Node, a.session(b.cfg.Node), beat(from+i)))
		synctest.Wait()
		require.True(t, b.Ack(a.cfg.Node, b.session(a.cfg.Node), ackOf(from+i)))
		time.Sleep(100 * time.Millisecond)
	}
}

// heard are the events of a kind, such as "beat %d", from one number on.
func events(kind string, from, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(kind, from+i))
	}
	return all
}

// status is that of the link to the only peer.
func (n *node) status() LinkStatus { return n.Links()[0] }

// onlyLink is the link to the only peer.
func (n *node) onlyLink() *link { return n.linkTo(n.status().Peer.Node) }

// datagrams is how many have left on it.
func (n *node) datagrams() uint64 {
	l := n.onlyLink()
	l.pairs.mu.Lock()
	defer l.pairs.mu.Unlock()
	return l.pairs.path.sent
}

// dropped is how many datagrams did not count.
func (n *node) dropped() (all uint64) {
	for _, count := range n.DroppedDatagrams() {
		all += count
	}
	return all
}

// frames is how many frames a node has sent to its only peer.
func frames(n *node) uint64 { return n.status().FramesOut }

// Once datagrams are answered nothing goes on the stream.
func TestBeatsGoByDatagrams(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, edit func(*Config)) {
		virtual(t, func(t *testing.T, net *memnet.Network) {
			a, b := pairOn(t, net, edit, quiet)
			require.Equal(t, BeatsNone, a.status().Beats)
			require.Contains(t, a.status().BeatsWhy, "no election needs them")
			before := frames(a)
			rally(t, a, b, 1, 1)
			require.Equal(t, before+1, frames(a), "the first one on the stream, too")
			rally(t, a, b, 2, 1)
			before, back := frames(a), frames(b)
			rally(t, a, b, 3, 20)
			require.Equal(t, before, frames(a))
			require.Equal(t, back, frames(b))
			require.Equal(t, append([]string{"up 1"}, events("beat %d", 1, 22)...), b.all("a"), "each once")
			require.Equal(t, append([]string{"up 1"}, events("ack %d", 1, 22)...), a.all("b"))
			for _, n := range []*node{a, b} {
				s := n.status()
				require.Equal(t, BeatsDatagrams, s.Beats)
				require.Empty(t, s.BeatsWhy)
				require.Equal(t, []uint64{22, 22}, []uint64{n.datagrams(), n.onlyLink().inbox.came.Load()})
				require.Zero(t, n.dropped())
			}
		})
	})
}

// Where datagrams are lost, in one direction or in both, beats go on the stream, and by datagrams
// again when the cause is gone.
func TestBeatsFallBackToTheStream(t *testing.T) {
	both := func(string, string) bool { return true }
	there := func(from, _ string) bool { return from == "a" }
	for name, lost := range map[string]func(from, to string) bool{"both": both, "there": there} {
		for _, early := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, early %t", name, early), func(t *testing.T) {
				virtual(t, func(t *testing.T, net *memnet.Network) {
					a, b := pairOn(t, net)
					seq, number := 1, a.session("b")
					say := func(n int) { rally(t, a, b, uint64(seq), n); seq += n }
					if !early {
						say(10)
					}
					net.Lose(lost)
					missed := len(b.all("a"))
					say(mostUnanswered)
					if early {
						require.Len(t, b.all("a"), missed+mostUnanswered, "the stream had them, too")
					}
					say(1)
					came := len(b.all("a"))
					say(20)
					require.Len(t, b.all("a"), came+20, "all arrive")
					require.Equal(t, BeatsStream, a.status().Beats)
					require.Equal(t, "no answer to datagrams: is UDP port 7000 open in firewalls?",
						a.status().BeatsWhy)
					sent := a.datagrams()
					say(50)
					require.InDelta(t, sent+5, a.datagrams(), 1, "one a second")
					net.Lose(nil)
					say(20)
					require.Equal(t, BeatsDatagrams, a.status().Beats)
					require.Equal(t, BeatsDatagrams, b.status().Beats)
					before, most := frames(a), uint64(5) // pings
					say(20)
					require.LessOrEqual(t, frames(a), before+most)
					require.Equal(t, events("beat %d", seq-20, 20), last(b.all("a"), 20))
					require.Equal(t, number, a.session("b"), "the link stayed")
				})
			})
		}
	}
}

// A network without datagrams has beats on the stream.
func TestANetworkWithoutDatagrams(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a := start(t, "a", onHost(net), func(c *Config) { c.Network = struct{ Network }{c.Network} })
		taken, err := net.Host("b").ListenPacket("b:7000")
		require.NoError(t, err)
		b := start(t, "b", onHost(net))
		require.NoError(t, taken.Close())
		a.AddPeer("b", "b:7000")
		synctest.Wait()
		rally(t, a, b, 1, 10)
		require.Len(t, b.all("a"), 11)
		require.Len(t, a.all("b"), 11)
		require.Equal(t, BeatsStream, a.status().Beats)
		require.Equal(t, "the network of the program has no datagrams", a.status().BeatsWhy)
		require.Contains(t, b.status().BeatsWhy, "cannot listen for datagrams at b:7000")
	})
}

// tapPackets is a network on which a test reads datagrams along.
type tapPackets struct {
	*memnet.Host
	mu   sync.Mutex
	sent [][]byte
}

type tappedPackets struct {
	net.PacketConn
	by *tapPackets
}

func (n *tapPackets) ListenPacket(addr string) (net.PacketConn, error) {
	c, err := n.Host.ListenPacket(addr)
	return tappedPackets{c, n}, err
}

func (c tappedPackets) WriteTo(b []byte, to net.Addr) (int, error) {
	c.by.mu.Lock()
	defer c.by.mu.Unlock()
	c.by.sent = append(c.by.sent, bytes.Clone(b))
	return c.PacketConn.WriteTo(b, to)
}

// Datagrams of strangers, and copies, do nothing except to be counted.
func TestHostileDatagrams(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, edit func(*Config)) {
		virtual(t, func(t *testing.T, net *memnet.Network) {
			tap := &tapPackets{Host: net.Host("a")}
			a := start(t, "a", onHost(net), edit, func(c *Config) { c.Network = tap })
			b := start(t, "b", onHost(net), edit)
			a.AddPeer("b", "b:7000")
			synctest.Wait()
			rally(t, a, b, 1, 10)
			told, sent := b.all("a"), tap.sent
			newest := sent[len(sent)-1]
			x, err := net.Host("x").ListenPacket("x:1")
			require.NoError(t, err)
			spoil := func(change func([]byte)) []byte {
				packet := bytes.Clone(newest)
				change(packet)
				return packet
			}
			later := func(p []byte) { binary.BigEndian.PutUint64(p[sequenceAt:], 99) }
			asAck := spoil(func(p []byte) { later(p); p[1] = byte(ackWord) })
			for name, tc := range map[string]struct {
				packet []byte
				cause  string
			}{
				"empty":       {nil, "malformed"},
				"text":        {[]byte("GET / HTTP/1.1"), "malformed"},
				"head only":   {newest[:datagramHead], "malformed"},
				"truncated":   {newest[:len(newest)-1], "malformed"},
				"oversized":   {append(bytes.Clone(newest), 0), "malformed"},
				"huge":        {make([]byte, 60000), "malformed"},
				"form 2":      {spoil(func(p []byte) { p[0]++ }), "malformed"},
				"kind 9":      {spoil(func(p []byte) { p[1] = 9 }), "malformed"},
				"no session":  {spoil(func(p []byte) { clear(p[2:sequenceAt]) }), "unknown-session"},
				"session + 1": {spoil(func(p []byte) { p[9]++ }), "unknown-session"},
				"copy":        {newest, "old"},
				"old copy":    {sent[3], "old"},
				"later":       {spoil(later), "forged"},
				"no seal":     {spoil(func(p []byte) { later(p); clear(p[len(p)-sealSize:]) }), "forged"},
				"as an ack":   {asAck[:sequenceAt+wordSizes[ackWord]+sealSize], "forged"},
			} {
				want := b.DroppedDatagrams()
				post(t, x, "b:7000", tc.packet)
				want[tc.cause]++
				require.Equal(t, want, b.DroppedDatagrams(), name)
			}
			require.Equal(t, told, b.all("a"), "the handler heard nothing")

			rally(t, a, b, 11, 3)
			require.Equal(t, events("beat %d", 11, 3), last(b.all("a"), 3))
			before := b.DroppedDatagrams()
			a.resetLink("b")
			time.Sleep(time.Minute)
			post(t, x, "b:7000", tap.sent[len(tap.sent)-1])
			before["unknown-session"]++
			require.Equal(t, before, b.DroppedDatagrams(), "its session is over")
			require.Equal(t, 2, len(b.socket.links)+len(a.socket.links), "sessions that ended are forgotten")
		})
	})
}

func post(t *testing.T, from net.PacketConn, to string, packet []byte) {
	t.Helper()
	_, err := from.WriteTo(packet, &textPoster{addr: to})
	require.NoError(t, err)
	synctest.Wait()
}

// The nonce of a datagram is its sequence, so there are no two with one sequence.
func TestASequenceIsSealedOnce(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		tap := &tapPackets{Host: net.Host("a")}
		a := start(t, "a", onHost(net), func(c *Config) { c.Network = tap })
		start(t, "b", onHost(net))
		a.AddPeer("b", "b:7000")
		synctest.Wait()
		for _, seq := range []uint64{1, 1, 2, 4, 4, 3, 5} {
			a.Beat("b", a.session("b"), beat(seq))
			a.Ack("b", a.session("b"), ackOf(seq))
			synctest.Wait()
		}
		var sealed []uint64
		for _, packet := range tap.sent {
			kind, _, seq, ok := readHead(packet)
			require.True(t, ok)
			if kind == ackWord {
				sealed = append(sealed, seq)
			}
		}
		require.Len(t, tap.sent, 2*len(sealed))
		require.IsIncreasing(t, sealed)
	})
}

// What waits for the handler when the link ends is not handed over.
func TestNoBeatComesBehindTheEndOfItsLink(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, b := pairOn(t, net)
		rally(t, a, b, 1, 5)
		callbacks := b.linkTo("a").p.callbacks
		callbacks.lock()
		a.Beat("b", a.session("b"), beat(6))
		synctest.Wait()
		b.Disconnect("a", "enough")
		synctest.Wait()
		callbacks.unlock()
		time.Sleep(time.Minute)
		require.Zero(t, b.count("a", "beat 6"))
		require.NotZero(t, b.count("a", "down local"))
	})
}

// A flood disturbs no link, and no answer to it is sent.
func TestAFloodOfDatagramsDisturbsNoLink(t *testing.T) {
	a, b := start(t, "a"), start(t, "b")
	a.knows(b)
	b.sees(t, "a", "up 1")
	x, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer x.Close()
	to, err := net.ResolveUDPAddr("udp", b.Addr().String())
	require.NoError(t, err)
	session, garbage := b.session("a"), make([]byte, maxDatagram)
	garbage[0] = datagramForm
	seq := uint64(0)
	for i := range 50_000 {
		if i%2 == 0 { // a real session, and a wrong proof
			binary.BigEndian.PutUint64(garbage[2:], session)
			binary.BigEndian.PutUint64(garbage[10:], uint64(i)+1e6)
		} else {
			binary.BigEndian.PutUint64(garbage[2:], uint64(i))
		}
		_, _ = x.WriteTo(garbage, to)
		if i%5000 == 0 {
			seq++
			require.True(t, a.Beat("b", session, beat(seq)))
			require.True(t, b.Ack("a", session, ackOf(seq)))
		}
	}
	until(t, func() bool {
		seq++
		return a.Beat("b", session, beat(seq)) && b.Ack("a", session, ackOf(seq)) &&
			b.status().Beats == BeatsDatagrams && b.DroppedDatagrams()["forged"] > 0 &&
			b.DroppedDatagrams()["unknown-session"] > 0
	})
	require.Equal(t, "up 1", b.all("a")[0])
	require.Zero(t, b.count("a", "down timeout"))
	require.NoError(t, x.SetReadDeadline(time.Now()))
	_, _, err = x.ReadFrom(garbage)
	require.Error(t, err, "nobody answers")
}

// Beats over the kernel's UDP, at IPv4 and IPv6, with names and without.
func TestBeatsOverUDP(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, edit func(*Config)) {
		for _, at := range []string{"127.0.0.1:0", "[::1]:0", ":0", "localhost:0"} {
			t.Run(at, func(t *testing.T) {
				if l, err := net.Listen("tcp", at); err != nil {
					t.Skip("this machine lacks the address:", err)
				} else {
					_ = l.Close()
				}
				bind := func(c *Config) { c.Bind = at }
				a, b := start(t, "a", edit, bind), start(t, "b", edit, bind)
				_, port, _ := net.SplitHostPort(b.Addr().String())
				host, _, _ := net.SplitHostPort(at)
				a.AddPeer("b", net.JoinHostPort(host, port))
				b.sees(t, "a", "up 1")
				a.sees(t, "b", "up 1")
				seq := uint64(0)
				until(t, func() bool {
					seq++
					return a.Beat("b", a.session("b"), beat(seq)) && b.Ack("a", b.session("a"), ackOf(seq)) &&
						a.status().Beats == BeatsDatagrams && b.status().Beats == BeatsDatagrams
				})
				b.sees(t, "a", fmt.Sprintf("beat %d", seq))
				a.sees(t, "b", fmt.Sprintf("ack %d", seq))
			})
		}
	})
}

// A handler that is busy with one peer costs that peer all beats except the newest, and no other
// peer any. The age of a beat counts from when it came.
func TestABusyHandlerHoldsUpItsPeerOnly(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		r := &recorder{release: make(chan struct{})}
		a, c := start(t, "a", onHost(net)), start(t, "c", onHost(net))
		b := startWith(t, "b", r, onHost(net))
		for _, n := range []*node{a, c} {
			n.AddPeer("b", "b:7000")
			synctest.Wait()
			rally(t, n, b, 1, 5)
		}
		r.slow = "a"
		for seq := range uint64(5) {
			for _, n := range []*node{a, c} {
				n.Beat("b", n.session("b"), beat(6+seq))
				synctest.Wait()
				b.Ack(n.cfg.Node, n.session("b"), ackOf(6+seq))
			}
			time.Sleep(10 * time.Millisecond)
		}
		require.True(t, r.held.Load())
		require.Equal(t, events("beat %d", 1, 10), b.all("c")[1:])
		close(r.release)
		synctest.Wait()
		require.Equal(t, append(events("beat %d", 1, 6), "beat 10"), b.all("a")[1:])
		require.True(t, b.observed("beat 10 took 10ms"), "since it came")
	})
}

// Acks count in any order, beats only if none has overtaken them.
func TestDatagramsInAnyOrder(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		var delay atomic.Int64
		net.Delay(func(string, string) time.Duration { return time.Duration(delay.Load()) },
			func() time.Duration { return 0 })
		a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net))
		a.AddPeer("b", "b:7000")
		time.Sleep(time.Second)
		rally(t, a, b, 1, 5)
		for _, seq := range []uint64{6, 7} {
			delay.Store(int64(time.Second) / int64(seq-5))
			a.Beat("b", a.session("b"), beat(seq))
			a.Ack("b", a.session("b"), ackOf(seq))
		}
		time.Sleep(2 * time.Second)
		told := b.all("a")
		slices.Sort(told)
		require.Equal(t, []string{"ack 6", "ack 7", "beat 1", "beat 2", "beat 3", "beat 4", "beat 5",
			"beat 7", "up 1"}, told)
		require.Zero(t, b.dropped())
	})
}

// deaf is a connection whose writes get lost from some moment on, although it stands.
type deaf struct {
	net.Conn
	lost *atomic.Bool
}

func (c deaf) Write(b []byte) (int, error) {
	if c.lost.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Beats say nothing about the stream: it ends when its pings are not answered (§16.9), whichever of
// its directions is dead. Who needs it learns that within the idle time-out, and the others with
// the next ping. Neither end takes part in the session after that.
func TestBeatsDoNotVouchForTheStream(t *testing.T) {
	for _, dead := range []string{"a", "b", "ab"} {
		for _, says := range []bool{true, false} {
			for name, edit := range map[string]func(*Config){
				"fast": fast, "slow": func(c *Config) { c.times = times{} },
			} {
				t.Run(fmt.Sprintf("%s, dead %s, says %t", name, dead, says), func(t *testing.T) {
					virtual(t, func(t *testing.T, hosts *memnet.Network) {
						aloneDead(t, hosts, dead, says, edit)
					})
				})
			}
		}
	}
}

// aloneDead lets the stream from some nodes die while datagrams go on.
func aloneDead(t *testing.T, hosts *memnet.Network, dead string, says bool, edit func(*Config)) {
	var lost [2]atomic.Bool
	var both [2]*node
	for i, id := range []nodeID{"a", "b"} {
		host := hosts.Host(string(id))
		dies := func(c net.Conn) net.Conn { return deaf{c, &lost[i]} }
		both[i] = start(t, id, onHost(hosts), edit, func(c *Config) {
			c.Network = struct {
				Network
				PacketNetwork
			}{&through{Network: host, wrap: dies}, host}
		})
	}
	a, b := both[0], both[1]
	a.AddPeer("b", "b:7000")
	time.Sleep(10 * time.Second)
	rally(t, a, b, 1, 10)
	require.Equal(t, BeatsDatagrams, a.status().Beats)
	limit := a.cfg.derivedTimes().idle + time.Millisecond
	for i, n := range both {
		other := both[1-i].cfg.Node
		if lost[i].Store(strings.Contains(dead, string(n.cfg.Node))); !says {
			continue
		}
		require.True(t, n.Send(other, "g", ack(1)))
	}
	if !says || dead != "ab" { // who hears the other end's pings leaves it to that one
		limit += restPing + a.cfg.derivedTimes().ping/againIn
	}
	began, number := time.Now(), a.session("b")
	for seq := uint64(11); a.linkTo("b") != nil || b.linkTo("a") != nil; seq++ {
		require.Less(t, time.Since(began), limit)
		a.Beat("b", number, beat(seq))
		b.Beat("a", number, beat(seq))
		time.Sleep(time.Millisecond)
	}
	require.Contains(t, append(a.all("b"), b.all("a")...), "down timeout")
	for _, told := range [][]string{a.all("b"), b.all("a")} {
		require.Contains(t, told, "beat 15", "they came all the time")
		require.Contains(t, last(told, 1)[0], "down")
	}
}

// Nothing that is lost, copied or reordered makes a beat or an ack count twice, or one that was
// never sent count at all.
func TestDatagramsUnderRandomFaults(t *testing.T) {
	for seed := range uint64(20) {
		virtual(t, func(t *testing.T, net *memnet.Network) {
			random, mu := rand.New(rand.NewPCG(seed, 1)), sync.Mutex{}
			dice := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
			net.Delay(func(string, string) time.Duration {
				return time.Duration(dice(300)) * time.Millisecond
			}, func() time.Duration { return 0 })
			a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net))
			a.AddPeer("b", "b:7000")
			time.Sleep(5 * time.Second)
			share := dice(100)
			net.Lose(func(string, string) bool { return dice(100) < share })
			rally(t, a, b, 1, 100)
			net.Lose(nil)
			rally(t, a, b, 101, 50)
			time.Sleep(time.Minute)
			for n, kind := range map[*node]string{a: "ack %d", b: "beat %d"} {
				told := n.all(map[*node]nodeID{a: "b", b: "a"}[n])[1:]
				require.Subset(t, events(kind, 1, 150), told, "seed %d", seed)
				slices.Sort(told)
				require.Equal(t, len(told), len(slices.Compact(told)), "seed %d", seed)
				require.Greater(t, len(told), 40, "seed %d", seed)
			}
			require.Equal(t, BeatsDatagrams, a.status().Beats, "seed %d", seed)
		})
	}
}
