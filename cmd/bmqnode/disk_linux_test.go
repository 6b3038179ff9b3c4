package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// failWrites makes every write of a process to a file fail from now on.
func failWrites(t *testing.T, pid int) {
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{}, nil))
}
