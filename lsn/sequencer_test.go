package lsn_test

import (
	"errors"
	"runtime"
	"slices"
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
	require.EqualError(t, s.Begin(5),
		"lsn: begin leadership of term 5: want a term above 5, the last one")
	require.Error(t, s.Begin(4))
	require.Equal(t, lsn.LSN{Term: 5, Counter: 1}, issue(t, &s, 1), "a refused Begin changes nothing")

	s.End()
	require.Error(t, s.Begin(5), "an ended term is used up")
}

// TestNoneIsIssuedTwice lets several goroutines issue through a row of
// re-affirmations: each sees its own LSNs rise, together they have every LSN of
// every term once, and there is never a moment without leadership. Many short
// rounds, because goroutines meet most when they have just been released.
func TestNoneIsIssuedTwice(t *testing.T) {
	for range 40 {
		issueAndBegin(t)
	}
}

func issueAndBegin(t *testing.T) {
	t.Helper()
	const issuers, each, terms = 4, 5000, 20
	var s lsn.Sequencer
	require.NoError(t, s.Begin(1))
	issued := make([][]lsn.LSN, issuers)
	errs := make([]error, issuers+1)
	start := make(chan bool)
	var wg sync.WaitGroup
	for i := range issuers {
		wg.Go(func() {
			<-start
			issued[i], errs[i] = take(&s, each)
		})
	}
	wg.Go(func() {
		<-start
		errs[issuers] = beginEach(&s, 2, terms)
	})
	close(start)
	wg.Wait()

	require.NoError(t, errors.Join(errs...))
	for _, byOne := range issued {
		requireRising(t, byOne)
	}
	requireEachOnce(t, slices.Concat(issued...))
}

func take(s *lsn.Sequencer, n int) ([]lsn.LSN, error) {
	issued := make([]lsn.LSN, 0, n)
	for range n {
		l, err := s.Next()
		if err != nil {
			return nil, err
		}
		issued = append(issued, l)
	}
	return issued, nil
}

func beginEach(s *lsn.Sequencer, first, last lsn.Term) error {
	for term := first; term <= last; term++ {
		if err := s.Begin(term); err != nil {
			return err
		}
		runtime.Gosched()
	}
	return nil
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
