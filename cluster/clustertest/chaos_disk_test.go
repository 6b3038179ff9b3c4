package clustertest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/elector"
)

// disk is the disk of a member. All processes of the member use it, one after another.
type disk struct {
	dir string

	mu   sync.Mutex // held while the file is written
	mode diskMode
	free chan struct{} // closed when the mode changes

	known atomic.Pointer[elector.Identity] // see identity
}

// identity is that of the data directory on the disk, which has one.
func (d *disk) identity() elector.Identity {
	if known := d.known.Load(); known != nil {
		return *known
	}
	text, err := os.ReadFile(filepath.Join(d.dir, "IDENTITY"))
	if err != nil {
		panic(err)
	}
	_, after, _ := strings.Cut(string(text), "identity ")
	id := elector.Identity(uuid.MustParse(after[:36]))
	d.known.Store(&id)
	return id
}

// diskMode is what the disk does with a write.
type diskMode string

const (
	healthy diskMode = "healthy"
	failing diskMode = "failing" // an error, and nothing is written
	lying   diskMode = "lying"   // an error, although it is written
	full    diskMode = "full"
	hanging diskMode = "hanging" // no answer before the mode changes
	torn    diskMode = "torn"    // an error, and a part of it is written
	slow    diskMode = "slow"    // each write takes up to slowest
)

// slowest is the longest that a write takes on a slow disk: longer than a lease.
const slowest = 4 * time.Second

func newDisk(dir string) *disk {
	return &disk{dir: dir, mode: healthy, free: make(chan struct{})}
}

func (d *disk) set(mode diskMode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.free)
	d.mode, d.free = mode, make(chan struct{})
}

// write carries out a write of a process, as the mode says.
func (d *disk) write(p *process, write func() error) error {
	time.Sleep(200*time.Microsecond + p.writes.UpTo(3*time.Millisecond))
	for {
		mode, free := d.state()
		if mode != hanging || p.Killed() {
			d.delay(p, mode)
			break
		}
		select {
		case <-free:
		case <-p.Done():
		}
	}
	if err := d.commit(p, write); err != nil {
		return err
	}
	p.Wait()
	return nil
}

func (d *disk) delay(p *process, mode diskMode) {
	if mode != slow {
		return
	}
	select {
	case <-time.After(p.writes.UpTo(slowest)):
	case <-p.Done():
	}
}

func (d *disk) state() (diskMode, chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mode, d.free
}

func (d *disk) commit(p *process, write func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case p.Killed():
		return d.cutShort(p, write)
	case d.mode == torn:
		return errors.Join(d.tear(p, write), syscall.EIO)
	case d.mode == failing:
		return syscall.EIO
	case d.mode == full:
		return syscall.ENOSPC
	case d.mode == lying:
		return errors.Join(write(), syscall.EIO)
	}
	return write()
}

// cutShort carries out a write whose process is killed or whose machine loses power: nothing of
// it reaches the disk, or a part, or all.
func (d *disk) cutShort(p *process, write func() error) (err error) {
	switch p.writes.Below(3) {
	case 0:
		err = d.tear(p, write)
	case 1:
		err = write()
	}
	return errors.Join(err, errors.New("the process is no more"))
}

// The files of the store, and where the part of each begins that a torn write may change. The
// database syncs all other pages before it writes a meta, which says which pages are valid and lies
// within one sector. So a torn write has no new meta.
var torable = map[string]int{"state.db": 2 * 4096, "state.journal": 0}

// tear carries out a part of a write: some of its sectors, at random.
func (d *disk) tear(p *process, write func() error) error {
	before := map[string][]byte{}
	for name := range torable {
		content, err := os.ReadFile(filepath.Join(d.dir, name))
		if err == nil {
			before[name] = content
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err := write()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if err == nil {
			err = d.undo(p, name, before[name])
		}
	}
	return err
}

// undo takes back some sectors of what was written to a file.
func (d *disk) undo(p *process, name string, before []byte) error {
	const sector = 512
	end := 0
	after, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		return err
	}
	before = append(before, make([]byte, max(0, len(after)-len(before)))...)
	last := []byte(nil) // the newest sector that was changed, and what it was
	for at := 0; at < len(before); at += sector {
		is, was := after[at:at+sector], before[at:at+sector]
		if bytes.Equal(is, was) {
			continue
		}
		if last = was; at < torable[name] || p.writes.Below(2) == 0 {
			copy(is, was)
		}
		end = at
	}
	if name == "state.journal" && last != nil { // the seal, which follows when the batch is on disk
		copy(after[end:], last)
	}
	return os.WriteFile(filepath.Join(d.dir, name), after, 0o600)
}

// copyTo copies the current content of the disk to another directory.
func (d *disk) copyTo(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range []string{"state.db", "state.journal", "IDENTITY"} {
		content, err := os.ReadFile(filepath.Join(d.dir, name))
		if name == "state.journal" && errors.Is(err, fs.ErrNotExist) {
			continue // it has no records
		}
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("nothing to copy yet: %w", err)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
