package main_test

import (
	"bytes"
	"errors"
	"os"
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

// mountSmall makes dir a file system of that size for the test.
func mountSmall(t *testing.T, dir, size string) {
	require.NoError(t, os.MkdirAll(dir, 0o700))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("needs the right to mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
}

// fill makes a file that leaves no room where it is.
func fill(t *testing.T, file string) {
	f, err := os.Create(file)
	require.NoError(t, err)
	defer f.Close()
	for err == nil {
		_, err = f.Write(bytes.Repeat([]byte{1}, 4096))
	}
	require.ErrorIs(t, err, unix.ENOSPC)
}
