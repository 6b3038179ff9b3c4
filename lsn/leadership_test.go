package lsn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCounterEnds stands at a counter that nobody could reach in a test.
func TestCounterEnds(t *testing.T) {
	var s Sequencer
	require.NoError(t, s.Begin(5))
	s.current.Load().state.Store(lastCounter - 1)

	last, err := s.Next()
	require.NoError(t, err)
	require.Equal(t, LSN{Term: 5, Counter: lastCounter}, last)
	for range 3 {
		_, err = s.Next()
		require.ErrorIs(t, err, ErrOverflow)
		require.EqualError(t, err,
			"lsn: next of 5.9223372036854775807: counter exhausted, a new term is needed")
		require.Equal(t, last, s.Newest())
	}

	s.End()
	_, err = s.Next()
	require.ErrorIs(t, err, ErrNotLeading, "an exhausted leadership can end")
	require.NoError(t, s.Begin(6))
	next, err := s.Next()
	require.NoError(t, err)
	require.Equal(t, LSN{Term: 6, Counter: 1}, next)
}

// TestNextWaitsForBegin stops a Begin half way, after the old leadership has
// ended and before the new one is there.
func TestNextWaitsForBegin(t *testing.T) {
	var s Sequencer
	require.NoError(t, s.Begin(1))
	s.mu.Lock()
	s.current.Load().end()

	type answer struct {
		lsn LSN
		err error
	}
	answers, asking := make(chan answer), make(chan bool)
	go func() {
		close(asking)
		l, err := s.Next()
		answers <- answer{l, err}
	}()
	<-asking
	s.current.Store(&leadership{term: 2})
	s.mu.Unlock()
	require.Equal(t, answer{lsn: LSN{Term: 2, Counter: 1}}, <-answers)
}

// TestLateNextOfAnOldTerm stops a Next after it has found the leadership and
// before it issues; Begin comes in between.
func TestLateNextOfAnOldTerm(t *testing.T) {
	var s Sequencer
	require.NoError(t, s.Begin(1))
	found := s.current.Load()
	require.NoError(t, s.Begin(2))
	_, err := found.issue()
	require.ErrorIs(t, err, ErrNotLeading)
}
