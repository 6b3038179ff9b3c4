package limit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASurgeIsCountedByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Surge[string]{Most: 3}
		pass := func(kind string, times int) (passed int) {
			for range times {
				if s.Passes(kind) {
					passed++
				}
			}
			return passed
		}
		require.Equal(t, 2, pass("a", 2))
		require.Equal(t, 1, pass("b", 5), "the third of this second")
		time.Sleep(time.Second - 1)
		require.Zero(t, pass("a", 7), "not yet")
		require.Equal(t, map[string]int{"a": 7, "b": 4}, s.Take())
		require.Empty(t, s.Take(), "each once")
		time.Sleep(time.Nanosecond)
		require.Equal(t, 3, pass("a", 3), "another second")
		require.Empty(t, s.Take())
	})
}
