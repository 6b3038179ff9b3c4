package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/bmqelect/bmqelect/internal/base/limit"
)

const (
	// lockPatience bounds the wait for bbolt's own lock. The directory's lock is held by
	// then, so it is in the way only if somebody deleted that one.
	lockPatience = 500 * time.Millisecond
	pageSize     = 4096 // ours, not the system's, so that files can move between machines
)

var (
	bucketName = []byte("bmqelect")
	recordName = []byte("state")
)

// inspect checks what bbolt leaves unchecked when it opens a file: it takes the older
// of its two meta pages if the newer one is damaged. That is the state before the last
// commit: a lower term, although the higher one was fsynced and perhaps voted in. A
// commit that a crash cut short leaves both pages whole, since a meta lies within one
// disk sector; so one bad page is damage. The metas are written in turn, even commits
// to page 0, odd ones to page 1. Nor may the file be shorter than the newer one says.
func inspect(path string) error {
	const ( // within a meta page of bbolt
		start     = 16 // after the page's header
		pagesAt   = 40
		commitAt  = 48
		sumAt     = 56
		magic     = 0xED0CDAED
		version   = 2
		sizeOfAll = 2 * pageSize
	)
	f, err := limit.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	metas := make([]byte, sizeOfAll)
	if _, err := f.ReadAt(metas, 0); errors.Is(err, io.EOF) {
		return errors.New("file is cut short within its meta pages")
	} else if err != nil {
		return fmt.Errorf("read meta pages: %w", err)
	}
	var commits, pages [2]uint64
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	for i := range commits {
		meta := metas[i*pageSize+start:]
		sum := fnv.New64a()
		sum.Write(meta[:sumAt])
		switch {
		case u32(meta) != magic || u32(meta[4:]) != version || u32(meta[8:]) != pageSize:
			return fmt.Errorf("meta page %d is none of bbolt's format %d with pages of %d bytes",
				i, version, pageSize)
		case u64(meta[sumAt:]) != sum.Sum64():
			return fmt.Errorf("meta page %d: checksum is wrong", i)
		}
		commits[i], pages[i] = u64(meta[commitAt:]), u64(meta[pagesAt:])
	}
	newer := commits[0] % 2 // 0, or out of turn
	if commits[1] == commits[0]+1 {
		newer = 1
	} else if newer != 0 || commits[0] != commits[1]+1 {
		return fmt.Errorf("meta pages are of commits %d and %d, not of two in turn",
			commits[0], commits[1])
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if has := uint64(info.Size()) / pageSize; has < pages[newer] {
		return fmt.Errorf("file is cut short: it has %d whole pages of %d", has, pages[newer])
	}
	return nil
}

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

// read returns the record of the last commit. It refuses that of an earlier one, whole
// and valid, to which a damaged page number can lead.
func (f *file) read() (s state, err error) {
	err = f.guarded(func() error {
		return f.db.View(func(tx *bolt.Tx) (err error) {
			bucket := tx.Bucket(bucketName)
			if bucket == nil {
				return fmt.Errorf("bucket %q is missing", bucketName)
			}
			s, err = decode(bucket.Get(recordName))
			if err == nil && s.Commit != tx.ID() {
				err = fmt.Errorf("record is of commit %d, the last commit is %d", s.Commit, tx.ID())
			}
			return err
		})
	})
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

// checkAt returns an error unless the file is the one at path. The kernel writes on to a
// file that was deleted, and no start would ever find what it wrote.
func (f *file) checkAt(path string) error {
	ours, err := f.raw.Stat()
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

// close lets go of the file. A db that panicked cannot be closed: it did not return from
// Open, or Close could wait for ever. Its memory map stays until the process ends and
// would keep bbolt's lock alive: so it unlocks the file.
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
