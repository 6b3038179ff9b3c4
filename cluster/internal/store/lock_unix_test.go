//go:build unix

package store

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A child that was forked has its parent's files, and so the lock, until it calls exec.
func TestAnOpenWaitsForChildrenThatHaveNotCalledExec(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	child, err := syscall.Dup(int(s.LockFile().Fd()))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	time.AfterFunc(lockPatience/10, func() { _ = syscall.Close(child) })
	s, err = OpenExisting(dir)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
