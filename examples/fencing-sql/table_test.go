package main

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/lsn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func at(term lsn.Term, counter uint64) lsn.LSN { return lsn.LSN{Term: term, Counter: counter} }

// newTable opens the table of a fresh database, with its row.
func newTable(t *testing.T) *Table {
	t.Helper()
	return openTable(t, filepath.Join(t.TempDir(), "test.db"))
}

func openTable(t *testing.T, file string) *Table {
	t.Helper()
	table, err := open(t.Context(), file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, table.db.Close()) })
	return table
}

func requireRow(t *testing.T, table *Table, value string, fence lsn.LSN) {
	t.Helper()
	gotValue, gotFence, err := table.Read(t.Context(), row)
	require.NoError(t, err)
	require.Equal(t, value, gotValue)
	require.Equal(t, fence, gotFence)
}

func TestTableRefusesAReplacedLeader(t *testing.T) {
	table, ctx := newTable(t), t.Context()
	require.NoError(t, table.Write(ctx, at(5, 2), row, "by the old leader"))
	require.NoError(t, table.Write(ctx, at(6, 1), row, "by the new leader"))

	err := table.Write(ctx, at(5, 3), row, "late")
	var stale *lsn.StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, lsn.StaleError{Got: at(5, 3), Newest: at(6, 1)}, *stale)
	require.EqualError(t, err, `write row "jobs": `+stale.Error())
	requireRow(t, table, "by the new leader", at(6, 1))

	require.NoError(t, table.Write(ctx, at(6, 1), row, "again"), "the same token may come again")
	requireRow(t, table, "again", at(6, 1))
}

// TestOrderOfBytes has tokens whose order as numbers, text or bytes in the
// wrong order would be another.
func TestOrderOfBytes(t *testing.T) {
	table := newTable(t)
	for _, token := range []lsn.LSN{at(1, 255), at(1, 256), at(2, 0), at(2, 9), at(2, 10), at(256, 1),
		at(lsn.MaxTerm, 1<<64-1)} {
		require.NoError(t, table.Write(t.Context(), token, row, token.String()))
		requireRow(t, table, token.String(), token)
	}
}

func TestTableRefusesWhatIsOfNoLeadership(t *testing.T) {
	table := newTable(t)
	for _, token := range []lsn.LSN{{}, at(0, 7), at(lsn.MaxTerm+1, 1)} {
		err := table.Write(t.Context(), token, row, "forgotten token")
		require.ErrorContains(t, err, "token "+token.String()+" is of no leadership")
	}
	requireRow(t, table, "", lsn.LSN{})
}

func TestOnlyRowsThatAreThereAreWritten(t *testing.T) {
	table, ctx := newTable(t), t.Context()
	require.ErrorIs(t, table.Write(ctx, at(1, 1), "no such row", "x"), sql.ErrNoRows)

	require.NoError(t, table.Write(ctx, at(1, 1), row, "kept"))
	require.NoError(t, table.Create(ctx, row), "a row that is there keeps its fence")
	requireRow(t, table, "kept", at(1, 1))
}

func TestFenceSurvivesAReopen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	before := openTable(t, file)
	require.NoError(t, before.Write(t.Context(), at(6, 1), row, "kept"))
	require.NoError(t, before.db.Close())

	after := openTable(t, file)
	require.ErrorAs(t, after.Write(t.Context(), at(5, 9), row, "late"), new(*lsn.StaleError))
	requireRow(t, after, "kept", at(6, 1))
}

// checkThenWrite is how not to do it. pause is what may happen to a process
// anywhere.
func checkThenWrite(ctx context.Context, table *Table, token lsn.LSN, value string,
	pause func()) error {
	_, newest, err := table.Read(ctx, row)
	if err != nil {
		return err
	}
	if token.Less(newest) {
		return &lsn.StaleError{Got: token, Newest: newest}
	}
	pause()
	fence, err := key(token)
	if err != nil {
		return err
	}
	_, err = table.db.ExecContext(ctx, `UPDATE resource SET value = ?, fence = ? WHERE name = ?`,
		value, fence, row)
	return err
}

// TestCheckThenWriteIsWrong pauses the old leader where it hurts most.
func TestCheckThenWriteIsWrong(t *testing.T) {
	table, ctx := newTable(t), t.Context()
	newLeader := func() { require.NoError(t, table.Write(ctx, at(6, 1), row, "by the new leader")) }

	require.NoError(t, checkThenWrite(ctx, table, at(5, 3), "by the old leader", newLeader))
	// what the new leader wrote is lost, and so is the fence
	requireRow(t, table, "by the old leader", at(5, 3))

	newLeader()
	err := table.Write(ctx, at(5, 3), row, "by the old leader")
	require.ErrorAs(t, err, new(*lsn.StaleError), "one statement has no place for the pause")
	requireRow(t, table, "by the new leader", at(6, 1))
}

// TestFenceNeverGoesBack lets leaders of many terms write at once; the database
// itself notes the order in which it took the tokens.
func TestFenceNeverGoesBack(t *testing.T) {
	const writers, writes = 4, 100
	table := newTable(t)
	_, err := table.db.ExecContext(t.Context(), `
		CREATE TABLE history (id INTEGER PRIMARY KEY AUTOINCREMENT, fence BLOB);
		CREATE TRIGGER remember AFTER UPDATE ON resource BEGIN INSERT INTO history (fence) VALUES (NEW.fence); END`)
	require.NoError(t, err)

	admitted, errs := make([]int, writers), make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() { admitted[i], errs[i] = writeMany(t.Context(), table, uint64(i), writes) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))

	taken := history(t, table)
	require.Len(t, taken, admitted[0]+admitted[1]+admitted[2]+admitted[3])
	for i := 1; i < len(taken); i++ {
		require.False(t, taken[i].Less(taken[i-1]), "%s after %s", taken[i], taken[i-1])
	}
}

// writeMany writes with tokens that rise, except for some that come late.
func writeMany(ctx context.Context, table *Table, seed uint64, writes int) (admitted int,
	err error) {
	random := rand.New(rand.NewPCG(seed, 1))
	for n := range writes {
		token := at(lsn.Term(1+max(0, n-random.IntN(10))), random.Uint64N(3))
		err := table.Write(ctx, token, row, token.String())
		var stale *lsn.StaleError
		switch {
		case err == nil:
			admitted++
		case !errors.As(err, &stale):
			return admitted, err
		case !stale.Got.Less(stale.Newest):
			return admitted, errors.New("refused without reason: " + err.Error())
		}
	}
	return admitted, nil
}

func history(t *testing.T, table *Table) (taken []lsn.LSN) {
	t.Helper()
	rows, err := table.db.QueryContext(t.Context(), `SELECT fence FROM history ORDER BY id`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var b []byte
		var fence lsn.LSN
		require.NoError(t, rows.Scan(&b))
		require.NoError(t, fence.UnmarshalBinary(b))
		taken = append(taken, fence)
	}
	require.NoError(t, rows.Err())
	return taken
}
