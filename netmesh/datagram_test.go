package netmesh

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// packetOf is the datagram of a beat, or of an ack.
func packetOf(s *seals, kind datagramKind, session, seq uint64, says []byte) []byte {
	head := []byte{datagramForm, byte(kind)}
	head = binary.BigEndian.AppendUint64(head, session)
	head = binary.BigEndian.AppendUint64(head, seq)
	return s.seal(append(head, says...))
}

func beatPacket(s *seals, session, seq uint64) []byte {
	b := beat(seq)
	w := wireBeatOf(&b)
	return packetOf(s, beatDatagram, session, seq, w.body(nil))
}

func ackPacket(s *seals, session, seq uint64) []byte {
	a := ackOf(seq)
	w := wireAckOf(&a)
	return packetOf(s, ackDatagram, session, seq, w.body(nil))
}

// A datagram is checked by the key of its session, direction and kind, and all of it is.
func TestADatagramIsProvenByItsOwnKey(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, edit func(*Config)) {
		virtual(t, func(t *testing.T, net *memnet.Network) {
			a, b := pairOn(t, net, edit)
			session := a.session("b")
			out, in := a.linkTo("b").pairs.seals, b.linkTo("a").inbox.seals
			back, home := b.linkTo("a").pairs.seals, a.linkTo("b").inbox.seals
			opens := func(s seals, packet []byte) bool { return s.open(bytes.Clone(packet)) != nil }
			packets := map[datagramKind][]byte{
				beatDatagram: beatPacket(&out[beatDatagram], session, 5),
				ackDatagram:  ackPacket(&out[ackDatagram], session, 5),
			}
			for kind, packet := range packets {
				require.LessOrEqual(t, len(packet), 200)
				require.Len(t, packet, datagramSizes[kind])
				require.True(t, opens(in[kind], packet))
				require.False(t, opens(in[1-kind], packet), "a beat is no ack")
				require.False(t, opens(home[kind], packet), "it may be sent back")
				require.False(t, opens(back[kind], packet))
				require.True(t, opens(home[kind], beatPacket(&back[kind], session, 5)))
				for i := range packet {
					if spoilt := bytes.Clone(packet); a.cfg.TLS != nil || i >= len(packet)-proofSize {
						spoilt[i]++
						require.False(t, opens(in[kind], spoilt), "byte %d", i)
					}
				}
			}
			if a.cfg.TLS != nil {
				says := packets[beatDatagram][datagramHead:]
				require.False(t, bytes.Contains(says, bytes.Repeat([]byte{0xff}, 8)), "the hash is legible")
			}
			a.resetLink("b")
			time.Sleep(time.Minute)
			next := b.linkTo("a").inbox.seals
			require.False(t, opens(next[beatDatagram], packets[beatDatagram]), "another session")
		})
	})
}

// What a beat and an ack say arrives by a datagram, and is checked as what comes on the stream.
func TestDatagramsSayAll(t *testing.T) {
	b := pair.Beat{Sequence: math.MaxUint64, SentAt: math.MaxInt64, Period: time.Hour,
		Late: 3 * time.Microsecond, Revision: math.MaxUint64, Hash: 7}
	a := pair.Ack{Sequence: 1, SentAt: 2, Revision: 3, Wanted: 4 * time.Second}
	wb, wa := wireBeatOf(&b), wireAckOf(&a)
	wb.Datagrams, wa.Datagrams = 8, 9
	require.Equal(t, wb, readBeat(b.Sequence, wb.body(nil)))
	require.Equal(t, wa, readAck(a.Sequence, wa.body(nil)))

	i := &inbox{some: newWaker()}
	wb.SentAt, wa.Wanted = 0, -1
	for kind, says := range [][]byte{wb.body(nil), wa.body(nil)} {
		packet := packetOf(&seals{}, datagramKind(kind), 1, 1, says)
		c, ok := i.take(datagramKind(kind), 1, packet, time.Now())
		require.False(t, ok)
		require.Equal(t, causeMalformed, c)
	}
}

func TestWindow(t *testing.T) {
	for name, tc := range map[string]struct {
		come     []uint64
		old, new []uint64
	}{
		"empty":      {nil, nil, []uint64{1, 64, math.MaxUint64}},
		"copies":     {[]uint64{1, 2, 3}, []uint64{1, 2, 3}, []uint64{4}},
		"reordered":  {[]uint64{5, 3}, []uint64{5, 3}, []uint64{1, 2, 4, 6}},
		"too old":    {[]uint64{100}, []uint64{100, 36, 1}, []uint64{37, 99, 101}},
		"far ahead":  {[]uint64{1, 2, 1000}, []uint64{1, 2, 936, 1000}, []uint64{937, 999, 1001}},
		"by 64":      {[]uint64{1, 65}, []uint64{1, 65}, []uint64{2, 64, 66}},
		"to the end": {[]uint64{math.MaxUint64}, []uint64{math.MaxUint64}, []uint64{math.MaxUint64 - 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var w window
			for _, s := range tc.come {
				w.add(s)
			}
			for _, s := range tc.old {
				require.True(t, w.has(s), s)
			}
			for _, s := range tc.new {
				require.False(t, w.has(s), s)
			}
		})
	}
}

// The stamp of the kernel counts if it is plausible.
func TestWhenADatagramCame(t *testing.T) {
	now := time.Now()
	for ago, want := range map[time.Duration]time.Duration{
		0: 0, time.Millisecond: time.Millisecond, time.Second: time.Second,
		time.Second + 1: 0, -1: 0, 100 * 365 * 24 * time.Hour: 0,
	} {
		require.Equal(t, want, now.Sub(cameAt(now.Round(0).Add(-ago), now)), ago)
	}
	require.Equal(t, now, cameAt(time.Time{}, now), "there is none")
}

// loner is a mesh with one session, which has no connection.
func loner(tls bool) (m *Mesh, l *link, out *directions) {
	l = &link{inbox: inbox{some: newWaker()}}
	l.info.Session, l.key = 77, []byte("key")
	d, _ := newDirections(77, l.key, nil, true)
	theirs, _ := newDirections(77, l.key, nil, false)
	if tls {
		for kind := range d.out {
			key := bytes.Repeat([]byte{byte(kind)}, secretSize)
			d.out[kind].aead, theirs.in[kind].aead = gcm(key), gcm(key)
		}
	}
	l.inbox.seals = theirs.in
	m = &Mesh{}
	m.socket.links = map[uint64]*link{77: l}
	return m, l, &d
}

// Nothing that somebody sends counts unless the other end of the session has made it.
func FuzzDatagram(f *testing.F) {
	for _, tls := range []bool{false, true} {
		_, _, d := loner(tls)
		f.Add(tls, beatPacket(&d.out[beatDatagram], 77, 3))
		f.Add(tls, ackPacket(&d.out[ackDatagram], 77, 3))
		f.Add(tls, beatPacket(&d.out[ackDatagram], 77, 3))
		f.Add(tls, ackPacket(&d.out[ackDatagram], 78, 3)[:20])
	}
	f.Fuzz(func(t *testing.T, tls bool, packet []byte) {
		m, l, d := loner(tls)
		sent := bytes.Clone(packet)
		c, ok := m.takePacket(packet, time.Now())
		if !ok {
			require.Less(t, c, causes)
			require.Zero(t, l.inbox.came.Load())
			return
		}
		b, _, a := l.inbox.waiting()
		kind, seq := beatDatagram, b.Sequence
		if a != (pair.Ack{}) {
			kind, seq = ackDatagram, a.Sequence
		}
		require.NotZero(t, seq)
		body := sent[datagramHead : len(sent)-proofSize]
		if tls {
			in := l.inbox.seals[kind]
			body = in.open(bytes.Clone(sent))
		}
		require.Equal(t, sent, packetOf(&d.out[kind], kind, 77, seq, bytes.Clone(body)))
		again, ok := m.takePacket(sent, time.Now())
		require.False(t, ok)
		require.Equal(t, causeOld, again)
	})
}

// Garbage and beats that are overtaken take no memory, nor do beats and acks that count.
func TestReceivedDatagramsTakeNoMemory(t *testing.T) {
	for _, tls := range []bool{false, true} {
		m, l, d := loner(tls)
		var packets [64][]byte
		for i := range packets {
			packets[i] = beatPacket(&d.out[beatDatagram], 77, uint64(i+1))
		}
		garbage, now, next := make([]byte, maxDatagram), time.Now(), 0
		garbage[0] = datagramForm
		require.Zero(t, testing.AllocsPerRun(len(packets)-2, func() {
			m.takePacket(garbage, now)
			m.takePacket(packets[next], now)
			next++
			m.takePacket(packets[0], now)
		}))
		require.Equal(t, uint64(len(packets)-1), l.inbox.came.Load())
	}
}

func TestPath(t *testing.T) {
	const trip = 10 * time.Millisecond
	p, now := path{}, time.Duration(0)
	// say lets a number of beats leave, one a period, and returns by which way the last went.
	say := func(n int, period time.Duration) string {
		var way [2]bool
		for range n {
			now += period
			way[0], way[1] = p.next(beatDatagram, now, trip)
		}
		return map[[2]bool]string{{true, true}: "both", {true, false}: "datagram", {false, true}: "stream"}[way]
	}
	const period = 100 * time.Millisecond
	require.Equal(t, "both", say(1, period))
	p.hear(0)
	require.Equal(t, "both", say(1, period))
	p.hear(3)
	require.Equal(t, "both", say(1, period), "nobody has received more than was sent")
	p.hear(1)
	require.Equal(t, "datagram", say(1, period))
	p.hear(4)
	require.Equal(t, "datagram", say(3, period))
	require.Equal(t, "stream", say(1, 0), "three were not answered")
	require.Equal(t, "stream", say(9, period))
	require.Equal(t, "both", say(1, period), "a second has passed")
	require.Equal(t, "stream", say(9, period))
	p.hear(5)
	require.Equal(t, "both", say(1, period))
	p.hear(4)
	p.hear(5)
	require.Equal(t, "both", say(1, period), "an answer counts once")
	p.hear(6)
	require.Equal(t, "both", say(1, period))
	p.hear(7)
	require.Equal(t, "datagram", say(1, period), "three answers in a row")

	p.hear(p.sent)
	p.next(ackDatagram, now, trip)
	p.next(ackDatagram, now, trip)
	require.Equal(t, "datagram", say(1, 0), "each kind counts by itself")
	p.hear(p.sent)
	require.Equal(t, "datagram", say(20, time.Millisecond), "the round trip takes longer")
	require.Equal(t, "stream", say(2, time.Millisecond))
}

func TestPathCountsWhatIsLost(t *testing.T) {
	var p path
	leave := func(n int) {
		for range n {
			p.next(beatDatagram, time.Duration(p.sent)*tryAgain, 0)
		}
	}
	leave(10)
	p.hear(8)
	require.Zero(t, p.lost, "the others may be on their way")
	leave(1)
	p.hear(9)
	require.Equal(t, uint64(1), p.lost)
	leave(1)
	p.hear(12)
	require.Zero(t, p.lost, "they were late")
}

func gcm(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return aead
}
