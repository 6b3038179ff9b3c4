package netmesh

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"runtime"
	"slices"
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
	m.Kind = elector.ElectionScouting + m.Kind%elector.RecordAck
	m.Offer = nil
	if m.Kind <= elector.NodeUnavailable && rapid.Bool().Draw(t, "plain") {
		m.Record, m.Committed, m.Entered = lsn.LSN{}, lsn.LSN{}, 0
	}
	if !hasRecord(&m) {
		m.Lineage, m.Founded = elector.Identity{}, false
	}
	if m.Kind == elector.RecordOffer {
		m.Offer = anyRecord(t)
		m.Record, m.Term = m.Offer.LSN, max(m.Term, m.Offer.LSN.Term)
		m.Lineage, m.Founded = m.Offer.Lineage, m.Offer.Founded
	}
	m.Cause %= scouting.CauseRank + 1
	m.Leader = elector.NodeID(anyName().Draw(t, "leader"))
	m.Successor = elector.NodeID(anyName().Draw(t, "successor"))
	for _, d := range []*time.Duration{&m.RetryAfter, &m.Period, &m.Late} {
		*d = max(*d, 0).Truncate(time.Microsecond)
	}
	return m
})

// anyRecord draws a record that Record.Check accepts.
func anyRecord(t *rapid.T) *elector.Record {
	number := rapid.Uint64Range(1, 1<<62)
	r := elector.Record{LSN: lsn.LSN{
		Term: lsn.Term(number.Draw(t, "term")), Counter: number.Draw(t, "counter"),
	}}
	if rapid.Bool().Draw(t, "lineage") {
		r.Lineage, r.Founded = elector.Identity{1, 15: 2}, rapid.Bool().Draw(t, "founded")
	}
	var voters []elector.Voter
	for i := range rapid.IntRange(1, scouting.MaxVoters).Draw(t, "voters") {
		v := elector.Voter{Node: elector.NodeID(strings.Repeat("v", i+1))}
		v.Identity[3] = byte(rapid.IntRange(0, 1).Draw(t, "identity"))
		voters = append(voters, v)
	}
	r.Voters = elector.NewRoster(voters...)
	if rapid.Bool().Draw(t, "value") {
		r.Value = elector.Value{LSN: r.LSN, Size: uint32(number.Draw(t, "size") % elector.MaxValue)}
		r.Value.Hash[0] = 1
	}
	return &r
}

// carry sends messages as a link does, and returns what arrives and in how many frames of which
// kind.
func carry(t require.TestingT, sent []queued, limit int) (got []queued, frames []frameKind) {
	enc, dec := newEncoder(), newDecoder()
	add := func(g string, m elector.Message) { got = append(got, queued{g, m}) }
	for rest := sent; len(rest) > 0; {
		n, frame, err := enc.batch(rest, limit)
		require.NoError(t, err)
		require.Positive(t, n)
		kind, body, err := newFrameReader(bytes.NewReader(frame), limit).next()
		require.NoError(t, err)
		if frames = append(frames, kind); kind == frameRecords {
			require.NoError(t, dec.records(body, add))
		} else {
			require.NoError(t, dec.batch(body, add))
		}
		rest = rest[n:]
		require.Equal(t, len(sent), len(got)+len(rest))
	}
	return got, frames
}

func TestMessagesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sent []queued
		for range rapid.IntRange(0, 5).Draw(t, "n") {
			sent = append(sent, queued{"g" + anyName().Draw(t, "group"), anyMessage.Draw(t, "message")})
		}
		got, _ := carry(t, sent, maxFrame)
		require.Equal(t, sent, got)
	})
}

// What an election without a record sends stays what it was, to the byte: older builds read it.
func TestWithoutARecordNothingChanges(t *testing.T) {
	_, frame, err := newEncoder().batch([]queued{{"g", heartbeat(1)}}, maxFrame)
	require.NoError(t, err)
	require.Equal(t, "0000002208dc0014c401670505000000c200c0000001d30000001cbe991a140000c2c0000000",
		fmt.Sprintf("%x", frame))
	_, frame, err = newEncoder().batch([]queued{{"g", largest().msg}}, maxFrame)
	require.NoError(t, err)
	require.Len(t, frame, 639)
	require.Equal(t, uint32(0x26054dce), crc32.ChecksumIEEE(frame), "all fields")
}

// Each message with a record, and each of a kind that is about records, is in a frame of its own
// kind; the order stays.
func TestWhatTellsOfARecordGoesInItsOwnFrames(t *testing.T) {
	plain, with, asks := heartbeat(1), heartbeat(2), heartbeat(3)
	with.Record.Counter, asks.Kind = 1, elector.RecordRequest
	sent := []queued{{"g", plain}, {"h", plain}, {"g", with}, {"g", asks}, {"h", plain}}
	got, frames := carry(t, sent, maxFrame)
	require.Equal(t, sent, got)
	require.Equal(t, []frameKind{frameBatch, frameRecords, frameBatch}, frames)
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
	offer := largestOffer()
	_, one, err = enc.batch([]queued{offer}, maxFrame)
	require.NoError(t, err)
	require.LessOrEqual(t, len(one), frameHeader+maxRecordItem)
	got, frames2 := carry(t, slices.Repeat([]queued{offer}, 20), maxFrame)
	require.Len(t, got, 20)
	require.Less(t, len(frames2), 4)
}

// largestOffer is the message about a record that takes the most bytes.
func largestOffer() queued {
	q, all := largest(), lsn.LSN{Term: 1 << 62, Counter: math.MaxUint64}
	var voters []elector.Voter
	for i := range scouting.MaxVoters {
		name := fmt.Sprintf("%0*d", elector.MaxNameLength, i)
		voters = append(voters, elector.Voter{Node: elector.NodeID(name)})
	}
	value := elector.Value{LSN: all, Size: elector.MaxValue, Hash: [32]byte{0: 1}}
	q.msg.Kind, q.msg.Record, q.msg.Committed, q.msg.Entered = elector.RecordOffer, all, all, 1<<63
	q.msg.Offer = &elector.Record{LSN: all, Value: value, Voters: elector.NewRoster(voters...)}
	return q
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

func TestMalformedRecordsAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*recordItem){
		"no group":         func(w *recordItem) { w.Message.Group = nil },
		"no voters":        func(w *recordItem) { w.Voters = nil },
		"half a voter":     func(w *recordItem) { w.Voters = w.Voters[:9] },
		"33 voters":        func(w *recordItem) { w.Voters = append(w.Voters, voter("zz")...) },
		"voters unordered": func(w *recordItem) { w.Voters = append(voter("zz"), w.Voters...) },
		"no LSN":           func(w *recordItem) { w.RecordTerm, w.RecordCounter = 0, 0 },
		"absurd term":      func(w *recordItem) { w.RecordTerm, w.Message.Term = 1<<63, 1<<63 },
		"above its term":   func(w *recordItem) { w.Message.Term = w.RecordTerm - 1 },
		"later value":      func(w *recordItem) { w.ValueTerm++ },
		"half a hash":      func(w *recordItem) { w.ValueHash = w.ValueHash[:31] },
		"endless hash":     func(w *recordItem) { w.ValueHash = make([]byte, 33) },
		"no hash":          func(w *recordItem) { clear(w.ValueHash) },
		"endless value":    func(w *recordItem) { w.ValueSize = elector.MaxValue + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			var w recordItem
			msg := largestOffer().msg
			w.set("g", &msg)
			spoil(&w)
			frame, err := newEncoder().encode(frameRecords, &w)
			require.NoError(t, err)
			err = newDecoder().records(frame[frameHeader:],
				func(string, elector.Message) { t.Error("accepted") })
			require.Equal(t, ReasonGarbage, reasonOf(err))
		})
	}
}

// voter is a voter as it travels.
func voter(name elector.NodeID) []byte {
	return elector.NewRoster(elector.Voter{Node: name}).Bytes()
}

// A frame of an unknown kind ends the link; 15 is the first kind that no release sends.
func TestAFrameOfNoKindIsGarbage(t *testing.T) {
	for _, kind := range []byte{0, 15, 255} {
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
		require.Error(t, newDecoder().records(huge, func(string, elector.Message) {}))
		note := []byte{0x93, 0xa1, 'g', 1, 0xc6, 0xff, 0xff, 0xff, 0xff}
		require.Error(t, newDecoder().one(note, &Note{}))
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
	_, offers, _ := newEncoder().batch([]queued{largestOffer()}, maxFrame)
	f.Add(bytes.Clone(offers))
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
			_ = dec.records(body, requireSane(t))
			_ = dec.one(body, &Note{})
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
			group == "" || len(group) > MaxNameLength ||
			(m.Kind == elector.RecordOffer) != (m.Offer != nil) ||
			m.Offer != nil && (m.Offer.Check() != nil || m.Offer.LSN != m.Record) {
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
