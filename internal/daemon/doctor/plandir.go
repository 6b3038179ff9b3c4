package doctor

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/store"
)

// dataDir looks at a data directory, or at where it is to be made.
func (d *draft) dataDir(p Plan) {
	where, mark := p.File, len(d.Checks)
	dir := p.Config.DataDir
	d.owner(p, where)
	if !d.since(mark) {
		return
	}
	parent, err := existing(dir)
	if err != nil {
		d.problem(Fail, DataDirUnusable, "data dir", where, "%s", err)
		return
	}
	d.permissions(dir, where)
	writes, err := timeWrites(parent)
	if err != nil {
		d.problem(Fail, DataDirUnusable, "data dir", where, "cannot write to %s: %s", parent, err)
		return
	}
	if d.since(mark) {
		d.sound("data dir", where, "%s is free and can be written to", dir)
	}
	d.speed(where, writes, p.Config)
	d.space(where, parent)
}

// owner looks at whose the directory is, by opening it as a node that is stopped.
func (d *draft) owner(p Plan, where string) {
	if !holdsState(p.Config.DataDir) {
		return
	}
	who, err := OwnerOf(p.Config.DataDir)
	switch {
	case errors.Is(err, store.ErrLocked):
		d.problem(Fail, DataDirInUse, "data dir", where, "%s", err)
	case errors.Is(err, store.ErrCorrupt):
		d.problem(Fail, DataDirDamaged, "data dir", where, "%s", err)
	case err != nil:
		d.problem(Fail, DataDirUnusable, "data dir", where, "%s", err)
	case who != ownerIn(p.Config):
		d.problem(Fail, DataDirOwner, "data dir", where, "%s is that of node %s of cluster %s, not of %s of %s",
			p.Config.DataDir, who.Node, who.Cluster, p.Config.Node, p.Config.Cluster)
	}
}

// holdsState reports whether a node ever ran on dir, by one of the two files that
// say so.
func holdsState(dir string) bool {
	return slices.ContainsFunc([]string{"state.db", "IDENTITY"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

// ownerIn is whose a node's directory must be.
func ownerIn(c cluster.Config) store.Owner {
	return store.Owner{Cluster: cmp.Or(c.Cluster, cluster.DefaultCluster), Node: string(c.Node)}
}

// OwnerOf tells whose a data directory is. The errors are those of store.OpenExisting.
func OwnerOf(dir string) (store.Owner, error) {
	s, err := store.OpenExisting(dir)
	if err != nil {
		return store.Owner{}, err
	}
	return s.Owner(), s.Close()
}

// existing is dir, or the nearest one above it that is there.
func existing(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	for err == nil {
		info, failed := os.Stat(dir)
		switch {
		case failed == nil && info.IsDir():
			return dir, nil
		case failed == nil:
			return "", errors.New(dir + " is a file, but must be a directory")
		case !errors.Is(failed, fs.ErrNotExist):
			return "", failed
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

func (d *draft) permissions(dir, where string) {
	info, err := os.Stat(dir)
	if err != nil || runtime.GOOS == "windows" {
		return // not there yet: it is made with the right ones
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		d.problem(Warn, DataDirOpen, "data dir", where, "%s has the permissions %04o: others may write there", dir, mode)
	}
}

const (
	trialWrites = 7
	trialSize   = 4096 // bytes: a page of the state
)

// timeWrites measures writes to a scratch file, each synced, sorted.
func timeWrites(dir string) (took []time.Duration, err error) {
	f, err := os.CreateTemp(dir, ".bmqnode-doctor-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, trialSize)
	for range trialWrites {
		began := time.Now()
		if _, err := f.Write(page); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took, nil
}

// speed compares the disk with the timers: a vote is two or three syncs.
func (d *draft) speed(where string, took []time.Duration, c cluster.Config) {
	const syncs, margin = 3, 4
	middle, worst, most := took[len(took)/2], took[len(took)-1], c.Election.Timing.ElectionResult
	round := func(t time.Duration) time.Duration { return t.Round(10 * time.Microsecond) }
	if most > 0 && syncs*margin*worst > most {
		d.problem(Warn, DiskSlow, "disk", where, "an fsync takes %s, %s at worst: too long for an election-result of %s", round(middle), round(worst), most)
		return
	}
	d.sound("disk", where, "an fsync takes %s, %s at worst", round(middle), round(worst))
}

// Free space below which to warn, and to fail.
const (
	littleSpace = 64 << 20
	noSpace     = 1 << 20
)

func (d *draft) space(where, dir string) {
	free, known := freeSpace(dir)
	switch {
	case !known:
	case free < noSpace:
		d.problem(Fail, DiskFull, "disk", where, "%d kB are free at %s", free>>10, dir)
	case free < littleSpace:
		d.problem(Warn, DiskFull, "disk", where, "%d MB are free at %s", free>>20, dir)
	}
}

// fewFiles is a limit of open files that a busy node may meet.
const fewFiles = 1024

// machine looks at what concerns every node here.
func (d *draft) machine() {
	if clockGoesOn() {
		d.sound("clock", "", "CLOCK_BOOTTIME goes on while the machine sleeps")
	} else {
		d.problem(Warn, ClockStops, "clock", "", "this system has no CLOCK_BOOTTIME")
	}
	limit, known := fileLimit()
	switch {
	case !known:
	case limit < fewFiles:
		d.problem(Warn, FewFiles, "files", "", "this shell lets a process open %d files", limit)
	default:
		d.sound("files", "", "this shell lets a process open %d files", limit)
	}
}
