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

func TestForeignMessagesThatNobodyWantsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pairOn(t, memnet.New())
		b.foreign = nil // as of a handler that is no ForeignHandler
		require.True(t, a.SendForeign("b", []byte("x")))
		synctest.Wait()
		require.Equal(t, []string{"up 1"}, b.all("a"), "the link stays")
	})
}

func TestAForeignMessageThatIsTooLongIsGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pairOn(t, memnet.New())
		a.Mesh.mu.Lock()
		require.True(t, a.peers["b"].sendForeign(make([]byte, maxForeign+1)))
		a.Mesh.mu.Unlock()
		synctest.Wait()
		require.Equal(t, uint64(1), b.Counters()[ReasonGarbage])
		require.NotContains(t, b.all("a")[1], "foreign")
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
