package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/bmqelect/bmqelect/internal/base/limit"
)

// lockDir locks the directory for this process. The kernel releases the lock when the
// process ends; the file stays. It holds the pid, for the error that another process gets.
func lockDir(dir string) (*os.File, error) {
	f, err := limit.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: open the lock of the data directory: %w", ErrNotDurable, err)
	}
	locked, err := tryLock(f)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	if locked {
		if f.Truncate(0) == nil { // on a full disk the lock holds without it
			_, _ = f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
		}
		return f, nil
	}
	text := make([]byte, 20)
	n, _ := f.ReadAt(text, 0)
	_ = f.Close()
	holder := ""
	if pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:n]))); err == nil {
		holder = fmt.Sprintf(" (pid %d)", pid)
	}
	return nil, fmt.Errorf("%w: %s%s", ErrLocked, dir, holder)
}

// LockFile returns the file whose lock keeps other processes out of the directory, for a
// program that lets another process hold it open. It must not be used otherwise.
func (s *Store) LockFile() *os.File { return s.lock }
