package recording

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/bmqelect/bmqelect/internal/base/limit"
)

// Name is one of the logs in a data directory.
type Name string

// The logs.
const (
	Recording Name = "recording.log" // all that happened
	History   Name = "history.log"   // who led
)

// sizes are the most bytes that each log takes, its two files together.
var sizes = map[Name]int{Recording: 1 << 20, History: 256 << 10}

// older is what the name of the older file ends in.
const older = ".1"

// Log is a log that is being written. One goroutine at a time may use it.
type Log struct {
	path string
	half int // most bytes of a file
	file file
	size int  // of the newer file
	torn bool // the file may end within a line
	open func(path string) (file, error)
	kept map[string]Record // by what they are about
}

// file is what a Log needs of an open file.
type file interface {
	Write([]byte) (int, error)
	Close() error
}

// New returns the log of that name in a directory. The first Append makes its files.
func New(dir string, name Name) *Log {
	return &Log{
		path: filepath.Join(dir, string(name)), half: sizes[name] / 2, open: openFile,
		kept: map[string]Record{},
	}
}

func openFile(path string) (file, error) {
	return limit.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// Append adds a record. After an error the record may be lost, and the next call tries
// again whatever failed.
func (l *Log) Append(r Record) error {
	line, err := encode(&r)
	if err != nil {
		return err
	}
	if len(line) > l.half/4 {
		return fmt.Errorf("a record of %d bytes, but at most %d go into %s",
			len(line), l.half/4, l.path)
	}
	err = l.ready()
	if err == nil && l.size+len(line) > l.half {
		err = l.turn()
	}
	l.keep(&r)
	if err == nil {
		err = l.write(line)
	}
	return err
}

// ready opens the newer file if it is not open.
func (l *Log) ready() error {
	if l.file != nil {
		return nil
	}
	f, err := l.open(l.path)
	if err != nil {
		return err
	}
	info, err := os.Stat(l.path)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, int(info.Size())
	l.torn = l.size > 0 // by a process that was killed
	return nil
}

// turn makes the newer file the older one and begins a new one, with the records that still
// say how things are.
func (l *Log) turn() error {
	err := errors.Join(l.Close(), os.Rename(l.path, l.path+older))
	if err == nil {
		err = l.ready()
	}
	byAge := func(a, b Record) int { return cmp.Compare(a.Age, b.Age) }
	for _, r := range slices.SortedFunc(maps.Values(l.kept), byAge) {
		line, encodeErr := encode(&r)
		if err = errors.Join(err, encodeErr); err != nil || l.size+len(line) > l.half/2 {
			break // the rest of the file is for what is new
		}
		err = l.write(line)
	}
	return err
}

// maxKept bounds what Log.kept holds: the elections and peers beyond are forgotten when the
// log turns.
const maxKept = 1024

// keep notes a record if it says how things are.
func (l *Log) keep(r *Record) {
	about := r.about()
	if r.Kind == Transition && r.To == dormant {
		delete(l.kept, about)
		delete(l.kept, (&Record{Kind: Opened, Group: r.Group}).about())
	} else if _, known := l.kept[about]; about != "" && (known || len(l.kept) < maxKept) {
		l.kept[about] = *r
	}
}

func (l *Log) write(line []byte) error {
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.file.Write(line)
	l.size, l.torn = l.size+n, err != nil
	return err
}

// Close closes the files. Append opens them again.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

var sums = crc32.MakeTable(crc32.Castagnoli)

// sumSize is how many bytes of a line are before its JSON text: the sum in hexadecimal
// digits, and a space.
const sumSize = 9

func encode(r *Record) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(make([]byte, 0, len(text)+sumSize+1), "%08x %s\n",
		crc32.Checksum(text, sums), text), nil
}

// decode returns the record of a line without its end; false if the line is damaged.
func decode(line []byte) (r Record, ok bool) {
	if len(line) < sumSize || line[sumSize-1] != ' ' {
		return r, false
	}
	text := line[sumSize:]
	sum, err := strconv.ParseUint(string(line[:sumSize-1]), 16, 32)
	if err != nil || uint32(sum) != crc32.Checksum(text, sums) {
		return r, false
	}
	return r, json.Unmarshal(text, &r) == nil
}

// Read returns the records of a log, oldest first, each once, and how many lines are
// damaged: one is where a process was killed as it wrote. A log that does not exist is
// empty. It may be read while a node writes it: the last line may not be whole yet.
func Read(dir string, name Name) (records []Record, damaged int, err error) {
	path := filepath.Join(dir, string(name))
	// The newer file first: if it becomes the older one meanwhile it is read twice, and
	// what it replaces has had its time.
	var texts [2][]byte
	for i, path := range []string{path, path + older} {
		texts[1-i], err = limit.ReadFile(path, sizes[name])
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, 0, err
		}
	}
	seen := map[string]bool{}
	for _, text := range texts {
		for line := range bytes.Lines(text) {
			line = bytes.TrimSuffix(line, []byte{'\n'})
			if len(line) == 0 || seen[string(line)] {
				continue // a copy at the beginning of a file
			}
			seen[string(line)] = true
			if r, ok := decode(line); ok {
				records = append(records, r)
			} else {
				damaged++
			}
		}
	}
	slices.SortStableFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Boot, b.Boot), cmp.Compare(a.Age, b.Age))
	})
	return records, damaged, nil
}
