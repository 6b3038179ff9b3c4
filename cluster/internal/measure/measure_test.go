package measure

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAWriteIsTimedWhileItRunsAndAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New()
		go func() { _ = m.Timed(func() error { time.Sleep(time.Minute); return nil }) }()
		time.Sleep(40 * time.Second)
		require.InDelta(t, 40, m.Writing().Seconds(), 1e-6)
		require.Zero(t, m.Writes.Snapshot().Sum)
		time.Sleep(40 * time.Second)
		require.Zero(t, m.Writing())
		require.InDelta(t, 60, m.Writes.Snapshot().Sum, 1e-6)
	})
}

// The arrays of counters must have room for every reason and every cause.
func TestEveryReasonAndAnswerHasItsCounter(t *testing.T) {
	require.Contains(t, (lastReason + 1).String(), "REASON(", "no reason after it")
	require.False(t, (lastAnswer + 1).Valid())
}
