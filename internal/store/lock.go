package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/bmqelect/bmqelect/internal/base/regular"
)

// lockDir takes the directory for this process. The lock is the kernel's and
// goes with the process; the file stays.
func lockDir(dir string) (*os.File, error) {
	f, err := regular.Open(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: open the lock of the data directory: %w", ErrNotDurable, err)
	}
	locked, err := tryLock(f)
	switch {
	case err != nil:
		err = fmt.Errorf("lock data directory %s: %w", dir, err)
	case !locked:
		err = fmt.Errorf("%w: %s%s", ErrLocked, dir, holder(f))
	default:
		note(f)
		return f, nil
	}
	_ = f.Close()
	return nil, err
}

// LockFile is the file whose lock keeps other processes out of the directory, for a
// program that has it held open by another process. It is not to be used otherwise.
func (s *Store) LockFile() *os.File { return s.lock }

// note leaves the pid for whoever finds the directory locked. It is a courtesy
// only: on a full disk the lock holds without it.
func note(f *os.File) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	}
}

// holder returns " (pid n)" if the holder of the lock has left its pid.
func holder(f *os.File) string {
	text := make([]byte, 20)
	n, _ := f.ReadAt(text, 0)
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:n])))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", pid)
}
