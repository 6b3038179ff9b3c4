package clock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// TestAnAlarmThatIsClosedSetsNoOther: another may have its number by then.
func TestAnAlarmThatIsClosedSetsNoOther(t *testing.T) {
	before := openTimers(t)
	closed := make([]*clock.BootAlarm, 20)
	for i := range closed {
		var err error
		closed[i], err = clock.NewBootAlarm()
		require.NoError(t, err)
	}
	for _, a := range closed {
		a.Close()
	}
	require.Eventually(t, func() bool { return openTimers(t) == before },
		testkit.Limit(10*time.Second), time.Millisecond)
	for _, a := range closed {
		require.NoError(t, a.Set(1), "with nobody else there")
	}
	var others []*clock.BootAlarm
	for range closed {
		a, err := clock.NewBootAlarm()
		require.NoError(t, err)
		defer a.Close()
		require.NoError(t, a.Set(clock.Never))
		others = append(others, a)
	}
	for _, a := range closed {
		require.NoError(t, a.Set(1))
	}
	time.Sleep(20 * time.Millisecond)
	for _, a := range others {
		require.Empty(t, a.Rings())
	}
	system := clock.NewAlarm(clock.System())
	system.Close()
	require.Eventually(t, func() bool { return openTimers(t) == before+len(others) },
		testkit.Limit(10*time.Second), time.Millisecond)
	require.NotPanics(t, func() { system.Set(1) })
}

func TestAnAlarmIsSetWithoutMemory(t *testing.T) {
	a := clock.NewAlarm(clock.System())
	defer a.Close()
	require.Zero(t, testing.AllocsPerRun(100, func() { a.Set(clock.Never) }))
}
