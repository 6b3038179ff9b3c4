package netmesh

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// noteOf is a note of a size, of which no two are the same.
func noteOf(kind uint8, size int) Note {
	return Note{Group: "g", Kind: kind, Body: bytes.Repeat([]byte{kind}, size)}
}

func TestNotesKeepTheirOrderAndStayBehindTheMessagesBefore(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, b := pairOn(t, net)
		var want []string
		for i := range uint8(20) {
			require.True(t, a.Send("b", fmt.Sprint("g", i), heartbeat(uint64(i))))
			require.True(t, a.Notify("b", noteOf(i, MaxNote)))
			want = append(want, fmt.Sprintf("g note %d of %d bytes", i, MaxNote))
		}
		synctest.Wait()
		all := b.all("a")
		isNote := func(e string) bool { return strings.Contains(e, "note") }
		notes := slices.DeleteFunc(slices.Clone(all), func(e string) bool { return !isNote(e) })
		require.Equal(t, want, notes)
		for i, note := range want {
			beat := slices.Index(all, fmt.Sprintf("g%d LeaderHeartbeat %d", i, i))
			require.Positive(t, beat)
			require.Less(t, beat, slices.Index(all, note))
		}
	})
}

func TestWhichNotesAreRefused(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, b := pairOn(t, net, votersAB)
		require.False(t, a.Notify("b", noteOf(1, MaxNote+1)), "too long")
		require.False(t, a.Notify("b", Note{}), "no group")
		require.False(t, a.Notify("c", noteOf(1, 1)), "no such peer")
		b.slow, b.release = "a", make(chan struct{})
		require.True(t, a.Send("b", "g", ack(1)))
		synctest.Wait()
		count := func(to elector.NodeID, size int) (n int) {
			for n < 1000 && a.Notify(to, Note{Group: fmt.Sprint(n), Body: make([]byte, size)}) {
				n++
				synctest.Wait()
			}
			return n
		}
		inFlight := 2 * noteStep / 1000
		waiting := maxNotes / (noteCost + 1000)
		require.InDelta(t, waiting+inFlight, count("b", 1000), 4, "b reads nothing")
		require.True(t, a.Notify("b", Note{Group: "200", Body: make([]byte, 1000)}), "waits already")
		close(b.release)
		synctest.Wait()
		require.True(t, a.Notify("b", noteOf(1, 1)))

		s, h := intrudeOn(t, net, a), helloFrom(a)
		h.MaxVersion = maxVersion
		s.link(h)
		synctest.Wait()
		waiting = maxGuestNotes / (noteCost + MaxNote)
		require.InDelta(t, waiting+2*noteStep/MaxNote, count("x", MaxNote), 3, "no vote")
		b.close(t)
		synctest.Wait()
		require.False(t, a.Notify("b", noteOf(1, 1)), "no link")
	})
}

// A build that knows no records gets no message that tells of one, and no note. All else is as
// before.
func TestAnOlderPeerHearsOfNoRecords(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a := start(t, "a", onHost(net))
		s, h := intrudeOn(t, net, a), helloFrom(a)
		h.MaxVersion = version5 - 1
		s.link(h)
		synctest.Wait()
		plain, with, asks := heartbeat(1), heartbeat(2), heartbeat(3)
		with.Record.Counter, asks.Kind = 1, elector.RecordRequest
		require.True(t, a.Send("x", "g", plain))
		answer := ack(4)
		full := answer
		full.Entered, full.Cold = 9, true
		require.True(t, a.Send("x", "g", full), "it is told what it knows")
		require.False(t, a.Send("x", "h", with))
		require.False(t, a.Send("x", "h", asks))
		require.False(t, a.Send(elector.AllMembers, "h", with))
		require.False(t, a.Notify("x", noteOf(1, 1)))
		var got []queued
		for {
			require.NoError(t, s.raw.SetReadDeadline(time.Now().Add(time.Second)))
			kind, body, err := s.frames.next()
			if err != nil {
				break
			}
			require.Less(t, kind, frameRecords)
			if kind == frameBatch {
				require.NoError(t, s.dec.batch(body,
					func(g string, m elector.Message) { got = append(got, queued{g, m}) }))
			}
		}
		require.Equal(t, []queued{{"g", plain}, {"g", answer}}, got)
	})
}

// A peer that answers no ping gets only so many bytes of notes, and all messages: what waits in a
// network that is slow would delay the heartbeats behind it.
func TestHeartbeatsPassNotes(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a := start(t, "a", onHost(net), quiet)
		s, h := intrudeOn(t, net, a), helloFrom(a)
		h.MaxVersion = maxVersion
		s.link(h)
		synctest.Wait()
		s.frames.max = maxFrame
		notes, beats, answer := 0, 0, uint64(0)
		read := func() {
			for s.raw.SetReadDeadline(time.Now().Add(time.Second)) == nil {
				kind, body, err := s.frames.next()
				var p ping
				switch {
				case err != nil:
					return
				case kind == frameNote:
					notes++
				case kind == framePing:
					require.NoError(t, s.dec.one(body, &p))
					answer = p.Number
				case kind == frameBatch:
					beats++
				}
			}
		}
		for i := range uint8(100) {
			a.Notify("x", noteOf(i, MaxNote))
			read()
		}
		require.Equal(t, 2*noteStep/MaxNote+1, notes)
		require.True(t, a.Send("x", "g", heartbeat(1)))
		read()
		require.Equal(t, 1, beats)
		require.NoError(t, s.send(framePong, &ping{Number: answer}))
		read()
		require.Greater(t, notes, 2*noteStep/MaxNote+1, "it goes on")
	})
}
