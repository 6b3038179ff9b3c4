// Package recorder writes the events of a node to its data directory, on a goroutine of its own:
// all of them to the recording, and those that the history of leaderships needs to the history. If
// the disk fails or hangs, records are lost and counted, and elections go on.
package recorder

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/limit"
	"github.com/bmqelect/bmqelect/internal/base/recording"
)

const (
	// room is how many records wait for the disk; more are lost.
	room = 256
	// recordAfter is how long a record waits, so that an election gets the processor first.
	recordAfter = 5 * time.Millisecond
	// roomEvery is the time between two tests whether the disk has room.
	roomEvery = 10 * time.Second
	// roomFile is written and removed by the test; roomLeast is its size in bytes.
	roomFile  = "room.tmp"
	roomLeast = 4 << 10
)

// Config says which node is recorded, and where.
type Config struct {
	Dir   string
	Node  string
	Boot  uint64
	Age   func() time.Duration // of the node
	Found func(why string)     // gets what is wrong with the disk, "" if nothing is any more
	// Faults are the failures of links that were made on purpose, in words.
	Faults func() string
}

// Recorder records. Its methods are safe for concurrent use.
type Recorder struct {
	cfg          Config
	all, history *recording.Log
	records      chan recording.Record
	inputs       limit.Surge[struct{}] // of elections
	lost         atomic.Uint64
	done         chan struct{} // closed when Run has returned
}

// New returns a recorder. Run is to be called next.
func New(cfg Config) *Recorder {
	return &Recorder{
		cfg: cfg, all: recording.New(cfg.Dir, recording.Recording),
		history: recording.New(cfg.Dir, recording.History),
		records: make(chan recording.Record, room), done: make(chan struct{}),
		inputs: limit.Surge[struct{}]{Most: mostInputs},
	}
}

// Record lets Run write a record. It never waits.
func (r *Recorder) Record(what recording.Record) {
	what.Time, what.Age = time.Now(), r.cfg.Age().Seconds()
	what.Node, what.Boot = r.cfg.Node, r.cfg.Boot
	switch what.Kind {
	case recording.LinkUp, recording.LinkDown, recording.Died:
		what.Faults = r.cfg.Faults()
	}
	select {
	case r.records <- what:
	default:
		r.lost.Add(1)
	}
}

// Skip counts an event that is not recorded: it is one of too many at a time.
func (r *Recorder) Skip() { r.lost.Add(1) }

// Lost counts the events that were not recorded.
func (r *Recorder) Lost() uint64 { return r.lost.Load() }

// Done is closed when Run has returned.
func (r *Recorder) Done() <-chan struct{} { return r.done }

// Run writes until quit, and then the records that still wait.
func (r *Recorder) Run(quit <-chan struct{}) {
	defer close(r.done)
	defer func() { _, _ = r.all.Close(), r.history.Close() }() // nothing is left to be written
	look := time.NewTicker(roomEvery)
	defer look.Stop()
	for {
		select {
		case record := <-r.records:
			select {
			case <-time.After(recordAfter):
			case <-quit:
			}
			r.write(&record)
			r.writeWaiting()
		case <-look.C:
			r.lookForRoom()
		case <-quit:
			r.writeWaiting()
			return
		}
	}
}

func (r *Recorder) writeWaiting() {
	for len(r.records) > 0 {
		record := <-r.records
		r.write(&record)
	}
}

func (r *Recorder) write(record *recording.Record) {
	err := r.all.Append(*record)
	if k := record.Kind; err == nil && (k == recording.Started || k == recording.Transition) {
		err = r.history.Append(*record)
	}
	if err == nil {
		return
	}
	r.lost.Add(1)
	r.cfg.Found(fmt.Sprintf("it cannot record what happens, which elections do not need: %v", err))
}

// lookForRoom tests whether the disk can be written, so that a fault is found before an event is to
// be recorded.
func (r *Recorder) lookForRoom() {
	file, why := filepath.Join(r.cfg.Dir, roomFile), ""
	err := os.WriteFile(file, make([]byte, roomLeast), 0o600)
	if left := os.Remove(file); err == nil {
		err = left
	}
	if err != nil {
		why = fmt.Sprintf("it cannot write to its data directory: %v", err)
	}
	r.cfg.Found(why)
}
