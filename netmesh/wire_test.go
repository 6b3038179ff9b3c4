package netmesh

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func anyName() *rapid.Generator[string] { return rapid.StringN(0, 20, 60) }

// anyMessage draws any message that Send accepts, with any value in every field.
var anyMessage = rapid.Custom(func(t *rapid.T) elector.Message {
	m := rapid.Make[elector.Message]().Draw(t, "fields")
	m.Kind = elector.ElectionScouting + m.Kind%elector.NodeUnavailable
	m.Cause %= scouting.CauseRank + 1
	m.Leader = elector.NodeID(anyName().Draw(t, "leader"))
	m.Successor = elector.NodeID(anyName().Draw(t, "successor"))
	for _, d := range []*time.Duration{&m.RetryAfter, &m.Period, &m.Late} {
		*d = max(*d, 0).Truncate(time.Microsecond)
	}
	return m
})

func TestMessagesSurviveTheWire(t *testing.T) {
	enc, dec := newEncoder(), newDecoder()
	rapid.Check(t, func(t *rapid.T) {
		var sent, got []queued
		for range rapid.IntRange(0, 5).Draw(t, "n") {
			sent = append(sent, queued{"g" + anyName().Draw(t, "group"), anyMessage.Draw(t, "message")})
		}
		n, frame, err := enc.batch(sent, smallFrame)
		require.NoError(t, err)
		kind, body, err := newFrameReader(bytes.NewReader(frame), smallFrame).next()
		require.NoError(t, err)
		require.Equal(t, frameBatch, kind)
		require.NoError(t, dec.batch(body,
			func(g string, m elector.Message) { got = append(got, queued{g, m}) }))
		require.Equal(t, len(sent[:n]), len(got))
		for i := range got {
			require.Equal(t, sent[i], got[i])
		}
	})
}

// largest is the message that takes the most bytes.
func largest() queued {
	name := strings.Repeat("x", MaxNameLength)
	all := lsn.Term(math.MaxUint64)
	return queued{name, elector.Message{
		Kind: elector.NodeUnavailable, Term: all, ProposedTerm: all, Round: math.MaxUint64,
		Priority: math.MinInt,
		WillVote: true, Cause: scouting.CauseRank, Leader: elector.NodeID(name), LeaderTerm: all,
		RetryAfter: math.MaxInt64, Sequence: math.MaxUint64, SentAt: math.MinInt64,
		LSN: lsn.LSN{Term: all, Counter: math.MaxUint64}, MayStand: true,
		Successor: elector.NodeID(name), Reach: math.MaxUint8,
		Period: math.MaxInt64 / 1000 * 1000, Late: math.MaxInt64 / 1000 * 1000,
	}}
}

func TestBatchesStayBelowTheLimit(t *testing.T) {
	enc, dec := newEncoder(), newDecoder()
	rest, frames := make([]queued, 20), 0
	for i := range rest {
		rest[i] = largest()
	}
	for received := 0; len(rest) > 0; frames++ {
		n, frame, err := enc.batch(rest, smallFrame)
		require.NoError(t, err)
		require.Positive(t, n)
		require.LessOrEqual(t, len(frame), smallFrame)
		require.NoError(t, dec.batch(frame[frameHeader:], func(string, elector.Message) { received++ }))
		rest = rest[n:]
		require.Equal(t, 20, received+len(rest))
	}
	require.LessOrEqual(t, frames, 10)
	_, one, err := enc.batch([]queued{largest()}, smallFrame)
	require.NoError(t, err)
	require.LessOrEqual(t, len(one), frameHeader+maxItem)
}

func TestHeartbeatIsSmall(t *testing.T) {
	m := elector.Message{Kind: elector.LeaderHeartbeat, Term: 300, Sequence: 100_000, SentAt: 1 << 50,
		LSN: lsn.LSN{Term: 300, Counter: 1 << 40}, Period: 66_660_000, Late: 100_000}
	_, frame, err := newEncoder().batch([]queued{{"default", m}}, maxFrame)
	require.NoError(t, err)
	t.Logf("a heartbeat frame takes %d bytes", len(frame))
	require.LessOrEqual(t, len(frame), 64)
}

func TestUnknownFieldsAreSkippedAndMissingOnesZero(t *testing.T) {
	decode := func(fields ...any) (got queued, err error) {
		enc := newEncoder()
		enc.begin()
		require.NoError(t, enc.codec.Encode(fields))
		err = newDecoder().batch(enc.body, func(g string, m elector.Message) { got = queued{g, m} })
		return got, err
	}
	short, err := decode([]byte("g"), uint8(elector.LeaderHeartbeat), uint64(4))
	require.NoError(t, err)
	require.Equal(t, queued{"g", elector.Message{Kind: elector.LeaderHeartbeat, Term: 4}}, short)

	long := []any{[]byte("g"), uint8(elector.LeaderHeartbeat), uint64(4)}
	for len(long) < reflect.TypeFor[wireItem]().NumField() {
		long = append(long, nil)
	}
	got, err := decode(append(long, "of a later version", map[string]int{"x": 1}, []int{1, 2})...)
	require.NoError(t, err)
	require.Equal(t, short, got)
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*wireItem){
		"no kind":          func(w *wireItem) { w.Kind = 0 },
		"unknown kind":     func(w *wireItem) { w.Kind = 200 },
		"unknown cause":    func(w *wireItem) { w.Cause = 99 },
		"negative wait":    func(w *wireItem) { w.RetryAfter = -1 },
		"negative period":  func(w *wireItem) { w.Period = -1 },
		"negative late":    func(w *wireItem) { w.Late = -1 },
		"endless period":   func(w *wireItem) { w.Period = math.MaxInt64/1000 + 1 },
		"no group":         func(w *wireItem) { w.Group = nil },
		"endless group":    func(w *wireItem) { w.Group = make([]byte, 256) },
		"endless leader":   func(w *wireItem) { w.Leader = make([]byte, 256) },
		"endless sucessor": func(w *wireItem) { w.Successor = make([]byte, 256) },
	} {
		t.Run(name, func(t *testing.T) {
			var w wireItem
			msg := heartbeat(1)
			w.set("g", &msg)
			spoil(&w)
			frame, err := newEncoder().encode(frameBatch, &w)
			require.NoError(t, err)
			err = newDecoder().batch(frame[frameHeader:],
				func(string, elector.Message) { t.Error("accepted") })
			require.Equal(t, ReasonGarbage, reasonOf(err))
		})
	}
}

// A frame of an unknown kind ends the link; 10 is the first kind that no release sends.
func TestAFrameOfNoKindIsGarbage(t *testing.T) {
	for _, kind := range []byte{0, 10, 255} {
		_, _, err := newFrameReader(bytes.NewReader([]byte{0, 0, 0, 1, kind}), smallFrame).next()
		require.Equal(t, ReasonGarbage, reasonOf(err), kind)
	}
}

// TestClaimedLengthsAreNotBelieved: a reader must not allocate what a few bytes announce.
func TestClaimedLengthsAreNotBelieved(t *testing.T) {
	huge := []byte{0x91, 0xc6, 0xff, 0xff, 0xff, 0xff} // [ 4 GiB of bytes ]
	before := allocated()
	for range 100 {
		require.Error(t, newDecoder().batch(huge, func(string, elector.Message) {}))
		require.Error(t, newDecoder().one([]byte{0x91, 0xdb, 0xff, 0xff, 0xff, 0xff}, &hello{}))
		require.Error(t, newDecoder().one([]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, &hello{}))
		require.Error(t, newDecoder().one([]byte{0x91, 0xdd, 0xff, 0xff, 0xff, 0xff}, &Facts{}))
		frame := binary.BigEndian.AppendUint32(nil, math.MaxUint32)
		_, _, err := newFrameReader(bytes.NewReader(frame), maxFrame).next()
		require.Equal(t, ReasonOversized, reasonOf(err))
	}
	require.Less(t, allocated()-before, uint64(100<<20))
}

func allocated() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.TotalAlloc
}

func FuzzFrames(f *testing.F) {
	_, batch, _ := newEncoder().batch([]queued{{"g", heartbeat(1)}, largest()}, maxFrame)
	f.Add(bytes.Clone(batch))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0, 0, 0, 1, byte(framePing)})
	own := Facts{Voters: []string{"a", "b"}, VoterCount: 2, Settings: []string{"lease", "2s"}}
	told, _ := newEncoder().encode(frameFacts, &own)
	f.Add(bytes.Clone(told))
	f.Fuzz(func(t *testing.T, stream []byte) {
		frames, dec := newFrameReader(bytes.NewReader(stream), smallFrame), newDecoder()
		for {
			kind, body, err := frames.next()
			if err != nil {
				return
			}
			if len(body) >= smallFrame || kind == 0 || kind >= frameEnd {
				t.Fatalf("frame of kind %d with %d bytes", kind, len(body))
			}
			_ = dec.batch(body, requireSane(t))
			_ = dec.one(body, &hello{})
			_ = dec.one(body, &goodbye{})
			_ = dec.one(body, &ping{})
			var theirs Facts
			if dec.one(body, &theirs) == nil {
				_ = theirs.check()
			}
		}
	})
}

// requireSane fails on a message that the elector must never see.
func requireSane(t *testing.T) func(string, elector.Message) {
	return func(group string, m elector.Message) {
		if !m.Kind.Valid() || !m.Cause.Valid() || min(m.RetryAfter, m.Period, m.Late) < 0 ||
			group == "" || len(group) > MaxNameLength {
			t.Fatalf("accepted %q %+v", group, m)
		}
	}
}

func BenchmarkHeartbeatEncodeDecode(b *testing.B) {
	enc, dec := newEncoder(), newDecoder()
	items := []queued{{"default", heartbeat(1)}}
	stream := &bytes.Reader{}
	frames := newFrameReader(stream, maxFrame)
	seen := 0
	b.ReportAllocs()
	for b.Loop() {
		_, frame, err := enc.batch(items, maxFrame)
		if err != nil {
			b.Fatal(err)
		}
		stream.Reset(frame)
		_, body, err := frames.next()
		if err != nil {
			b.Fatal(err)
		}
		if err := dec.batch(body, func(string, elector.Message) { seen++ }); err != nil {
			b.Fatal(err)
		}
	}
	if seen == 0 {
		b.Fatal("nothing decoded")
	}
}
