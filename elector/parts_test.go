package elector

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Of a hundred thousand elections most only follow or lead. What they take is here, in bytes on
// machines of 64 bits: whoever adds a field decides in which part it costs least.
func TestSizes(t *testing.T) {
	const s64 = unsafe.Sizeof(uintptr(0)) / 8
	for name, c := range map[string]struct{ size, most uintptr }{
		"Machine":   {unsafe.Sizeof(Machine{}), 352},
		"following": {unsafe.Sizeof(followerState{}), 160},
		"leading":   {unsafe.Sizeof(leaderState{}), 288},
		"voter":     {unsafe.Sizeof(voterState{}), 56},
	} {
		require.LessOrEqual(t, c.size*s64, c.most, name)
	}
}
