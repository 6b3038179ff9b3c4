package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

// Journal appends to a file. It is safe for concurrent use.
type Journal struct {
	node cluster.NodeID

	mu   sync.Mutex
	file *os.File
	err  error // the first that Append met
}

// Open opens the journal of a node, makes it if it is absent, and notes that the
// process has started.
func Open(name string, node cluster.NodeID) (*Journal, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal of node %s: %w", node, err)
	}
	j := &Journal{node: node, file: file}
	if err := j.Append(Line{Event: Started}); err != nil {
		file.Close()
		return nil, err
	}
	return j, nil
}

// Append adds a line. It fills in the node, and the time unless it is set. When it
// has returned, the line outlives the process; to outlive the machine is not
// promised, as nobody works on after that.
func (j *Journal) Append(l Line) error {
	l.Node = j.node
	if l.Time.IsZero() {
		l.Time = time.Now()
	}
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("journal of node %s: %w", j.node, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	// One write: a process that is killed leaves no half of a line.
	if _, err = j.file.Write(append(text, '\n')); err == nil {
		return nil
	}
	err = fmt.Errorf("journal of node %s: %w", j.node, err)
	if j.err == nil {
		j.err = err
	}
	return err
}

// Err returns the first error that Append met; nil if all is well.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Close closes the file. Append fails from then on.
func (j *Journal) Close() error { return j.file.Close() }

// Read returns the lines of a journal.
func Read(name string) (lines []Line, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	for dec.More() {
		var l Line
		if err := dec.Decode(&l); err != nil {
			return nil, fmt.Errorf("journal %s, line %d: %w", name, len(lines)+1, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}
