package limit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever opens many loses its own, the oldest first; whoever has few keeps them.
func TestTheSourceWithTheMostLosesItsOldest(t *testing.T) {
	c := NewCrowd[int](3)
	enter := func(it int, from string, lost ...int) {
		t.Helper()
		out, full := c.Enter(it, from)
		require.Equal(t, len(lost) > 0, full)
		if full {
			require.Equal(t, lost[0], out)
		}
	}
	few, many := "10.0.0.1:7", "10.0.0.2:8"
	enter(1, few)
	enter(2, many)
	enter(3, many)
	enter(4, "10.0.0.2:9", 2)
	enter(5, few, 3)
	enter(6, "10.0.0.3:1", 1)
	require.Equal(t, []int{4, 5, 6}, c.All())
	enter(7, few, 4) // none has more than another: the oldest of all
	c.Leave(4)
	c.Leave(6)
	require.False(t, c.OwnPlace(few), "there is room")
	enter(8, few)
	require.True(t, c.OwnPlace(few))
	require.False(t, c.OwnPlace(many))
	require.Equal(t, []int{5, 7, 8}, c.All())
}

func TestWhatIsOneSource(t *testing.T) {
	for a, b := range map[string]string{
		"10.0.0.1:1":      "[::ffff:10.0.0.1]:2",
		"[fd00::1]:1":     "[fd00::ffff:2]:1",
		"[fe80::1%lo]:1":  "[fe80::2%eth0]:1",
		"@":               "@",
		"host-of-test:70": "host-of-test:80",
	} {
		require.Equal(t, sourceOf(a), sourceOf(b))
	}
	require.NotEqual(t, sourceOf("[fd00::1]:1"), sourceOf("[fd00:0:0:1::1]:1"))
	require.NotEqual(t, sourceOf("10.0.0.1:1"), sourceOf("10.0.0.2:1"))
	require.NotEqual(t, sourceOf("a:1"), sourceOf("b:1"))
}
