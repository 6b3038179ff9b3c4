package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"github.com/bmqelect/bmqelect/internal/base/regular"
)

// The parts of bbolt's file format that inspect reads: two meta pages, written
// in turn, each a page header and then the meta with a checksum at its end.
const (
	pageSize     = 4096 // ours, not the system's, so that files can move between machines
	headerSize   = 16
	metaSumAt    = 56
	metaMagic    = 0xED0CDAED
	metaVersion  = 2
	freelistFlag = 0x10
)

type meta struct{ freelist, pages, commit uint64 }

// inspect checks what bbolt leaves unchecked when it opens a file.
//
// bbolt takes the older meta page if the newer one is damaged. That is the state
// before the last commit: a lower term, although the higher one was fsynced and
// perhaps voted in. A commit that a crash cut short leaves both pages whole,
// since a meta lies within one disk sector; so one bad page is damage. The file
// must also be as long as the meta says, or its mapping faults, and the free
// list must not name more pages than there are, because bbolt believes it.
func inspect(path string) error {
	f, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	newest, err := readMetas(f)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if pages := uint64(info.Size()) / pageSize; pages < newest.pages {
		return fmt.Errorf("file is cut short: it has %d whole pages of %d", pages, newest.pages)
	}
	return checkFreelist(f, newest)
}

// readMetas returns the newer of the two meta pages.
func readMetas(f io.ReaderAt) (meta, error) {
	var both [2]meta
	for i := range both {
		page := make([]byte, pageSize)
		if _, err := f.ReadAt(page, int64(i)*pageSize); errors.Is(err, io.EOF) {
			return meta{}, fmt.Errorf("file is cut short within meta page %d", i)
		} else if err != nil {
			return meta{}, fmt.Errorf("read meta page %d: %w", i, err)
		}
		var err error
		if both[i], err = parseMeta(page[headerSize:]); err != nil {
			return meta{}, fmt.Errorf("meta page %d: %w", i, err)
		}
	}
	return newer(both)
}

// newer demands what bbolt writes: even commits in page 0, odd ones in page 1.
func newer(both [2]meta) (meta, error) {
	even, odd := both[0].commit, both[1].commit
	switch {
	case even%2 == 0 && even+1 == odd:
		return both[1], nil
	case even%2 == 0 && odd+1 == even:
		return both[0], nil
	}
	return meta{}, fmt.Errorf("meta pages are of commits %d and %d, not of two in turn", even, odd)
}

func parseMeta(b []byte) (meta, error) {
	sum := fnv.New64a()
	sum.Write(b[:metaSumAt])
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	switch {
	case u32(b) != metaMagic:
		return meta{}, fmt.Errorf("magic number is %#x, not bbolt's %#x", u32(b), uint32(metaMagic))
	case u32(b[4:]) != metaVersion:
		return meta{}, fmt.Errorf("bbolt format is %d, not %d", u32(b[4:]), metaVersion)
	case u64(b[metaSumAt:]) != sum.Sum64():
		return meta{}, errors.New("checksum is wrong")
	case u32(b[8:]) != pageSize:
		return meta{}, fmt.Errorf("page size is %d, not %d", u32(b[8:]), pageSize)
	}
	return meta{freelist: u64(b[32:]), pages: u64(b[40:]), commit: u64(b[48:])}, nil
}

// checkFreelist demands a free list of distinct, existing, ascending pages.
func checkFreelist(f io.ReaderAt, m meta) error {
	header := make([]byte, headerSize)
	if _, err := f.ReadAt(header, int64(m.freelist)*pageSize); err != nil {
		return fmt.Errorf("read the free list's header at page %d: %w", m.freelist, err)
	}
	flags, count := binary.NativeEndian.Uint16(header[8:]), uint64(binary.NativeEndian.Uint16(header[10:]))
	if flags != freelistFlag || count >= m.pages {
		return fmt.Errorf("page %d is no free list of a file of %d pages", m.freelist, m.pages)
	}
	ids := make([]byte, 8*count)
	if _, err := f.ReadAt(ids, int64(m.freelist)*pageSize+headerSize); err != nil {
		return fmt.Errorf("read the free list at page %d: %w", m.freelist, err)
	}
	for last := uint64(1); len(ids) > 0; ids = ids[8:] {
		id := binary.NativeEndian.Uint64(ids)
		if id <= last || id >= m.pages || id == m.freelist {
			return fmt.Errorf("free list at page %d names page %d, after page %d, of %d pages", m.freelist, id, last, m.pages)
		}
		last = id
	}
	return nil
}
