package store

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockAt is past the pid in the file, which would be unreadable if locked.
const lockAt = 1 << 20

// tryLock locks f for this process until f is closed. It does not wait.
func tryLock(f *os.File) (bool, error) {
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0,
		&windows.Overlapped{Offset: lockAt})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// unlock has nothing to do: the lock goes when f is closed.
func unlock(*os.File) error { return nil }

// syncDir does nothing: NTFS journals names, and a directory cannot be synced.
func syncDir(string) error { return nil }
