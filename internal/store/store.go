package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/google/uuid"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Owner names the one node that a data directory belongs to.
type Owner struct {
	Cluster string // the cluster's name; not empty
	Node    string // the node's name in it; not empty
}

// Store is the durable state of one node. Make one with Open.
type Store struct {
	dir  string
	lock *os.File
	disk Disk // nil for the real one

	mu     sync.Mutex // held while the disk writes, which may take for ever
	file   *file
	ahead  bool  // state says what the file does not yet, and need not
	failed error // why nothing more can be written; nil while all is well

	reading sync.Mutex // taken after mu, for moments: who only reads waits for no disk
	state   state      // changed with both held

	peers peers
}

// options are for tests.
type options struct {
	noSync bool
	disk   Disk
}

// Disk stands between a store and its file, for tests of what a disk can do: it
// gets every write after the file was made, and decides whether and when to call
// write, and what the store learns. It must not call the store.
type Disk func(write func() error) error

// Open opens the data directory dir for who, and makes it on the node's first
// boot. It returns once the raised boot counter is on disk.
//
// The error wraps ErrLocked if another process has the directory, ErrCorrupt if
// its state is damaged or gone, ErrNotDurable if it cannot be written. A
// directory that belongs to another node or cluster is an error, too.
func Open(dir string, who Owner) (*Store, error) { return open(dir, who, options{}) }

// OpenOn is Open for tests, on a disk of theirs. Nothing is synced.
func OpenOn(dir string, who Owner, disk Disk) (*Store, error) {
	return open(dir, who, options{noSync: true, disk: disk})
}

func open(dir string, who Owner, opts options) (*Store, error) {
	if err := errors.Join(checkName("cluster", who.Cluster), checkName("node", who.Node)); err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", dir, err)
	}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("%w: data directory %s: %w", ErrNotDurable, dir, err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, lock: lock, disk: opts.disk}
	if err := s.start(who, opts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start loads the state, making it first if there never was one.
func (s *Store) start(who Owner, opts options) error {
	there, err := found(s.dir)
	if err != nil {
		return err
	}
	if !there {
		if err := create(s.dir, who, opts.noSync); err != nil {
			return err
		}
	}
	if err := s.load(opts); err != nil {
		return err
	}
	if err := s.checkOwner(who); err != nil {
		return err
	}
	if err := mark(s.dir, s.state, opts.noSync); err != nil {
		return err
	}
	next := s.state.clone()
	next.Boot++
	next.age()
	s.loadPeers(&next)
	return s.commit("raise the boot counter", next)
}

// load reads the state file, which is there.
func (s *Store) load(opts options) error {
	path := filepath.Join(s.dir, stateFile)
	err := inspect(path)
	if err == nil {
		s.file, err = openFile(path, opts.noSync)
	}
	if err == nil {
		s.state, err = s.file.read()
	}
	if err != nil {
		return loadError(path, err)
	}
	return nil
}

// loadError tells damage from a file that merely could not be read now.
func loadError(path string, err error) error {
	var refused syscall.Errno
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%w: %s is locked", ErrLocked, path)
	case errors.As(err, &refused):
		return fmt.Errorf("read durable state in %s: %w", path, err)
	}
	return fmt.Errorf("%w: %s: %w; %s", ErrCorrupt, path, err, corruptAdvice)
}

func (s *Store) checkOwner(who Owner) error {
	has := Owner{s.state.Cluster, s.state.Node}
	if has == who {
		return nil
	}
	advice := "every node needs one of its own"
	if has.Node == who.Node {
		advice = fmt.Sprintf("if the node never ran in cluster %q as it should, but the name was mistyped, "+
			"move the directory away: the node makes a new one", has.Cluster)
	}
	return fmt.Errorf("%w: %s belongs to node %q of cluster %q, not to node %q of cluster %q: %s",
		ErrOwner, s.dir, has.Node, has.Cluster, who.Node, who.Cluster, advice)
}

// Identity returns the UUID that was made with the directory.
func (s *Store) Identity() uuid.UUID { return s.current().Identity }

// Boot returns how often the directory was opened, this time included: 1 on the
// first boot.
func (s *Store) Boot() uint64 { return s.current().Boot }

func (s *Store) current() state {
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.state
}

// commit makes next durable, then current. The caller holds mu, or has the
// store for itself. After the first failure every commit fails.
func (s *Store) commit(doing string, next state) error {
	write := func() error { return s.file.write(next) }
	switch {
	case s.failed != nil:
	case s.disk != nil:
		s.failed = s.disk(write)
	default:
		s.failed = write()
	}
	if s.failed != nil {
		return fmt.Errorf("%w: %s in %s: %w", ErrNotDurable, doing, filepath.Join(s.dir, stateFile), s.failed)
	}
	s.replace(next)
	s.ahead = false
	return nil
}

// replace makes next the state that readers see. The caller holds mu, or has the
// store for itself.
func (s *Store) replace(next state) {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.state = next
}

// Close releases the directory. It waits for a write that is under way; what was
// read stays readable, writes fail. Closing again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	var err error
	if s.file != nil {
		if s.ahead {
			_ = s.commit("forget elections", s.state) // not needed: see Forget
		}
		err = s.file.close()
	}
	err = errors.Join(err, s.lock.Close())
	s.lock, s.failed = nil, errors.Join(s.failed, errors.New("the store is closed"))
	if err != nil {
		return fmt.Errorf("close data directory %s: %w", s.dir, err)
	}
	return nil
}
