package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	bolterrors "go.etcd.io/bbolt/errors"
)

var (
	// ErrNotDurable says that a write did not reach the disk, that an earlier one did not,
	// or that the directory cannot be used. The node must stop taking part in elections.
	ErrNotDurable = errors.New("not durable")

	// ErrCorrupt says that the state in the data directory is damaged or gone.
	ErrCorrupt = errors.New("durable state is corrupt")

	// ErrNewer says that a newer program has written the state. Nothing is wrong with it.
	ErrNewer = errors.New("written by a newer program")

	// ErrLocked says that another process has the data directory, or another Store
	// of this one.
	ErrLocked = errors.New("data directory is in use")

	// ErrOwner says that the data directory belongs to another node.
	ErrOwner = errors.New("wrong data directory")
)

// corruptAdvice is part of every error about damaged state: its reader may be tempted to
// start over at term 0, which breaks elections.
const corruptAdvice = "do not restore an older copy: the node could vote twice in one term; " +
	"move the data directory away, make sure that the other voters have a leader, " +
	"then start this node with an empty one"

// Owner names the one node that a data directory belongs to.
type Owner struct {
	Cluster string // the cluster's name; not empty
	Node    string // the node's name in it; not empty
}

// Store is the durable state of one node. Make one with Open.
type Store struct {
	dir  string
	lock *os.File
	disk Disk                 // set by a test; nil is the real disk, to which every write is synced
	sync func(*os.File) error // of the journal
	many int                  // manyGroups; few on the disk of a test, where groups are few

	mu      sync.Mutex // held while the disk writes, which may take for ever
	file    *file
	journal *journal          // nil in a directory without records
	values  map[string][]byte // of records, by group, that are in the journal and not in file
	dirty   bool              // state has changes that are not in the file, and need not be
	saved   uint64            // state.Forgotten in the file
	dropped map[string]bool   // groups that were forgotten and have an entry in the file
	failed  error             // why nothing more can be written; nil if writes succeed

	// state is changed with mu held. Reading it never waits for the disk, but what it has of groups
	// is read with mu or maps held, too.
	state atomic.Pointer[state]

	// maps is held while what state has of groups is changed in place. It is never held while the
	// disk writes.
	maps   sync.Mutex
	opened []string // groups whose entries in Idle the next commit removes

	peersMu sync.Mutex // apart from mu: a write of the peers must not delay a term
	peers   []string   // as saved last
}

// Disk stands between a store and its file, for tests of what a disk can do: it
// gets every write after the file was made, and decides whether and when to call
// write, and what the store learns. It must not call the store.
type Disk func(write func() error) error

// Open opens the data directory dir for owner, and makes it on the node's first
// boot. It returns once the raised boot counter is on disk.
//
// The error wraps ErrLocked if another process has the directory, ErrCorrupt if
// its state is damaged or gone, ErrNotDurable if it cannot be written. A
// directory that belongs to another node or cluster is an error, too.
func Open(dir string, owner Owner) (*Store, error) { return OpenOn(dir, owner, nil) }

// OpenOn is Open, on a disk of a test: then nothing is synced. With a nil disk it is Open.
func OpenOn(dir string, owner Owner, disk Disk) (*Store, error) {
	err := errors.Join(checkName("cluster", owner.Cluster), checkName("node", owner.Node))
	if err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", dir, err)
	}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("%w: data directory %s: %w", ErrNotDurable, dir, err)
	}
	return openWith(dir, disk, func(s *Store) error { return s.start(owner) })
}

// OpenExisting opens the data directory of a node that is stopped, for looking
// at it and for repairing it. It makes nothing: neither a directory nor a state,
// and the boot counter stays, since no node starts.
//
// It waits a moment for a directory that is locked: a process that has closed it still holds the
// lock through each child that it has forked and that has not yet called exec. Its errors are
// those of Open, and an error that says so if dir is no data directory.
func OpenExisting(dir string) (*Store, error) {
	there, err := hasState(dir)
	if err == nil && !there {
		err = fmt.Errorf("there is no %s in it, so it is no data directory of a node that has run",
			stateFile)
	}
	if err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", dir, err)
	}
	s, err := openWith(dir, nil, (*Store).load)
	for end := time.Now().Add(lockPatience); errors.Is(err, ErrLocked) && time.Now().Before(end); {
		time.Sleep(lockPatience / 50)
		s, err = openWith(dir, nil, (*Store).load)
	}
	return s, err
}

// Check returns why no node of that owner could start on dir now, or nil. It leaves
// nothing behind; if there is no directory yet, it must be possible to make it. Its errors
// are those of Open. ErrLocked without ErrOwner means that a node of that owner runs.
func Check(dir string, owner Owner) error {
	there, err := hasState(dir)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		err = fmt.Errorf("%w: %w", ErrNotDurable, err)
	}
	if err != nil {
		return err
	}
	if there {
		s, err := OpenExisting(dir)
		if errors.Is(err, ErrLocked) && !marked(dir, owner) {
			err = fmt.Errorf("%w: %w", ErrOwner, err)
		} else if err == nil {
			err = errors.Join(s.checkOwner(owner), s.Close())
		}
		if err != nil {
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

// openWith locks the directory, and then calls do, which loads the state.
func openWith(dir string, disk Disk, do func(*Store) error) (*Store, error) {
	dir, err := filepath.Abs(dir) // the process may change its working directory
	if err == nil {
		err = checkModes(dir)
	}
	var lock *os.File
	if err == nil {
		lock, err = lockDir(dir)
	}
	if err != nil {
		return nil, unusable(err)
	}
	s := &Store{
		dir: dir, lock: lock, disk: disk, sync: datasync, many: manyGroups, values: map[string][]byte{},
		dropped: map[string]bool{},
	}
	if disk != nil {
		s.sync, s.many = func(*os.File) error { return nil }, 1
	}
	if err := do(s); err != nil {
		return nil, errors.Join(withRoom(dir, unusable(err)), s.Close())
	}
	return s, nil
}

// unusable wraps an error of the operating system, such as a missing permission, in
// ErrNotDurable. Errors of this package stay as they are.
func unusable(err error) error {
	for _, known := range []error{ErrNotDurable, ErrCorrupt, ErrNewer, ErrLocked, ErrOwner} {
		if errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrNotDurable, err)
}

// errFull marks an error to which withRoom has added its advice.
var errFull = errors.New("the disk is full")

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// withRoom adds advice to the error of a full disk: where to free space, and how much. The
// recordings and the state of few groups take less than 2 MiB. That of very many is written beside
// the old one; as much again is a margin.
func withRoom(dir string, err error) error {
	if !isFull(err) || errors.Is(err, errFull) {
		return err
	}
	room := int64(2)
	if info, err := os.Stat(filepath.Join(dir, stateFile)); err == nil {
		room += 2 * info.Size() >> 20
	}
	return fmt.Errorf("%w; %w: free %d MiB in the file system of %s and start the node again; until "+
		"then it does not vote, and it has lost nothing", err, errFull, room, dir)
}

// start loads the state, making it first if there never was one, and counts the start.
func (s *Store) start(owner Owner) error {
	there, err := hasState(s.dir)
	if err == nil && !there {
		err = s.create(owner)
	}
	if err == nil {
		err = s.load()
	}
	if err == nil {
		err = s.checkOwner(owner)
	}
	if err == nil && s.Owner() != owner {
		err = s.unmark()
	}
	if err != nil {
		return err
	}
	next := s.state.Load().clone()
	next.Boot++
	next.Cluster = owner.Cluster
	next.age()
	s.loadPeers()
	if err := s.commit("raise the boot counter", next, nil); err != nil {
		return err
	}
	return s.mark()
}

// load reads the state file, which exists, and the journal. A file that is damaged is ErrCorrupt;
// one that could not be read now is not.
func (s *Store) load() error {
	path := filepath.Join(s.dir, stateFile)
	err := inspect(path)
	if err == nil {
		s.file, err = openFile(path, s.disk != nil)
	}
	if err == nil {
		var st state
		st, err = s.file.read()
		s.state.Store(&st)
		for _, group := range st.Fresh {
			value, wrong := s.value(group)
			s.values[group], err = value, cmp.Or(err, wrong)
		}
	}
	if err == nil && len(s.state.Load().Records) > 0 {
		path = filepath.Join(s.dir, journalFile)
		err = s.replay()
	}
	var refused syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%w: %s is locked", ErrLocked, path)
	case errors.As(err, &refused):
		return fmt.Errorf("read durable state in %s: %w", path, err)
	case errors.Is(err, ErrNewer):
		return fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Errorf("%w: %s: %w; %s", ErrCorrupt, path, err, corruptAdvice)
}

// replay brings the state up to date with the journal.
func (s *Store) replay() (err error) {
	st := s.state.Load()
	size := max(st.Journal, journalSize)
	if s.journal, err = s.openJournal(st.Identity, size, false); err != nil {
		return err
	}
	batches, err := s.journal.read(st.Commit)
	for _, batch := range batches {
		news, wrong := st.decodeBatch(batch)
		err = cmp.Or(err, wrong)
		st.set(news, s.values)
	}
	return err
}

// checkOwner refuses another node's directory. A node that was started with a wrong cluster
// name may correct it as long as its directory holds no term: a node sends votes and promises
// only when their term is on disk, so this one has sent none.
func (s *Store) checkOwner(owner Owner) error {
	has := s.Owner()
	if has == owner || has.Node == owner.Node && s.state.Load().blank() {
		return nil
	}
	return fmt.Errorf("%w: %s belongs to node %q of cluster %q, "+
		"not to node %q of cluster %q: every node needs one of its own",
		ErrOwner, s.dir, has.Node, has.Cluster, owner.Node, owner.Cluster)
}

// Owner returns the node that the directory belongs to.
func (s *Store) Owner() Owner {
	st := s.state.Load()
	return Owner{Cluster: st.Cluster, Node: st.Node}
}

// Identity returns the UUID that was made with the directory.
func (s *Store) Identity() uuid.UUID { return s.state.Load().Identity }

// Boot returns how often the directory was opened, this time included: 1 on the
// first boot.
func (s *Store) Boot() uint64 { return s.state.Load().Boot }

// commit makes next and the new values of records durable, then next current. The caller holds mu,
// or has the store for itself. After the first failure every commit fails.
func (s *Store) commit(doing string, next state, fresh map[string][]byte) error {
	values := maps.Clone(s.values)
	maps.Copy(values, fresh)
	for _, group := range s.takeOpened() {
		delete(next.Idle, group)
	}
	err := s.write(doing, stateFile, func() (err error) {
		if s.journal == nil && len(next.Records) > 0 {
			s.journal, err = s.openJournal(next.Identity, journalSize, true)
		}
		if err == nil && s.journal != nil {
			err = s.journal.grow(s.file.size)
			next.Journal = s.journal.size
		}
		if err == nil {
			err = s.file.write(&next, values)
		}
		return err
	})
	if err != nil {
		return err
	}
	s.state.Store(&next)
	s.dirty, s.saved = false, next.Forgotten
	clear(s.values)
	clear(s.dropped)
	if s.journal != nil {
		s.journal.begin(next.Commit)
	}
	return nil
}

// takeOpened returns the groups that were opened since the last commit.
func (s *Store) takeOpened() []string {
	s.maps.Lock()
	defer s.maps.Unlock()
	opened := s.opened
	s.opened = nil
	return opened
}

// write calls do, which writes to a file of the directory, unless a write has failed.
func (s *Store) write(doing, file string, do func() error) error {
	if s.failed == nil && s.disk != nil {
		s.fail(file, s.disk(do))
	} else if s.failed == nil {
		s.fail(file, do())
	}
	return s.stands(doing)
}

// fail notes why nothing more can be written, if err says that something is wrong with a file.
func (s *Store) fail(file string, err error) {
	if err != nil && s.failed == nil {
		s.failed = fmt.Errorf("%s: %w", filepath.Join(s.dir, file), err)
	}
}

// Check returns nil as long as the next start will find what was written. That a file was
// deleted, moved or replaced is final, like a failed write (ErrNotDurable).
func (s *Store) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stands("find the state again")
}

// stands returns why nothing more can be written; the caller holds mu, or has the store
// for itself.
func (s *Store) stands(doing string) error {
	if s.failed == nil {
		s.fail(stateFile, checkAt(s.file.raw, filepath.Join(s.dir, stateFile)))
	}
	if s.failed == nil && s.journal != nil {
		s.fail(journalFile, checkAt(s.journal.file, filepath.Join(s.dir, journalFile)))
	}
	if s.failed != nil {
		return withRoom(s.dir, fmt.Errorf("%w: %s: %w", ErrNotDurable, doing, s.failed))
	}
	return nil
}

// Close releases the directory. It waits for a write that is under way. The state stays
// readable; writes fail. Closing again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	var err error
	if s.file != nil {
		s.maps.Lock()
		dirty := s.dirty || len(s.opened) > 0
		s.maps.Unlock()
		if dirty {
			_ = s.commit("forget elections", s.state.Load().clone(), nil) // not needed: see Forget
		}
		err = s.file.close()
	}
	if s.journal != nil {
		err = errors.Join(err, s.journal.file.Close())
	}
	err = errors.Join(err, s.lock.Close())
	s.lock, s.failed = nil, errors.Join(s.failed, errors.New("the store is closed"))
	if err != nil {
		return fmt.Errorf("close data directory %s: %w", s.dir, err)
	}
	return nil
}
