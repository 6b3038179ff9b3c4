package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/bmqelect/bmqelect/internal/base/limit"
)

const (
	// lockPatience bounds the wait for bbolt's own lock, and that of OpenExisting for the lock of the
	// directory. Another process holds only bbolt's if somebody deleted the file of the other.
	lockPatience = 500 * time.Millisecond
	pageSize     = 4096 // ours, not the system's, so that files can move between machines
)

var (
	bucketName = []byte("bmqelect")
	recordName = []byte("state")
	valuesName = []byte("values") // the bucket of the records' values, by group
)

// inspect finds damage that bbolt passes over (TestBboltTakesTheCommitBefore): it opens a file
// whose newer meta page is damaged with the older one, and so with the state before the last
// commit: a lower term, although the higher one was fsynced and perhaps voted in. No function of
// bbolt tells which of the two it took. A crash leaves both pages whole, since a meta lies within
// one sector of the disk; so one bad page is damage. Even commits write page 0, odd ones page 1.
func inspect(path string) error {
	const metaAt, commitAt, sumAt, size = 16, 48, 56, 64 // in a page; then in the meta
	f, err := limit.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var commits [2]uint64
	for page := range commits {
		meta, sum := make([]byte, size), fnv.New64a()
		if _, err := f.ReadAt(meta, int64(page)*pageSize+metaAt); err != nil {
			return fmt.Errorf("read meta page %d: %w", page, err)
		}
		sum.Write(meta[:sumAt])
		if binary.NativeEndian.Uint64(meta[sumAt:]) != sum.Sum64() {
			return fmt.Errorf("meta page %d: checksum is wrong", page)
		}
		commits[page] = binary.NativeEndian.Uint64(meta[commitAt:])
	}
	if newest := max(commits[0], commits[1]); commits[newest%2] != newest ||
		commits[1-newest%2] != newest-1 {
		return fmt.Errorf("meta pages are of commits %d and %d, not of two in turn",
			commits[0], commits[1])
	}
	return nil
}

// file is one open bbolt file with the one record in it.
type file struct {
	db       *bolt.DB
	raw      *os.File // the file below db
	size     int      // of the record as read or written last, in bytes
	panicked bool     // db panicked, so its locks may be held for ever
}

// openFile opens the bbolt file at path, making an empty one if there is none.
func openFile(path string, noSync bool) (*file, error) {
	f := &file{}
	opts := &bolt.Options{
		Timeout: lockPatience, PageSize: pageSize,
		NoSync: noSync, NoGrowSync: noSync, NoStatistics: true,
		OpenFile: func(path string, flag int, perm os.FileMode) (raw *os.File, err error) {
			f.raw, err = limit.OpenFile(path, flag, perm)
			return f.raw, err
		},
	}
	err := f.guarded(func() (err error) {
		f.db, err = bolt.Open(path, 0o600, opts)
		return err
	})
	if err == nil {
		return f, nil
	}
	if f.panicked {
		_ = f.close()
	}
	return nil, err
}

// read returns the record of the last commit. It refuses the record of an earlier commit,
// which is whole and valid: a damaged page number can lead to it.
func (f *file) read() (s state, err error) {
	err = f.guarded(func() error {
		return f.db.View(func(tx *bolt.Tx) (err error) {
			bucket := tx.Bucket(bucketName)
			if bucket == nil {
				return fmt.Errorf("bucket %q is missing", bucketName)
			}
			record := bucket.Get(recordName)
			f.size = len(record)
			s, err = decode(record)
			if err == nil && s.Commit != tx.ID() {
				err = fmt.Errorf("record is of commit %d, the last commit is %d", s.Commit, tx.ID())
			}
			return err
		})
	})
	return s, err
}

// value returns the value of a group's record.
func (f *file) value(group string) (value []byte, err error) {
	err = f.guarded(func() error {
		return f.db.View(func(tx *bolt.Tx) error {
			if bucket := tx.Bucket(valuesName); bucket != nil {
				value = bytes.Clone(bucket.Get([]byte(group)))
			}
			return nil
		})
	})
	return value, err
}

// write commits s, whose Commit and Format it sets, and values of records. All is on disk
// if write returns nil; otherwise it may or may not be.
func (f *file) write(s *state, values map[string][]byte) error {
	return f.guarded(func() error {
		return f.db.Update(func(tx *bolt.Tx) error {
			s.Commit, s.Format = tx.ID(), s.wantFormat()
			s.Fresh = slices.Sorted(maps.Keys(values))
			record, err := s.encode()
			f.size = len(record)
			if err != nil {
				return err
			}
			bucket, err := tx.CreateBucketIfNotExists(bucketName)
			if err != nil {
				return err
			}
			err = bucket.Put(recordName, record)
			for group, value := range values {
				if err == nil {
					bucket, err = tx.CreateBucketIfNotExists(valuesName)
				}
				if err == nil {
					err = bucket.Put([]byte(group), value)
				}
			}
			return err
		})
	})
}

// checkAt returns an error unless the open file is the one at path. The kernel writes on to a
// file that was deleted, and no start would ever find what it wrote.
func checkAt(open *os.File, path string) error {
	ours, err := open.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(path)
	what := "replaced by another file"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what = "deleted or moved"
	case err != nil:
		return err
	case os.SameFile(ours, there):
		return nil
	}
	return fmt.Errorf("the file was %s while the node ran; if it was moved, stop the node "+
		"and move it back; otherwise %s", what, corruptAdvice)
}

// close closes the file. A db that panicked cannot be closed: it did not return from
// Open, or its Close could wait for ever. Its memory map stays until the process ends and
// would keep bbolt's lock, so close releases the lock.
func (f *file) close() error {
	if f.panicked {
		return errors.Join(unlock(f.raw), f.raw.Close())
	}
	return f.db.Close()
}

// guarded turns bbolt's panics into errors, and faults in its memory map too.
func (f *file) guarded(use func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			f.panicked = true
			err = fmt.Errorf("%w: bbolt: %v", ErrCorrupt, cause)
		}
	}()
	return use()
}
