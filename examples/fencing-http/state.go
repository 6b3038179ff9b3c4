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

// state is what a restart must not lose. Value and fence are in one file, so
// that neither is ever without the other.
type state struct {
	Fence lsn.LSN `json:"fence"`
	Value []byte  `json:"value"`
}

// load reads a file that save wrote. A file that cannot be read is an error: to
// begin with an empty fence would admit every old leader.
func load(file string) (s state, err error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return state{}, fmt.Errorf("read value and fence from %s: %w", file, err)
	}
	return s, nil
}

// save replaces the file. A crash leaves the old one or the new one, never
// half of it; once save has returned, it leaves the new one.
func (s state) save(file string) error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("save value and fence: %w", err)
	}
	temporary := file + ".new"
	if err := writeDurably(temporary, b); err != nil {
		return fmt.Errorf("save value and fence: %w", err)
	}
	if err := os.Rename(temporary, file); err != nil {
		return fmt.Errorf("save value and fence: %w", err)
	}
	return syncDir(filepath.Dir(file))
}

func writeDurably(file string, b []byte) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes a rename durable. (Windows cannot sync a directory: there,
// leave it out.)
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("make names in %s durable: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("make names in %s durable: %w", dir, err)
	}
	return nil
}
