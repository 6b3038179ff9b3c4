package admin

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/bmqelect/bmqelect/cluster"
)

const (
	eventBuffer = 256
	journalSize = 1024 // events that are kept for readers that come back
)

// journal numbers the node's events of this boot from 1 on, keeps the newest and wakes
// the streams.
//
// An id is "boot-sequence", such as "3.9f86d081-42". The boot names the data
// directory as well as the start: one whose disk was replaced counts from 1 again.
type journal struct {
	node cluster.NodeID
	boot string

	mu     sync.Mutex
	last   uint64  // sequence of the newest event; 0 before the first
	events []Event // the newest, in order, without a gap, up to last
	closed bool    // nothing comes any more
	more   chan struct{}
}

func newJournal(st cluster.Status) *journal {
	boot := fmt.Sprintf("%d.%.8s", st.Boot, st.Identity)
	return &journal{node: st.Node, boot: boot, more: make(chan struct{})}
}

// keep takes in events until there are no more.
func (j *journal) keep(events <-chan cluster.Event) {
	for e := range events {
		j.add(e)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	close(j.more)
}

func (j *journal) add(e cluster.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Missed > 0 { // a reader from before must learn of the gap
		j.events, j.last = nil, j.last+uint64(e.Missed)
	}
	if len(j.events) == journalSize {
		j.events = append(j.events[:0:0], j.events[journalSize/2:]...)
	}
	j.events = append(j.events, Event{
		Time: e.Time, Node: j.node, Group: e.Group, From: e.From.String(), To: e.To.String(),
		Reason: e.Reason.String(), Term: e.Term, Leader: e.Leader, Peer: e.Peer, Missed: e.Missed,
	})
	j.last++
	close(j.more)
	j.more = make(chan struct{})
}

// id is the name of the place after the event with that sequence.
func (j *journal) id(sequence uint64) string {
	return j.boot + "-" +
		strconv.FormatUint(sequence, 10)
}

// place is the sequence that an id names; ok is false if it is not of this boot,
// or not an id at all.
func (j *journal) place(id string) (sequence uint64, ok bool) {
	boot, number, found := strings.Cut(id, "-")
	sequence, err := strconv.ParseUint(number, 10, 64)
	return sequence, found && err == nil && boot == j.boot && sequence <= j.newest()
}

func (j *journal) newest() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// An extract is what a journal holds after a place.
type extract struct {
	events []Event
	gap    bool // some events after the place are gone
	closed bool // nothing comes any more
	more   <-chan struct{}
}

// after returns what came after a place.
func (j *journal) after(sequence uint64) extract {
	j.mu.Lock()
	defer j.mu.Unlock()
	x := extract{closed: j.closed, more: j.more}
	oldest := j.last - uint64(len(j.events))
	if sequence < oldest {
		x.gap = true
		return x
	}
	x.events = j.events[min(sequence-oldest, uint64(len(j.events))):]
	return x
}
