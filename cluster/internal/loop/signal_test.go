package loop

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestASignalReachesWhoWaitsAndWhoComesLater(t *testing.T) {
	var s signal
	before := s.Done()
	require.Equal(t, before, s.Done(), "there is one channel")
	select {
	case <-before:
		t.Fatal("nothing has happened")
	default:
	}
	s.happen()
	s.happen()
	<-before
	<-s.Done()
}

func TestASignalForNobodyTakesNoMemory(t *testing.T) {
	all := make([]signal, 100)
	require.Zero(t, testing.AllocsPerRun(50, func() {
		all[0].happen()
		<-all[0].Done()
		all = all[1:]
	}))
}

// See TestSizes of package elector.
func TestSizes(t *testing.T) {
	const s64 = unsafe.Sizeof(uintptr(0)) / 8
	require.LessOrEqual(t, unsafe.Sizeof(Election{})*s64, uintptr(352))
	require.LessOrEqual(t, unsafe.Sizeof(group{})*s64, uintptr(256))
}
