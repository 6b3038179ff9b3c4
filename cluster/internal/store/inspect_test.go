package store

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// bbolt believes its list of free pages, and writes to them.
func TestDamagedFreelistNeverChangesTheTerm(t *testing.T) {
	intact, d := sample(t), newDamaged(t)
	put16, get64, put64 := binary.NativeEndian.PutUint16, binary.NativeEndian.Uint64,
		binary.NativeEndian.PutUint64
	const meta = 16 // the header of a page
	newest := intact[meta:]
	if other := intact[pageSize+meta:]; get64(other[48:]) > get64(newest[48:]) {
		newest = other
	}
	freelist, pages := get64(newest[32:]), get64(newest[40:])
	for name, damage := range map[string]func(page []byte){
		"not a free list": func(page []byte) { put16(page[8:], 0x20) },
		"too long":        func(page []byte) { put16(page[10:], 0xFFFE) },
		"a meta page":     func(page []byte) { put16(page[10:], 1); put64(page[16:], 1) },
		"itself":          func(page []byte) { put16(page[10:], 1); put64(page[16:], freelist) },
		"beyond the end":  func(page []byte) { put16(page[10:], 1); put64(page[16:], pages) },
		"twice the same": func(page []byte) {
			put16(page[10:], 2)
			put64(page[16:], 2)
			put64(page[24:], 2)
		},
	} {
		content := bytes.Clone(intact)
		damage(content[freelist*pageSize:])
		require.NoError(t, d.try(content), name)
	}
}

// TestRecordOfAnEarlierCommitIsCorrupt restores an earlier record, which is whole and valid, below
// newer meta pages.
func TestRecordOfAnEarlierCommitIsCorrupt(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	require.NoError(t, s.Persist(exact{"a": 7}.terms()))
	var earlier []byte
	require.NoError(t, s.file.db.View(func(tx *bolt.Tx) error {
		earlier = bytes.Clone(tx.Bucket(bucketName).Get(recordName))
		return nil
	}))
	require.NoError(t, s.Persist(exact{"a": 8}.terms()))
	require.NoError(t, s.file.db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketName).Put(recordName, earlier)
	}))
	require.NoError(t, s.Close())
	_, err := Open(dir, alice)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "the last commit is")
}

func TestFileOfAnotherProgramIsCorrupt(t *testing.T) {
	dir := t.TempDir()
	db, err := bolt.Open(filepath.Join(dir, stateFile), 0o600, &bolt.Options{PageSize: pageSize})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = Open(dir, alice)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, `bucket "bmqelect" is missing`)
}

func TestOpenSyncsEveryCommit(t *testing.T) {
	s := opened(t, t.TempDir())
	require.False(t, s.file.db.NoSync)
	require.False(t, s.file.db.NoGrowSync)
}
