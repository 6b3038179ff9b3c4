package main_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// failWrites makes every write of a process to a file fail from now on.
func failWrites(t *testing.T, pid int) {
	err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{}, nil)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		t.Skipf("needs the right to limit another process: %v", err)
	}
	require.NoError(t, err)
}
