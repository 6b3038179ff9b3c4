package limit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOneLineOfAKindIsDueAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Log[string]
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

// Kinds may be of a stranger's choice: he who has many gets no more lines.
func TestLinesOfAllKindsAreBounded(t *testing.T) {
	for _, c := range []struct{ given, want int }{{0, 1024}, {10, 10}} {
		synctest.Test(t, func(t *testing.T) {
			l := Log[int]{Most: c.given}
			lines := func() (count int) {
				for i := range 3 * most {
					if _, due := l.Due(i); due {
						count++
					}
					require.LessOrEqual(t, len(l.last), c.want)
				}
				return count
			}
			for range 3 {
				require.Equal(t, c.want, lines())
				require.Zero(t, lines())
				time.Sleep(every)
			}
		})
	}
}
