//go:build race

package rawcall_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/rawcall"
)

// TestTheRaceDetectorSeesAllTransfers, because they are those of package net.
func TestTheRaceDetectorSeesAllTransfers(t *testing.T) {
	near, _ := pair(t)
	require.Same(t, near, rawcall.Conn(near))
}
