package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Check returns why no node of that owner could start on dir now, or nil. It makes
// nothing that lasts: where there is no directory yet, it must be possible to make it.
// Its errors are those of Open.
func Check(dir string, who Owner) error {
	there, err := found(dir)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		err = fmt.Errorf("%w: %w", ErrNotDurable, err)
	}
	if err != nil {
		return err
	}
	if there {
		s, err := OpenExisting(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(s.checkOwner(who), s.Close()); err != nil {
			return err
		}
	}
	above, err := filepath.Abs(dir)
	for ; err == nil; above = filepath.Dir(above) {
		if _, err := os.Stat(above); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	trial, err := os.CreateTemp(above, ".check-*")
	if err == nil {
		err = errors.Join(trial.Close(), os.Remove(trial.Name()))
	}
	if err != nil {
		return fmt.Errorf("%w: data directory %s: %w", ErrNotDurable, dir, err)
	}
	return nil
}

// OpenExisting opens the data directory of a node that is stopped, for looking
// at it and for mending it. It makes nothing: neither a directory nor a state,
// and the boot counter stays, since no node starts.
//
// Its errors are those of Open, and an error that says so if dir is no data directory.
func OpenExisting(dir string) (*Store, error) {
	there, err := found(dir)
	if err == nil && !there {
		err = fmt.Errorf("there is no %s in it, so it is no data directory of a node that has run", stateFile)
	}
	if err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", dir, err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, lock: lock}
	if err := s.load(options{}); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Owner returns the node that the directory belongs to.
func (s *Store) Owner() Owner {
	st := s.current()
	return Owner{Cluster: st.Cluster, Node: st.Node}
}
