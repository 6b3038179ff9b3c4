package store

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/bmqelect/bmqelect/internal/base/regular"
)

// lockPatience bounds the wait for bbolt's own lock. The directory's lock is
// held by then, so only somebody who deleted that one can be in the way.
const lockPatience = 500 * time.Millisecond

var (
	bucketName = []byte("bmqelect")
	recordName = []byte("state")
)

// file is one open bbolt file with the one record in it.
type file struct {
	db       *bolt.DB
	raw      *os.File // the file below db
	panicked bool     // db panicked, so its locks may be held for ever
}

// openFile opens the bbolt file at path, making an empty one if there is none.
func openFile(path string, noSync bool) (*file, error) {
	f := &file{}
	opts := &bolt.Options{
		Timeout: lockPatience, PageSize: pageSize, NoSync: noSync, NoGrowSync: noSync, NoStatistics: true,
		OpenFile: func(path string, flag int, perm os.FileMode) (raw *os.File, err error) {
			f.raw, err = regular.Open(path, flag, perm)
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
		_ = f.abandon()
	}
	return nil, err
}

// read returns the record of the last commit.
func (f *file) read() (s state, err error) {
	err = f.guarded(func() error {
		return f.db.View(func(tx *bolt.Tx) (err error) {
			s, err = readRecord(tx)
			return err
		})
	})
	return s, err
}

// readRecord refuses a record of another commit than the last: a damaged page
// number can lead to the whole and valid record of an earlier one.
func readRecord(tx *bolt.Tx) (state, error) {
	bucket := tx.Bucket(bucketName)
	if bucket == nil {
		return state{}, fmt.Errorf("bucket %q is missing", bucketName)
	}
	s, err := decode(bucket.Get(recordName))
	if err == nil && s.Commit != tx.ID() {
		err = fmt.Errorf("record is of commit %d, the last commit is %d", s.Commit, tx.ID())
	}
	return s, err
}

// write commits s. It is on disk if write returns nil; otherwise it may or may
// not be.
func (f *file) write(s state) error {
	return f.guarded(func() error {
		return f.db.Update(func(tx *bolt.Tx) error {
			s.Commit, s.Format = tx.ID(), s.wantFormat()
			record, err := s.encode()
			if err != nil {
				return err
			}
			bucket, err := tx.CreateBucketIfNotExists(bucketName)
			if err != nil {
				return err
			}
			return bucket.Put(recordName, record)
		})
	})
}

func (f *file) close() error {
	if f.panicked {
		return f.abandon()
	}
	return f.db.Close()
}

// abandon lets go of a file whose db cannot be closed: it did not return from
// Open, or Close could wait for ever. The memory map stays until the process
// ends and would keep bbolt's lock alive, hence the unlock.
func (f *file) abandon() error {
	return errors.Join(unlock(f.raw), f.raw.Close())
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
