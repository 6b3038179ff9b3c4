package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/examples/coordinator/audit"
	"github.com/bmqelect/bmqelect/lsn"
)

func at(term lsn.Term, counter uint64) lsn.LSN { return lsn.LSN{Term: term, Counter: counter} }

// granted is an answer for a second.
func granted(stamp lsn.LSN, assigned map[int]lsn.LSN) answer {
	return answer{Stamp: stamp, Grant: time.Second, Assigned: assigned}
}

// openHold opens a worker of three partitions that keeps its files in dir.
func openHold(t *testing.T, dir string) *hold {
	t.Helper()
	f, err := openFences(filepath.Join(dir, "fences.json"), 3)
	require.NoError(t, err)
	j, err := audit.Open(filepath.Join(dir, "journal"), "a")
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return newHold("a", j, f)
}

func TestAnAssignmentIsInForceWhileItIsGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		h := openHold(t, dir)
		asked := time.Now()
		time.Sleep(600 * time.Millisecond) // the answer's way
		require.NoError(t, h.accept(asked, granted(at(1, 3), map[int]lsn.LSN{0: at(1, 1), 2: at(1, 2)})))
		require.Equal(t, map[int]lsn.LSN{0: at(1, 1), 2: at(1, 2)}, h.inForce())

		require.NoError(t, h.accept(time.Now(), granted(at(1, 4), map[int]lsn.LSN{2: at(1, 2)})))
		require.Equal(t, map[int]lsn.LSN{2: at(1, 2)}, h.inForce(), "what is not granted again has ended")
		require.Equal(t, []standing{{at(1, 1), false}, {}, {at(1, 2), true}}, h.question(false).Partitions)

		h.work()
		time.Sleep(time.Second)
		h.work()
		require.Empty(t, h.inForce(), "a grant ends by itself")
		lines, err := audit.Read(filepath.Join(dir, "journal"))
		require.NoError(t, err)
		last, before := lines[len(lines)-1], lines[len(lines)-2]
		require.Equal(t, []audit.Event{audit.Worked, audit.Ended}, []audit.Event{before.Event, last.Event})
		require.Equal(t, "expired", last.Why)
		require.Equal(t, time.Second, last.Time.Sub(before.Time), "nothing was done after it")
	})
}

func TestAnAnswerThatComesTooLateGrantsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		h := openHold(t, dir)
		asked := time.Now()
		time.Sleep(time.Second)
		require.NoError(t, h.accept(asked, granted(at(1, 3), map[int]lsn.LSN{0: at(1, 1)})))
		require.Empty(t, h.inForce())
		require.Equal(t, standing{Newest: at(1, 1)}, h.question(false).Partitions[0], "but it says that this one is over")
		lines, err := audit.Read(filepath.Join(dir, "journal"))
		require.NoError(t, err)
		require.Len(t, lines, 1, "only of its start")
	})
}

func TestWhatIsOlderIsRefusedAndHindersNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, openHold(t, dir).accept(time.Now(), granted(at(5, 3), map[int]lsn.LSN{0: at(5, 2)})))

	h := openHold(t, dir) // after a restart
	require.Empty(t, h.inForce())
	err := h.accept(time.Now(), granted(at(5, 4), map[int]lsn.LSN{0: at(5, 2), 1: at(5, 1)}))
	require.ErrorContains(t, err, "assignment of partition 0: lsn: stale: got 5.2 after 5.2")
	require.Equal(t, map[int]lsn.LSN{1: at(5, 1)}, h.inForce())

	err = h.accept(time.Now(), granted(at(4, 9), nil))
	require.ErrorContains(t, err, "answer of a leader that was replaced: lsn: stale: got 4.9 after 5.4")
	require.NotEmpty(t, h.inForce(), "and its answer takes nothing away")
}

func TestWhatCannotBeFencedIsNotPutInForce(t *testing.T) {
	dir := t.TempDir()
	h := openHold(t, dir)
	require.NoError(t, h.health())
	require.NoError(t, os.Mkdir(filepath.Join(dir, "fences.json.new"), 0o700))
	require.ErrorContains(t, h.accept(time.Now(), granted(at(1, 2), map[int]lsn.LSN{0: at(1, 1)})), "fences: save: ")
	require.Empty(t, h.inForce())
	require.ErrorContains(t, h.health(), "fences: save: ")

	require.NoError(t, os.Remove(filepath.Join(dir, "fences.json.new")))
	require.NoError(t, h.accept(time.Now(), granted(at(1, 4), map[int]lsn.LSN{0: at(1, 3)})))
	require.Len(t, h.inForce(), 1)
	require.NoError(t, h.health())
}

func TestAWorkerWithoutAJournalIsUnfit(t *testing.T) {
	h := openHold(t, t.TempDir())
	require.NoError(t, h.journal.Close())
	require.NoError(t, h.accept(time.Now(), granted(at(1, 2), map[int]lsn.LSN{0: at(1, 1)})))
	require.Empty(t, h.inForce(), "nothing begins off the record")
	require.ErrorContains(t, h.health(), "journal of node a: ")
}

func TestDamagedFencesAreNoFences(t *testing.T) {
	for text, want := range map[string]string{
		"":          "fences: read ",
		`["1.1"`:    "fences: read ",
		`["1","2"]`: "fences: read ",
		`["1.1"]`:   "has 1, want one for each of 3 partitions",
	} {
		file := filepath.Join(t.TempDir(), "fences.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := openFences(file, 3)
		require.ErrorContains(t, err, want, text)
	}
}
