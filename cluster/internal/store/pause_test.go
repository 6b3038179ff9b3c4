package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPauseOutlivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenOn(dir, alice, unsynced)
	require.NoError(t, err)
	require.Nil(t, s.Pause())
	want := Pause{Until: time.Now().Add(time.Hour), For: 2 * time.Hour, Led: []string{"x"}}
	given := want
	given.Led = []string{"x"}
	require.NoError(t, s.SavePause(&given))
	given.Led[0] = "changed"
	for range 3 { // other writes keep it
		require.True(t, want.Until.Equal(s.Pause().Until))
		require.Equal(t, want.For, s.Pause().For)
		require.Equal(t, want.Led, s.Pause().Led)
		require.NoError(t, s.Close())
		s, err = OpenOn(dir, alice, unsynced)
		require.NoError(t, err)
	}
	require.NoError(t, s.SavePause(nil))
	require.Nil(t, s.Pause())
	require.NoError(t, s.Close())
}

// TestLeftOfAPause: a wall clock that was set must not lengthen it.
func TestLeftOfAPause(t *testing.T) {
	began := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	p := &Pause{Until: began.Add(time.Hour), For: time.Hour}
	for after, left := range map[time.Duration]time.Duration{
		0: time.Hour, time.Minute: 59 * time.Minute, time.Hour: 0, 48 * time.Hour: 0,
		-48 * time.Hour: time.Hour,
	} {
		require.Equal(t, left, p.Left(began.Add(after)), after)
	}
	require.Zero(t, (*Pause)(nil).Left(began))
}
