package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

const sampleTerm lsn.Term = FloorStep + 1_000_003

// sample returns a state file that has seen an emergency and some commits, the term of group
// "a" rising with each, so that its free pages hold whole records of lower terms.
func sample(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	s, err := OpenOn(dir, alice, unsynced)
	require.NoError(t, err)
	require.NoError(t, s.Declare(flood))
	for term := sampleTerm - 6; term <= sampleTerm; term++ {
		require.NoError(t, s.Persist(exact{"a": term}.terms()))
	}
	require.NoError(t, s.Close())
	content, err := os.ReadFile(filepath.Join(dir, stateFile))
	require.NoError(t, err)
	return content
}

// damaged is a data directory whose state file is rewritten again and again.
type damaged struct {
	dir   string
	reads int // how often the damage did no harm
}

func newDamaged(t testing.TB) *damaged {
	t.Helper()
	d := &damaged{dir: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, markerFile), nil, 0o600))
	return d
}

// try opens content as the state file. It returns nil if the terms and the emergency are right
// or the error is ErrCorrupt.
func (d *damaged) try(content []byte) error {
	path := filepath.Join(d.dir, stateFile)
	if err := overwrite(path, content); err != nil {
		return err
	}
	s, err := OpenOn(d.dir, alice, unsynced)
	if errors.Is(err, ErrCorrupt) && bytes.Contains([]byte(err.Error()), []byte(path)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("not reported as corrupt, or not by name: %w", err)
	}
	d.reads++
	got, err := s.Group("a")
	if want := sampleTerm; err == nil && got.Terms.Entered != want {
		err = fmt.Errorf("read term %d, want %d", got.Terms, want)
	} else if e := s.Emergencies(); len(e) != 1 || !slices.Equal(e[0].Lost, flood.Lost) {
		err = fmt.Errorf("read emergencies %v", e)
	}
	return errors.Join(err, d.persistMore(s))
}

// overwrite writes without truncating first, which makes some file systems flush.
func overwrite(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	return errors.Join(err, f.Truncate(int64(len(content))), f.Close())
}

// persistMore writes to a file that was read: what the store reports as written must be there at
// the next start.
func (d *damaged) persistMore(s *Store) error {
	written := s.Persist(exact{"a": sampleTerm + 1}.terms())
	_ = s.Close() // bbolt may have met the damage only now
	if written != nil {
		return nil
	}
	s, err := OpenOn(d.dir, alice, unsynced)
	if errors.Is(err, ErrCorrupt) {
		return nil
	} else if err != nil {
		return err
	}
	got, err := s.Group("a")
	if err == nil && got.Terms.Entered != sampleTerm+1 {
		err = fmt.Errorf("persisted term %d, then read %d", sampleTerm+1, got.Terms)
	}
	_ = s.Close()
	return err
}

func TestFlippedByteNeverChangesTheTerm(t *testing.T) {
	intact, d := sample(t), newDamaged(t)
	for at := range intact {
		if intact[at] == 0 && at%61 != 0 {
			continue // most of the file is unused
		}
		for _, mask := range []byte{0x01, 0x80, 0xFF} {
			content := bytes.Clone(intact)
			content[at] ^= mask
			require.NoError(t, d.try(content), "byte %d of %d xor %#x", at, len(intact), mask)
		}
	}
	require.Positive(t, d.reads, "damage to unused bytes is none")
}

func TestTruncatedFileIsCorruptOrWhole(t *testing.T) {
	intact, d := sample(t), newDamaged(t)
	for size := 0; size < len(intact); size += 97 {
		require.NoError(t, d.try(intact[:size]), "first %d bytes of %d", size, len(intact))
	}
}

func TestPageInTheWrongPlaceNeverChangesTheTerm(t *testing.T) {
	intact, d := sample(t), newDamaged(t)
	page := func(b []byte, n int) []byte { return b[n*pageSize : (n+1)*pageSize] }
	for from := range len(intact) / pageSize {
		for to := range len(intact) / pageSize {
			content := bytes.Clone(intact)
			copy(page(content, to), page(intact, from))
			require.NoError(t, d.try(content), "page %d over page %d", from, to)
		}
	}
}

func TestForeignContentIsCorrupt(t *testing.T) {
	size := len(sample(t))
	for name, content := range map[string][]byte{
		"empty": {}, "zeros": make([]byte, size), "ones": bytes.Repeat([]byte{0xFF}, size),
		"text": bytes.Repeat([]byte("not a state file\n"), size/17),
	} {
		t.Run(name, func(t *testing.T) {
			d := newDamaged(t)
			require.NoError(t, d.try(content))
			require.Zero(t, d.reads)
		})
	}
}

func TestDamagedNewestMetaIsNotTakenForTheCommitBefore(t *testing.T) {
	intact, d := sample(t), newDamaged(t)
	for page := range 2 {
		content := bytes.Clone(intact)
		content[page*pageSize+16+56] ^= 1 // its checksum
		require.NoError(t, d.try(content))
	}
	require.Zero(t, d.reads)
}

// TestBboltTakesTheCommitBefore is the reason why inspect reads the meta pages itself: if the newer
// one is damaged, bbolt opens the file without an error and returns the state of the commit before.
func TestBboltTakesTheCommitBefore(t *testing.T) {
	intact := sample(t)
	var read []uint64
	for page := range 2 {
		content := bytes.Clone(intact)
		content[page*pageSize+16+56] ^= 1
		path := filepath.Join(t.TempDir(), stateFile)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		f, err := openFile(path, true)
		require.NoError(t, err)
		s, err := f.read()
		require.NoError(t, err)
		read = append(read, s.Groups["a"])
		require.NoError(t, f.close())
	}
	want := uint64(sampleTerm)
	require.ElementsMatch(t, []uint64{want - 1, want}, read)
}

func TestLostStateFileIsNoFirstBoot(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, opened(t, dir).Close())
	require.NoError(t, os.Remove(filepath.Join(dir, stateFile)))
	_, err := Open(dir, alice)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, filepath.Join(dir, stateFile)+" is gone")
	require.ErrorContains(t, err, "do not restore an older copy")
}

func TestUnreadableFileIsNotCalledCorrupt(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, opened(t, dir).Close())
	path := filepath.Join(dir, stateFile)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(path, path), "a link to itself cannot be opened, not even by root")
	_, err := Open(dir, alice)
	require.ErrorContains(t, err, path)
	require.NotErrorIs(t, err, ErrCorrupt)
	require.ErrorIs(t, err, ErrNotDurable, "so it is told that the directory cannot be used")
	require.ErrorIs(t, Check(dir, alice), ErrNotDurable)
}

func TestNewerFormatIsNotMisread(t *testing.T) {
	dir := t.TempDir()
	f := opened(t, dir)
	next := f.state.Load().clone()
	next.Format = formatJournal + 1
	require.NoError(t, f.file.db.Update(func(tx *bolt.Tx) error {
		next.Commit = tx.ID()
		record, err := next.encode()
		require.NoError(t, err)
		return tx.Bucket(bucketName).Put(recordName, record)
	}))
	require.NoError(t, f.Close())
	_, err := Open(dir, alice)
	require.ErrorIs(t, err, ErrNewer)
	require.NotErrorIs(t, err, ErrCorrupt)
	require.NotContains(t, err.Error(), "empty", "no advice to begin anew: the votes are there")
}

func TestRecordsThatAreWrongInThemselvesAreRefused(t *testing.T) {
	for want, change := range map[string]func(*state){
		"group \"a\" has term 9223372036854775808": func(s *state) {
			s.Groups["a"] = uint64(lsn.MaxTerm) + 1
		},
		"a forgotten group had term":  func(s *state) { s.Forgotten = uint64(lsn.MaxTerm) + 1 },
		"lacks the identity":          func(s *state) { s.Identity = uuid.Nil },
		"has format 0":                func(s *state) { s.Format = formatPlain - 1 },
		"format 6, this program":      func(s *state) { s.Format = formatJournal + 1 },
		"must have a time":            func(s *state) { s.Emergencies[0].Time = time.Time{} },
		"must name the voters":        func(s *state) { s.Emergencies[0].Lost = nil },
		"the name of a voter must be": func(s *state) { s.Emergencies[0].Lost = []elector.NodeID{""} },
		"lifts the terms to 9223372036854": func(s *state) {
			s.Emergencies[0].Floor = uint64(lsn.MaxTerm) + 1
		},
		`group "a" has entered term 6, not one below the reserved 5`: func(s *state) {
			s.Groups["a"], s.Entered = 5, numbers{"a": 6}
		},
	} {
		s := newState(alice)
		s.Emergencies = []Emergency{flood}
		change(&s)
		record, err := s.encode()
		require.NoError(t, err)
		_, err = decode(record)
		require.ErrorContains(t, err, want)
	}
	for _, record := range []string{"", "0123", "0123456g {}", "00000000 {}"} {
		_, err := decode([]byte(record))
		require.ErrorContains(t, err, "checksum", record)
	}
}
