package lsn_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/lsn"
)

// anyLSN draws small numbers as often as large ones: orders differ where terms
// or counters are equal, and digits where they are long.
func anyLSN() *rapid.Generator[lsn.LSN] {
	return rapid.Custom(func(t *rapid.T) lsn.LSN {
		term := rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64Range(0, uint64(lsn.MaxTerm))).Draw(t,
			"term")
		counter := rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64()).Draw(t, "counter")
		return lsn.LSN{Term: lsn.Term(term), Counter: counter}
	})
}

func TestByteOrderIsLSNOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyLSN().Draw(t, "a"), anyLSN().Draw(t, "b")
		aBytes, err := a.MarshalBinary()
		require.NoError(t, err)
		bBytes, err := b.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, a.Compare(b), bytes.Compare(aBytes, bBytes))
	})
}

func TestEveryFormReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLSN().Draw(t, "lsn")
		parsed, err := lsn.Parse(l.String())
		require.NoError(t, err)
		require.Equal(t, l, parsed)

		b, err := l.MarshalBinary()
		require.NoError(t, err)
		var read lsn.LSN
		require.NoError(t, read.UnmarshalBinary(b))
		require.Equal(t, l, read)
	})
}

// TestSequencerAgainstModel compares with the plain thing: a term, a counter and
// whether it leads.
func TestSequencerAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s lsn.Sequencer
		var newest lsn.LSN
		leads := false
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				term := lsn.Term(rapid.Uint64Range(0, 20).Draw(t, "term"))
				if term <= newest.Term {
					require.Error(t, s.Begin(term))
					return
				}
				require.NoError(t, s.Begin(term))
				newest, leads = lsn.LSN{Term: term}, true
			},
			"end": func(*rapid.T) {
				s.End()
				leads = false
			},
			"next": func(t *rapid.T) {
				got, err := s.Next()
				if !leads {
					require.ErrorIs(t, err, lsn.ErrNotLeading)
					return
				}
				require.NoError(t, err)
				newest.Counter++
				require.Equal(t, newest, got)
			},
			"": func(t *rapid.T) { require.Equal(t, newest, s.Newest()) },
		})
	})
}

// TestFenceAgainstModel says what a fence is for: the newest never goes back.
func TestFenceAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newest := anyLSN().Draw(t, "saved")
		f := lsn.NewFence(newest)
		for _, l := range rapid.SliceOf(anyLSN()).Draw(t, "requests") {
			admit, lowest := f.Admit, newest.Compare(l) <= 0
			if rapid.Bool().Draw(t, "once each") {
				admit, lowest = f.AdmitNew, newest.Compare(l) < 0
			}
			if lowest && l.Term > 0 {
				require.NoError(t, admit(l))
				newest = l
			} else {
				require.Error(t, admit(l))
			}
			require.Equal(t, newest, f.Newest())
		}
	})
}
