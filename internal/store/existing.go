package store

import (
	"errors"
	"fmt"
)

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
