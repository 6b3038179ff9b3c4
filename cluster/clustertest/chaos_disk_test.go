package clustertest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// disk is the disk of a member. All processes of the member use it, one after another.
type disk struct {
	dir string

	mu   sync.Mutex // held while the file is written
	mode diskMode
	free chan struct{} // closed when the mode changes
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

// tear carries out a part of a write: some of its sectors, at random. It omits the meta pages at
// the start of the file. The database syncs all other pages before it writes a meta, which says
// which pages are valid and lies within one sector. So a torn write has no new meta.
func (d *disk) tear(p *process, write func() error) error {
	const sector, start = 512, 2 * 4096
	path := filepath.Join(d.dir, "state.db")
	before, err := os.ReadFile(path)
	if err == nil {
		err = write()
	}
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	before = append(before, make([]byte, max(0, int(info.Size())-len(before)))...)
	for at := 0; at < len(before) && err == nil; at += sector {
		if at < start || p.writes.Below(2) == 0 {
			_, err = file.WriteAt(before[at:min(at+sector, len(before))], int64(at))
		}
	}
	return errors.Join(err, file.Close())
}

// copyTo copies the current content of the disk to another directory.
func (d *disk) copyTo(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range []string{"state.db", "IDENTITY"} {
		content, err := os.ReadFile(filepath.Join(d.dir, name))
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
