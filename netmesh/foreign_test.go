package netmesh

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/memnet"
)

// Unlike the elector's, no message replaces another.
func TestForeignMessagesArriveOneByOneInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pairOn(t, memnet.New())
		require.False(t, a.SendForeign("b", make([]byte, maxForeign+1)), "too long")
		require.False(t, a.SendForeign("c", []byte("x")), "nobody has that name")
		want := []string{"up 1"}
		for i := range 300 {
			require.True(t, a.SendForeign("*", fmt.Appendf(nil, "m%d", i)))
			want = append(want, fmt.Sprintf("foreign m%d", i))
		}
		synctest.Wait()
		require.Equal(t, want, b.all("a"))
	})
}

func TestTheOldestForeignMessagesAreDropped(t *testing.T) {
	var q foreignQueue
	for i := range maxForeignWaiting + 3 {
		q.push(fmt.Appendf(nil, "m%d", i))
	}
	left := q.take()
	require.Len(t, left, maxForeignWaiting)
	require.Equal(t, "m3", string(left[0]))
	require.Empty(t, q.take())
}
