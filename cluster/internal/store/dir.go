package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/bmqelect/bmqelect/internal/base/limit"
)

// The files in a data directory.
const (
	stateFile   = "state.db"      // the bbolt file
	newFile     = "state.db.new"  // the same while it is being made
	journalFile = "state.journal" // what was changed since the last commit to the state file
	markerFile  = "IDENTITY"      // says that there was a state file, and whose
	lockFile    = "LOCK"          // locked while a process has the directory; holds its pid
)

// makeDir makes the data directory and what is missing above it, durably.
func makeDir(dir string) error {
	if there, err := exists(dir); there || err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make data directory: %w", err)
	}
	return syncDir(parent)
}

// checkModes refuses a directory or state file that every user of the machine may change:
// a user who restores an older state makes the node vote twice in one term. The group may
// change it, since storage drivers demand that. In a sticky directory nobody can replace
// the file of another user.
func checkModes(dir string) error {
	for _, name := range []string{"", stateFile, journalFile} {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case info.Mode()&fs.ModeSticky == 0 && info.Mode()&0o002 != 0 && runtime.GOOS != "windows":
			return fmt.Errorf("every user may change %s, mode %s: run 'chmod o-w %s'",
				path, info.Mode(), path)
		}
	}
	return nil
}

// hasState tells a first boot from a directory that has lost its state file.
func hasState(dir string) (bool, error) {
	state, err := exists(filepath.Join(dir, stateFile))
	if state || err != nil {
		return state, err
	}
	marker, err := exists(filepath.Join(dir, markerFile))
	if marker {
		err = fmt.Errorf("%w: %s is gone, though %s shows that it was there; %s",
			ErrCorrupt, filepath.Join(dir, stateFile), markerFile, corruptAdvice)
	}
	return false, err
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// create makes the state file under another name and renames it: a crash leaves either
// no state file or a whole one.
func (s *Store) create(owner Owner) error {
	temporary := filepath.Join(s.dir, newFile)
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what an interrupted first boot left: %w", err)
	}
	f, err := openFile(temporary, s.disk != nil)
	if err == nil {
		first := newState(owner)
		err = errors.Join(f.write(&first, nil), f.close())
	}
	if err != nil {
		return fmt.Errorf("%w: make %s: %w", ErrNotDurable, temporary, err)
	}
	if err := os.Rename(temporary, filepath.Join(s.dir, stateFile)); err != nil {
		return fmt.Errorf("%w: %w", ErrNotDurable, err)
	}
	return s.syncNames()
}

// mark writes the marker unless it exists. It is written after the state file, so a
// directory with a marker has had a state file.
func (s *Store) mark() error {
	path := filepath.Join(s.dir, markerFile)
	if there, err := exists(path); there || err != nil {
		return err
	}
	text := fmt.Sprintf(markerStart+"identity %s.\n"+
		"%s holds what the node must not forget. Never restore an older copy of it.\n",
		s.Owner().Node, s.Owner().Cluster, s.Identity(), stateFile)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("%w: %w", ErrNotDurable, err)
	}
	return s.syncNames()
}

// markerStart is how a marker begins, with the names of a node and its cluster.
const markerStart = "This is the data directory of node %q of cluster %q, "

// marked reports whether the marker of a directory, which may be locked, names the owner.
func marked(dir string, owner Owner) bool {
	text, err := limit.ReadFile(filepath.Join(dir, markerFile), 64<<10)
	return err == nil &&
		bytes.HasPrefix(text, fmt.Appendf(nil, markerStart, owner.Node, owner.Cluster))
}

// unmark removes the marker, which names another cluster. The caller then calls mark.
func (s *Store) unmark() error {
	err := os.Remove(filepath.Join(s.dir, markerFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNotDurable, err)
	}
	return nil
}

// syncNames makes the names in the directory durable.
func (s *Store) syncNames() error {
	if s.disk != nil {
		return nil
	}
	return syncDir(s.dir)
}
