package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/bmqelect/bmqelect/lsn"
)

// fences guard a worker's partitions, one each: of a partition's assignments it
// accepts each at most once, and none that is older than another. The file lets
// that hold after a restart.
type fences struct {
	file string
	of   []*lsn.Fence
}

// openFences reads the file; no file is fences that have seen nothing. A file that
// cannot be read is an error: to begin anew would accept what was refused before.
func openFences(file string, partitions int) (*fences, error) {
	newest := make([]lsn.LSN, partitions)
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &newest)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("fences: read %s: %w", file, err)
	}
	if len(newest) != partitions {
		return nil, fmt.Errorf("fences: %s has %d, want one for each of %d partitions", file, len(newest), partitions)
	}
	f := &fences{file: file}
	for _, l := range newest {
		f.of = append(f.of, lsn.NewFence(l))
	}
	return f, nil
}

// save makes durable what the fences have admitted. The old file or the new one is
// there after a crash, never half of one.
func (f *fences) save() error {
	newest := make([]lsn.LSN, len(f.of))
	for p, fence := range f.of {
		newest[p] = fence.Newest()
	}
	text, err := json.Marshal(newest)
	if err == nil {
		err = replace(f.file, text)
	}
	if err != nil {
		return fmt.Errorf("fences: save: %w", err)
	}
	return nil
}

// replace replaces a file durably. (Windows cannot sync a directory: there, leave
// it out.)
func replace(file string, text []byte) error {
	temporary := file + ".new"
	if err := writeSynced(temporary, text); err != nil {
		return err
	}
	if err := os.Rename(temporary, file); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func writeSynced(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
