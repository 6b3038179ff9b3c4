package netmesh

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// packetOf is the datagram of a beat or of an ack.
func packetOf(s seals, kind wordKind, session, seq uint64) []byte {
	w := word{kind: kind}
	if kind == beatWord {
		w.beat = beat(seq)
	} else {
		w.ack = ackOf(seq)
	}
	return s.seal(nil, session, &w)
}

// A datagram is checked by the key of its session, direction and kind, and all of it is.
func TestADatagramIsProvenByItsOwnKey(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, edit func(*Config)) {
		virtual(t, func(t *testing.T, net *memnet.Network) {
			a, b := pairOn(t, net, edit)
			session := a.session("b")
			out, in := a.linkTo("b").pairs.seals, b.linkTo("a").inbox.seals
			back, home := b.linkTo("a").pairs.seals, a.linkTo("b").inbox.seals
			opens := func(s seals, kind wordKind, packet []byte) bool {
				return s.open(kind, bytes.Clone(packet)) != nil
			}
			sent := [wordKinds][]byte{
				packetOf(out, beatWord, session, 5), packetOf(out, ackWord, session, 5),
			}
			for kind := range wordKinds {
				packet := sent[kind]
				require.LessOrEqual(t, len(packet), 200)
				require.LessOrEqual(t, len(packet), maxDatagram)
				found, number, seq, ok := readHead(packet)
				require.Equal(t, []any{kind, session, uint64(5), true}, []any{found, number, seq, ok})
				require.True(t, opens(in, kind, packet))
				require.False(t, opens(in, 1-kind, packet), "a beat is no ack")
				require.False(t, opens(home, kind, packet), "it may be sent back")
				require.False(t, opens(back, kind, packet))
				told := &link{key: b.linkTo("a").key} // what the handshake told
				_, known, err := told.makeSeals(&handshake{})
				require.NoError(t, err)
				require.Equal(t, a.cfg.TLS == nil, opens(known, kind, packet), "keys are of TLS")
				require.True(t, opens(home, kind, packetOf(back, kind, session, 5)))
				for i := range packet {
					spoilt := bytes.Clone(packet)
					spoilt[i]++
					require.False(t, opens(in, kind, spoilt), "byte %d", i)
				}
				require.NotContains(t, string(packet[datagramHead:]), "\xff\xff\xff\xff\xff\xff")
			}
			a.resetLink("b")
			time.Sleep(time.Minute)
			require.False(t, opens(b.linkTo("a").inbox.seals, beatWord, sent[0]), "another session")
		})
	})
}

// What a beat and an ack say arrives, also if a later version says more.
func TestWordsSurviveTheWire(t *testing.T) {
	for _, w := range []word{
		{kind: beatWord, came: 8, beat: pair.Beat{Sequence: math.MaxUint64, SentAt: math.MaxInt64,
			Period: time.Hour, Late: 3, Revision: math.MaxUint64, Hash: math.MaxUint64}},
		{kind: ackWord, came: 9, ack: pair.Ack{Sequence: 1, SentAt: 2, Revision: 3, Wanted: 4}},
	} {
		body := w.append(nil)
		require.Len(t, body, wordSizes[w.kind])
		got, err := readWord(w.kind, append(body, 1, 2, 3))
		require.NoError(t, err)
		require.Equal(t, w, got)
	}
}

func TestMalformedWordsAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*word){
		"no sequence":     func(w *word) { w.beat.Sequence, w.ack.Sequence = 0, 0 },
		"sent never":      func(w *word) { w.beat.SentAt, w.ack.SentAt = 0, 0 },
		"sent before":     func(w *word) { w.beat.SentAt, w.ack.SentAt = -1, -1 },
		"negative period": func(w *word) { w.beat.Period, w.ack.Wanted = -1, -1 },
		"negative late":   func(w *word) { w.beat.Late, w.ack.Wanted = -1, -1 },
	} {
		for _, w := range []word{{kind: beatWord, beat: beat(1)}, {kind: ackWord, ack: ackOf(1)}} {
			body := w.append(nil)
			_, err := readWord(w.kind, body[:len(body)-1])
			require.Equal(t, ReasonGarbage, reasonOf(err))
			if spoil(&w); w.kind == beatWord {
				w.ack = pair.Ack{}
			} else {
				w.beat = pair.Beat{}
			}
			_, err = readWord(w.kind, w.append(nil))
			require.Equal(t, ReasonGarbage, reasonOf(err), name)
			m, _, out := loner()
			out.nonce = [12]byte{}
			why, ok := m.takePacket(out.seal(nil, 77, &w), time.Now())
			require.False(t, ok)
			if w.sequence() != 0 {
				require.Equal(t, droppedMalformed, why, name)
			}
		}
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

// What a newer beat has overtaken is for no handler, whichever way the two came. Acks are.
func TestWhatIsNews(t *testing.T) {
	m, l, out := loner()
	take := func(kind wordKind, seq uint64) {
		_, ok := m.takePacket(packetOf(out, kind, 77, seq), time.Now())
		require.True(t, ok)
	}
	streams := func(kind wordKind, seq uint64) bool {
		return l.inbox.streamed(&word{kind: kind, beat: pair.Beat{Sequence: seq}})
	}
	take(beatWord, 5)
	take(ackWord, 5)
	take(ackWord, 4)
	require.False(t, streams(beatWord, 5))
	require.False(t, streams(beatWord, 4))
	require.True(t, streams(ackWord, 3))
	require.False(t, streams(ackWord, 4))
	words, _ := l.inbox.waiting()
	require.Equal(t, [wordKinds]word{{beat: beat(5)}, {kind: ackWord, ack: ackOf(5)}}, words)
	take(beatWord, 6)
	require.True(t, streams(beatWord, 7))
	take(beatWord, 4)
	words, _ = l.inbox.waiting()
	require.Equal(t, [wordKinds]word{}, words)
}

// loner is a mesh with one session, which has no connection, and the seals of its other end.
func loner() (m *Mesh, l *link, out seals) {
	h, m := &handshake{}, &Mesh{}
	l = &link{inbox: inbox{some: newWaker()}, key: []byte("key"), dialed: true}
	_, l.inbox.seals, _ = l.makeSeals(h)
	theirs := &link{key: l.key}
	out, _, _ = theirs.makeSeals(h)
	m.socket.links = map[uint64]*link{77: l}
	return m, l, out
}

// Nothing that somebody sends counts unless the other end of the session has made it.
func FuzzDatagram(f *testing.F) {
	_, _, out := loner()
	f.Add(packetOf(out, beatWord, 77, 3))
	f.Add(packetOf(out, ackWord, 77, 3))
	f.Add(packetOf(out, ackWord, 78, 3))
	f.Add(packetOf(out, beatWord, 77, 3)[:20])
	f.Add([]byte{datagramForm, 0, 0, 0, 0, 0, 0, 0, 0, 77})
	f.Fuzz(func(t *testing.T, packet []byte) {
		m, l, out := loner()
		sent := bytes.Clone(packet)
		why, ok := m.takePacket(packet, time.Now())
		if !ok {
			require.Less(t, why, droppedEnd)
			require.Zero(t, l.inbox.came.Load())
			return
		}
		words, _ := l.inbox.waiting()
		w := &words[sent[1]]
		require.Equal(t, sent, out.seal(nil, 77, w))
		why, ok = m.takePacket(sent, time.Now())
		require.False(t, ok)
		require.Equal(t, droppedOld, why)
	})
}

// Garbage and copies take no memory, nor do beats that count.
func TestReceivedDatagramsTakeNoMemory(t *testing.T) {
	m, l, out := loner()
	var packets [64][]byte
	for i := range packets {
		packets[i] = packetOf(out, beatWord, 77, uint64(i+1))
	}
	garbage, now, next := make([]byte, maxDatagram), time.Now(), 0
	garbage[0] = datagramForm
	require.Zero(t, testing.AllocsPerRun(len(packets)-2, func() {
		m.takePacket(garbage, now)
		m.takePacket(packets[next], now)
		m.takePacket(packets[0], now)
		next++
	}))
	require.Equal(t, uint64(len(packets)-1), l.inbox.came.Load())
}

func TestPath(t *testing.T) {
	const trip = 10 * time.Millisecond
	p, now := path{}, time.Duration(0)
	// say lets a number of beats leave, one a period, and returns by which way the last went.
	say := func(n int, period time.Duration) string {
		var way [2]bool
		for range n {
			now += period
			way[0], way[1] = p.next(beatWord, now, trip)
		}
		return map[[2]bool]string{
			{true, true}: "both", {true, false}: "datagram", {false, true}: "stream",
		}[way]
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
	p.next(ackWord, now, trip)
	p.next(ackWord, now, trip)
	require.Equal(t, "datagram", say(1, 0), "each kind counts by itself")
	p.hear(p.sent)
	require.Equal(t, "datagram", say(20, time.Millisecond), "the round trip takes longer")
	require.Equal(t, "stream", say(2, time.Millisecond))
}
