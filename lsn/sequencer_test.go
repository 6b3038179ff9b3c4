package lsn_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/lsn"
)

func TestBeginWantsAHigherTerm(t *testing.T) {
	var s lsn.Sequencer
	require.ErrorContains(t, s.Begin(0), "want a term of 1 to 9223372036854775807")
	require.ErrorContains(t, s.Begin(lsn.MaxTerm+1), "term 9223372036854775808: want")

	require.NoError(t, s.Begin(5))
	require.EqualError(t, s.Begin(5),
		"lsn: begin leadership of term 5: want a term above 5, the last one")
	require.Error(t, s.Begin(4))
	first, err := s.Next()
	require.NoError(t, err)
	require.Equal(t, at(5, 1), first, "a refused Begin changes nothing")

	s.End()
	require.Error(t, s.Begin(5), "an ended term is used up")
}

// TestNoneIsIssuedTwice lets several goroutines issue through a row of re-affirmations: each sees
// its own LSNs rise, together they have every LSN of every term once, and there is never a moment
// without leadership. Many short rounds, because goroutines meet most when they have just begun.
func TestNoneIsIssuedTwice(t *testing.T) {
	for range 40 {
		var s lsn.Sequencer
		require.NoError(t, s.Begin(1))
		issued := make([][]lsn.LSN, 4)
		var wg sync.WaitGroup
		for i := range issued {
			wg.Go(func() {
				for range 5000 {
					l, err := s.Next()
					assert.NoError(t, err)
					issued[i] = append(issued[i], l)
				}
			})
		}
		for term := lsn.Term(2); term <= 20; term++ {
			require.NoError(t, s.Begin(term))
			runtime.Gosched()
		}
		wg.Wait()
		for _, byOne := range issued {
			requireRising(t, byOne)
		}
		requireEachOnce(t, slices.Concat(issued...))
	}
}

func requireRising(t *testing.T, issued []lsn.LSN) {
	t.Helper()
	for i := 1; i < len(issued); i++ {
		if !issued[i-1].Less(issued[i]) {
			require.FailNow(t, "not rising", "%s after %s", issued[i], issued[i-1])
		}
	}
}

// requireEachOnce wants every term's LSNs from counter 1 on, none missing, none
// twice.
func requireEachOnce(t *testing.T, issued []lsn.LSN) {
	t.Helper()
	slices.SortFunc(issued, lsn.LSN.Compare)
	var before lsn.LSN
	for _, l := range issued {
		if l.Term != before.Term {
			before = lsn.LSN{Term: l.Term}
		}
		if l.Counter != before.Counter+1 {
			require.FailNow(t, "twice or missing", "%s follows %s", l, before)
		}
		before = l
	}
}

// TestNoneIsIssuedAfterEnd checks what a step-down relies on: Newest is final
// once End has returned, although others were issuing at that moment.
func TestNoneIsIssuedAfterEnd(t *testing.T) {
	var s lsn.Sequencer
	for term := lsn.Term(1); term <= 300; term++ {
		require.NoError(t, s.Begin(term))
		var wg sync.WaitGroup
		var highest lsn.LSN
		wg.Go(func() {
			for {
				l, err := s.Next()
				if err != nil {
					return
				}
				highest = l
			}
		})
		for s.Newest().Counter == 0 { // let it get going
			_, err := s.Next()
			require.NoError(t, err)
		}
		s.End()
		final := s.Newest()
		wg.Wait()
		require.Equal(t, final, s.Newest())
		require.LessOrEqual(t, highest.Compare(final), 0, "%s came out after %s", highest, final)
	}
}
