package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// fiveVoters are those of the records of these tests.
var fiveVoters = elector.NewRoster(
	elector.Voter{Node: "alice", Identity: elector.Identity{1}},
	elector.Voter{Node: "bob", Identity: elector.Identity{2}},
	elector.Voter{Node: "carol", Identity: elector.Identity{3}},
	elector.Voter{Node: "dave", Identity: elector.Identity{4}},
	elector.Voter{Node: "eve"},
)

// recorded returns what is durable of a group in that term after its leader wrote a value.
func recorded(term lsn.Term, counter uint64, value []byte) Durable {
	at := lsn.LSN{Term: term, Counter: counter}
	return Durable{
		Terms: elector.Terms{Entered: term, Reserved: term + 15}, Value: value,
		Record: elector.Record{LSN: at, Voters: fiveVoters, Value: elector.Value{
			LSN: at, Size: uint32(len(value)), Hash: sha256.Sum256(value),
		}},
	}
}

// copied is a directory with the files of a store that is open, as after a SIGKILL.
func copied(t testing.TB, from string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{stateFile, journalFile, markerFile} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if !os.IsNotExist(err) {
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		}
	}
	return dir
}

func TestRecordsOutliveTheProcess(t *testing.T) {
	s := opened(t, t.TempDir())
	big, small := bytes.Repeat([]byte("big"), elector.MaxValue/3), []byte("small")
	want := map[string]Durable{"a": recorded(2, 1, big), "b": recorded(5, 3, nil)}
	require.NoError(t, s.Persist(want), "the state file has it")
	require.Equal(t, brief(want), brief(contents(t, opened(t, copied(t, s.dir)), want)))

	want["b"], want["c"] = recorded(5, 4, small), exact{"c": 7}.terms()["c"]
	require.NoError(t, s.Persist(want), "the journal has it")
	before := s.journal.at
	next := recorded(9, 1, big)
	next.Record.Value, next.Value = want["a"].Record.Value, nil
	require.NoError(t, s.Persist(map[string]Durable{"a": next}))
	require.EqualValues(t, before+pageSize, s.journal.at, "the value is not written again")
	next.Value = big
	want["a"] = next
	require.Equal(t, brief(want), brief(contents(t, s, want)))

	want["d"], want["e"] = recorded(1, 1, []byte("four")), recorded(1, 1, []byte("fifth"))
	require.NoError(t, s.Persist(want), "two values in one batch")

	none := recorded(9, 1, nil) // the first record anew: what followed that was not committed
	none.Record.Value = elector.Value{}
	want["d"] = none
	require.NoError(t, s.Persist(want), "a record without a value")
	dir := copied(t, s.dir)
	for range 2 {
		s = opened(t, dir)
		require.Equal(t, brief(want), brief(contents(t, s, want)))
		require.NoError(t, s.Persist(exact{"c": 8}.terms()))
		want["c"] = exact{"c": 8}.terms()["c"]
		require.NoError(t, s.Close())
	}
	e := existing(t, dir)
	require.Equal(t, brief(want), brief(contents(t, e, want)))
	require.NoError(t, e.Declare(flood))
	got, err := e.Group("a")
	require.NoError(t, err)
	require.Equal(t, next.Record, got.Record, "an emergency writes no record")
	require.Equal(t, lsn.Term(24+FloorStep), got.Terms.Entered)
}

// A commit that failed may be in the page cache only, and the next start believes it.
func TestValuesOfTheNewestCommitAreWrittenAgain(t *testing.T) {
	lies, dir := false, t.TempDir()
	s, err := OpenOn(dir, alice, func(write func() error) error {
		if err := write(); err != nil || !lies {
			return err
		}
		return errors.New("fsync")
	})
	require.NoError(t, err)
	want := map[string]Durable{"a": recorded(5, 1, []byte("value")), "b": recorded(5, 1, nil)}
	lies = true
	require.ErrorIs(t, s.Persist(want), ErrNotDurable)
	require.NoError(t, s.Close())
	for range 2 { // this start may fail, too
		s = existing(t, dir)
		require.Equal(t, map[string][]byte{"a": []byte("value"), "b": nil}, s.values)
		require.NoError(t, s.Close())
		s, err = Open(dir, alice)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	require.Equal(t, brief(want), brief(contents(t, opened(t, dir), want)))
}

func TestRecordsAreCheckedBeforeTheyAreWritten(t *testing.T) {
	s := opened(t, t.TempDir())
	has := map[string]Durable{"a": recorded(5, 2, []byte("value"))}
	require.NoError(t, s.Persist(has))
	for want, d := range map[string]Durable{
		"does not follow the durable record=5.2": recorded(5, 1, []byte("older")),
		"follow the durable record=5.2 voters=a": recorded(5, 2, []byte("other")),
		"a value of 0 bytes is not that of recor": func() Durable {
			d := recorded(5, 3, []byte("x"))
			d.Value = nil
			return d
		}(),
		"a value of 1 bytes is not that of recor": func() Durable {
			d := recorded(5, 3, []byte("x"))
			d.Value = []byte("y")
			return d
		}(),
		"is above the entered term 5": func() Durable {
			d := recorded(6, 1, nil)
			d.Terms.Entered = 5
			return d
		}(),
		"term 4 is below the durable term 5": recorded(4, 1, nil),
		"voters: there are 0": {
			Terms: has["a"].Terms, Record: elector.Record{LSN: lsn.LSN{Term: 5, Counter: 3}},
		},
	} {
		err := s.Persist(map[string]Durable{"a": d, "b": recorded(1, 1, nil)})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, `group "a"`)
		require.NotErrorIs(t, err, ErrNotDurable)
	}
	require.Equal(t, brief(has), brief(contents(t, s, has)))
	requireGroup(t, s, "b", 0)
	at := s.journal.at
	require.NoError(t, s.Persist(has), "it is there")
	require.Equal(t, at, s.journal.at)
}

// TestAJournalGrowsWithTheState: the state of many groups is not written each time that a few of
// them change.
func TestAJournalGrowsWithTheState(t *testing.T) {
	smallJournal(t)
	const groups = 1000
	s, err := OpenOn(t.TempDir(), alice, unsynced)
	require.NoError(t, err)
	want := map[string]Durable{}
	for counter := range uint64(3) {
		before := s.state.Load().Commit
		for i := range groups {
			name, d := fmt.Sprint("group", i), recorded(5, counter+1, nil)
			want[name] = d
			require.NoError(t, s.Persist(map[string]Durable{name: d}))
		}
		commits := s.state.Load().Commit - before
		t.Logf("%d commits, a journal of %d bytes", commits, s.journal.size)
		if counter > 0 {
			require.Less(t, int64(commits), groups*pageSize/s.journal.size+2)
			require.Greater(t, s.journal.size, 4*journalSize)
		}
	}
	dir := copied(t, s.dir)
	path := filepath.Join(dir, journalFile)
	require.NoError(t, os.Truncate(path, s.journal.size+1), "it was about to grow again")
	after := opened(t, dir)
	require.Equal(t, brief(want), brief(contents(t, after, want)))
	require.NoError(t, after.Close())
	require.NoError(t, s.Close())

	require.NoError(t, os.Truncate(path, journalSize))
	_, err = OpenOn(dir, alice, unsynced)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, fmt.Sprint("it has 65536 bytes, not ", s.journal.size))
}

// A journal that finds no room to grow stays as it is: that costs only writes.
func TestAJournalWithoutRoomStaysAsItIs(t *testing.T) {
	smallJournal(t)
	s, err := OpenOn(t.TempDir(), alice, unsynced)
	require.NoError(t, err)
	require.NoError(t, s.Persist(map[string]Durable{"first": recorded(5, 1, nil)}))
	full := 0
	s.journal.sync = func(f *os.File) error {
		if info, err := f.Stat(); err != nil || info.Size() > journalSize {
			full++
			return errors.Join(err, syscall.ENOSPC)
		}
		return nil
	}
	want := map[string]Durable{}
	for i := range 1000 {
		name := fmt.Sprint("group", i)
		want[name] = recorded(5, 1, nil)
		require.NoError(t, s.Persist(map[string]Durable{name: want[name]}))
	}
	require.Positive(t, full)
	require.Equal(t, brief(want), brief(contents(t, opened(t, copied(t, s.dir)), want)))
	require.NoError(t, s.Close())
}

// A quorum may count on the record of a group that is closed.
func TestAGroupWithARecordIsNotForgotten(t *testing.T) {
	dir := t.TempDir()
	want := map[string]Durable{"a": recorded(5, 2, []byte("value"))}
	for range idleStarts + 2 {
		s := opened(t, dir)
		require.NoError(t, s.Persist(want))
		s.Forget("a")
		require.NoError(t, s.Close())
	}
	require.Equal(t, brief(want), brief(contents(t, opened(t, dir), want)))
}

// used is a directory as after a SIGKILL: values in the state file and in the journal.
func used(t *testing.T) (dir string, want map[string]Durable) {
	t.Helper()
	s, err := OpenOn(t.TempDir(), alice, unsynced)
	require.NoError(t, err)
	want = map[string]Durable{"a": recorded(5, 1, []byte("first")), "b": recorded(6, 1, nil)}
	for range 4 {
		want["b"] = recorded(6, want["b"].Record.LSN.Counter+1, bytes.Repeat([]byte("b"), 4500))
		want["c"] = recorded(7, want["b"].Record.LSN.Counter, []byte("journal"))
		require.NoError(t, s.Persist(want))
	}
	dir = copied(t, s.dir)
	require.NoError(t, s.Close())
	return dir, want
}

// readOrCorrupt reads a damaged directory. What it returns must be as it was.
func readOrCorrupt(t *testing.T, dir string, want map[string]Durable, what string) {
	t.Helper()
	s, err := openWith(dir, unsynced, (*Store).load)
	if err != nil {
		require.ErrorIs(t, err, ErrCorrupt, what)
		return
	}
	for name, d := range want {
		if has, err := s.Group(name); err != nil {
			require.ErrorIs(t, err, ErrCorrupt, what)
		} else {
			one, other := map[string]Durable{name: has}, map[string]Durable{name: d}
			require.Equal(t, brief(other), brief(one), what)
		}
	}
	_ = s.Close()
}

func TestDamageNeverChangesARecord(t *testing.T) {
	smallJournal(t)
	dir, want := used(t)
	for _, name := range []string{stateFile, journalFile} {
		path := filepath.Join(dir, name)
		intact, err := os.ReadFile(path)
		require.NoError(t, err)
		for at, was := range intact {
			if was == 0 && at%211 != 0 || was == 'b' && at%97 != 0 {
				continue
			}
			content := bytes.Clone(intact)
			content[at] ^= []byte{0x01, 0x80, 0xFF}[at%3]
			require.NoError(t, overwrite(path, content))
			readOrCorrupt(t, dir, want, fmt.Sprintf("byte %d of %s", at, name))
		}
		for size := 0; size < len(intact); size += 997 {
			require.NoError(t, overwrite(path, intact[:size]))
			readOrCorrupt(t, dir, want, fmt.Sprintf("first %d bytes of %s", size, name))
		}
		for page := 0; page < len(intact); page += pageSize {
			content := bytes.Clone(intact)
			clear(content[page : page+pageSize])
			require.NoError(t, overwrite(path, content))
			readOrCorrupt(t, dir, want, fmt.Sprintf("zeros at %d of %s", page, name))
		}
		require.NoError(t, overwrite(path, intact))
	}
	s, err := OpenOn(dir, alice, unsynced)
	require.NoError(t, err)
	require.Equal(t, brief(want), brief(contents(t, s, want)))
	require.NoError(t, s.Close())
}

func smallJournal(t *testing.T) {
	size := journalSize
	t.Cleanup(func() { journalSize = size })
	journalSize = 16 * pageSize
}

func TestAJournalThatIsNotTheDirectorysIsCorrupt(t *testing.T) {
	smallJournal(t)
	dir, _ := used(t)
	older := copied(t, dir)
	s, err := OpenOn(dir, alice, unsynced)
	require.NoError(t, err)
	require.NoError(t, s.Persist(map[string]Durable{"a": recorded(8, 1, nil)}))
	path, newer := filepath.Join(older, journalFile), filepath.Join(dir, journalFile)
	for _, c := range []struct {
		want   string
		damage func() error
	}{
		{"it is of commit 5, the state of commit 4", func() error {
			return errors.Join(os.Remove(path), os.Link(newer, path))
		}},
		{"it is gone, though the directory has records", func() error { return os.Remove(path) }},
		{"it has 1 bytes, not 65536", func() error { return os.WriteFile(path, []byte("x"), 0o600) }},
	} {
		require.NoError(t, c.damage())
		_, err := OpenOn(older, alice, unsynced)
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorContains(t, err, path+": "+c.want)
		require.ErrorContains(t, err, corruptAdvice)
	}
	require.NoError(t, os.Remove(newer))
	require.ErrorIs(t, s.Check(), ErrNotDurable)
	require.ErrorContains(t, s.Check(), newer+": the file was deleted or moved")
	_ = s.Close()
}

// BenchmarkPersistRecord writes values to the journal and, to compare, each to the state file.
func BenchmarkPersistRecord(b *testing.B) {
	for _, c := range []struct{ groups, others, size int }{
		{1, 0, 1 << 10}, {1, 3000, 1 << 10}, {20, 3000, 1 << 10}, {200, 3000, 1 << 10}, {1, 0, 1 << 20},
	} {
		for _, to := range []string{journalFile, stateFile} {
			name := fmt.Sprintf("groups=%d/others=%d/bytes=%d/%s", c.groups, c.others, c.size, to)
			b.Run(name, func(b *testing.B) {
				s, all := opened(b, b.TempDir()), map[string]Durable{}
				for i := range c.others + 1 {
					all[fmt.Sprint("other", i)] = recorded(1, 1, make([]byte, 1<<10))
				}
				require.NoError(b, s.Persist(all))
				for n := uint64(1); b.Loop(); n++ {
					clear(all)
					value := binary.BigEndian.AppendUint64(make([]byte, c.size-8, c.size), n)
					for i := range c.groups {
						all[fmt.Sprint(i)] = recorded(2, n, value)
					}
					if to == stateFile {
						s.journal.at = journalSize
					}
					require.NoError(b, s.Persist(all))
				}
				b.ReportMetric(float64(c.groups)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
			})
		}
	}
}
