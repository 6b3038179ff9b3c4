package store

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/bmqelect/bmqelect/lsn"
)

// TestInspectRefusesAnAbsurdFreelist: bbolt allocates what the count says and
// writes to the pages that are named.
func TestInspectRefusesAnAbsurdFreelist(t *testing.T) {
	intact := sample(t)
	m, err := readMetas(bytes.NewReader(intact))
	require.NoError(t, err)
	put16, put64 := binary.NativeEndian.PutUint16, binary.NativeEndian.PutUint64
	for name, damage := range map[string]func(page []byte){
		"not a free list": func(page []byte) { put16(page[8:], freelistFlag<<1) },
		"endless":         func(page []byte) { put16(page[10:], 0xFFFF); put64(page[headerSize:], 1<<40) },
		"a meta page":     func(page []byte) { put16(page[10:], 1); put64(page[headerSize:], 1) },
		"itself":          func(page []byte) { put16(page[10:], 1); put64(page[headerSize:], m.freelist) },
		"beyond the end":  func(page []byte) { put16(page[10:], 1); put64(page[headerSize:], m.pages) },
		"twice the same":  func(page []byte) { put16(page[10:], 2); put64(page[headerSize:], 2); put64(page[headerSize+8:], 2) },
	} {
		t.Run(name, func(t *testing.T) {
			content := bytes.Clone(intact)
			damage(content[m.freelist*pageSize:])
			path := filepath.Join(t.TempDir(), stateFile)
			require.NoError(t, os.WriteFile(path, content, 0o600))
			require.ErrorContains(t, inspect(path), "free list")
		})
	}
}

// TestRecordOfAnEarlierCommitIsCorrupt puts back a record that was whole and
// valid once, below newer meta pages.
func TestRecordOfAnEarlierCommitIsCorrupt(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	require.NoError(t, s.Persist(map[string]lsn.Term{"a": 7}))
	var earlier []byte
	require.NoError(t, s.file.db.View(func(tx *bolt.Tx) error {
		earlier = bytes.Clone(tx.Bucket(bucketName).Get(recordName))
		return nil
	}))
	require.NoError(t, s.Persist(map[string]lsn.Term{"a": 8}))
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
