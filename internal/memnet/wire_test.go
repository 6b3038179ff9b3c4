package memnet

import (
	"context"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, c interface{ Write([]byte) (int, error) }, text string) {
	t.Helper()
	_, err := c.Write([]byte(text))
	require.NoError(t, err)
}

// soon is the context of a dial that times out.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestWhatIsDroppedArrivesOnceTheRuleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		near, far := connect(t, n)
		n.Filter("a", "b", Drop)
		write(t, near, "late")
		write(t, far, "in time")
		require.NoError(t, readErr(near), "the other way is open")
		require.NoError(t, far.SetReadDeadline(time.Now().Add(time.Second)))
		require.ErrorIs(t, readErr(far), os.ErrDeadlineExceeded)
		_, err := n.Host("a").Dial(soon(t), "b:1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = n.Host("b").Dial(soon(t), "a:1")
		require.ErrorIs(t, err, context.DeadlineExceeded, "the answer is lost")

		n.Kill("a")
		n.Filter("a", "b", Pass)
		require.NoError(t, far.SetReadDeadline(time.Time{}))
		require.NoError(t, readErr(far))
		require.ErrorContains(t, readErr(far), "EOF")
	})
}

func TestRejectResetsWhoSends(t *testing.T) {
	n := New()
	near, far := connect(t, n)
	n.Filter("a", "b", Reject)
	_, err := n.Host("a").Dial(t.Context(), far.LocalAddr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "although somebody listens there")
	write(t, near, "x")
	require.ErrorIs(t, readErr(near), syscall.ECONNRESET)

	n.Filter("a", "b", Pass)
	near, far = connect(t, n)
	n.Filter("a", "b", Reject)
	write(t, far, "acknowledged, and lost")
	require.ErrorIs(t, readErr(near), syscall.ECONNRESET)
	n.Filter("a", "b", Pass)
	write(t, far, "to nobody")
	require.NoError(t, near.Close())
}

func TestAStoppedProcessReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		near, far := connect(t, n)
		b := n.Host("b")
		b.Stop()
		write(t, near, "waits")
		read := make(chan error)
		go func() { read <- readErr(far) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, read)
		require.True(t, b.Stopped())
		b.Continue()
		require.NoError(t, <-read)

		b.Stop()
		write(t, near, "never read")
		n.Kill("b")
		require.ErrorIs(t, readErr(near), syscall.ECONNRESET)
		b.Wait() // whoever waits for a process that was killed goes on
		b.Stop()
		require.False(t, b.Stopped(), "a dead process cannot be stopped")
	})
}

func TestPacketsTakeTheirTimeAndStayInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		slow := time.Second
		n.Delay(func(string, string) time.Duration { slow /= 2; return slow },
			func() time.Duration { return 0 })
		near, far := connect(t, n)
		began := time.Now()
		write(t, near, "one")
		write(t, near, "two")
		require.NoError(t, near.Close())
		text := make([]byte, 8)
		for _, want := range []string{"one", "two"} {
			got, err := far.Read(text)
			require.NoError(t, err)
			require.Equal(t, want, string(text[:got]))
		}
		require.ErrorContains(t, readErr(far), "EOF")
		require.Equal(t, 125*time.Millisecond+2, time.Since(began), "no packet overtakes another")
	})
}
