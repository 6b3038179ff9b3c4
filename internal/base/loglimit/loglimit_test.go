package loglimit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOneLineOfAKindIsDueAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Limiter[string]
		for i := range 5 {
			_, due := l.Due("a")
			require.Equal(t, i == 0, due)
		}
		_, due := l.Due("b")
		require.True(t, due)
		time.Sleep(every - time.Nanosecond)
		_, due = l.Due("a")
		require.False(t, due)
		time.Sleep(time.Nanosecond)
		skipped, due := l.Due("a")
		require.True(t, due)
		require.Equal(t, 5, skipped)
	})
}

// Kinds may be of a stranger's choice: what is remembered of them is bounded.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	var l Limiter[int]
	for i := range 3 * maxKept {
		l.Due(i)
		require.LessOrEqual(t, len(l.last), maxKept)
	}
}
