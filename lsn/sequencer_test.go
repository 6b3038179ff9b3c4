package lsn_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/lsn"
)

// issue takes n LSNs and returns the last.
func issue(t *testing.T, s *lsn.Sequencer, n int) (last lsn.LSN) {
	t.Helper()
	for range n {
		var err error
		last, err = s.Next()
		require.NoError(t, err)
	}
	return last
}

func TestSequencerThroughTwoLeaderships(t *testing.T) {
	var s lsn.Sequencer
	require.NoError(t, s.Begin(3))
	require.Equal(t, lsn.LSN{Term: 3, Counter: 0}, s.Newest(), "nothing issued yet")
	require.Equal(t, lsn.LSN{Term: 3, Counter: 1}, issue(t, &s, 1))
	require.Equal(t, lsn.LSN{Term: 3, Counter: 5}, issue(t, &s, 4))

	s.End()
	_, err := s.Next()
	require.ErrorIs(t, err, lsn.ErrNotLeading)
	require.Equal(t, lsn.LSN{Term: 3, Counter: 5}, s.Newest(), "stays after the end")

	require.NoError(t, s.Begin(7))
	require.Equal(t, lsn.LSN{Term: 7, Counter: 1}, issue(t, &s, 1), "the counter starts again")
}

func TestSequencerBeforeTheFirstLeadership(t *testing.T) {
	var s lsn.Sequencer
	s.End()
	_, err := s.Next()
	require.ErrorIs(t, err, lsn.ErrNotLeading)
	require.Zero(t, s.Newest())
}

func TestReaffirmationNeedsNoEnd(t *testing.T) {
	var s lsn.Sequencer
	require.NoError(t, s.Begin(3))
	issue(t, &s, 2)
	require.NoError(t, s.Begin(8), "a re-affirmed leader goes on under a higher term")
	require.Equal(t, lsn.LSN{Term: 8, Counter: 1}, issue(t, &s, 1))
}

func TestBeginWantsAHigherTerm(t *testing.T) {
	var s lsn.Sequencer
	require.ErrorContains(t, s.Begin(0), "want a term of 1 to 9223372036854775807")
	require.ErrorContains(t, s.Begin(lsn.MaxTerm+1), "term 9223372036854775808: want")

	require.NoError(t, s.Begin(5))
	require.EqualError(t, s.Begin(5), "lsn: begin leadership of term 5: want a term above 5, the last one")
	require.Error(t, s.Begin(4))
	require.Equal(t, lsn.LSN{Term: 5, Counter: 1}, issue(t, &s, 1), "a refused Begin changes nothing")

	s.End()
	require.Error(t, s.Begin(5), "an ended term is used up")
}

// TestNoneIsIssuedTwice lets several goroutines issue through a row of
// re-affirmations: each sees its own LSNs rise, none comes twice, and there is
// never a moment without leadership.
func TestNoneIsIssuedTwice(t *testing.T) {
	const issuers, each, terms = 4, 2000, 500
	var s lsn.Sequencer
	require.NoError(t, s.Begin(1))
	issued := make([][]lsn.LSN, issuers)
	errs := make([]error, issuers)
	var wg sync.WaitGroup
	for i := range issuers {
		wg.Go(func() { issued[i], errs[i] = take(&s, each) })
	}
	var refused error
	wg.Go(func() {
		for term := lsn.Term(2); term <= terms && refused == nil; term++ {
			refused = s.Begin(term)
		}
	})
	wg.Wait()

	require.NoError(t, refused)
	seen := make(map[lsn.LSN]bool)
	for i := range issuers {
		require.NoError(t, errs[i])
		requireRising(t, issued[i])
		for _, l := range issued[i] {
			require.False(t, seen[l], "%s issued twice", l)
			seen[l] = true
		}
	}
	requireNoGaps(t, seen)
}

func take(s *lsn.Sequencer, n int) ([]lsn.LSN, error) {
	var issued []lsn.LSN
	for range n {
		l, err := s.Next()
		if err != nil {
			return nil, err
		}
		issued = append(issued, l)
	}
	return issued, nil
}

func requireRising(t *testing.T, issued []lsn.LSN) {
	t.Helper()
	for i := 1; i < len(issued); i++ {
		require.True(t, issued[i-1].Less(issued[i]), "%s after %s", issued[i], issued[i-1])
	}
}

// requireNoGaps holds because every LSN that was issued was also returned.
func requireNoGaps(t *testing.T, seen map[lsn.LSN]bool) {
	t.Helper()
	for l := range seen {
		before := lsn.LSN{Term: l.Term, Counter: l.Counter - 1}
		require.True(t, before.Counter == 0 || seen[before], "%s without %s", l, before)
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
