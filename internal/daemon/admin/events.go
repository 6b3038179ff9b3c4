package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// Event is a transition of a node, as the stream has it.
type Event struct {
	Time   time.Time      `json:"time"`
	Node   cluster.NodeID `json:"node"`
	Group  string         `json:"group"`
	From   string         `json:"from"`
	To     string         `json:"to"`
	Reason string         `json:"reason"`
	Term   lsn.Term       `json:"term"`
	Leader cluster.NodeID `json:"leader,omitempty"`
	// cluster.Config.Meta of the leader
	LeaderMeta string         `json:"leader_meta,omitempty"`
	Peer       cluster.NodeID `json:"peer,omitempty"`
	// events lost before this one: the node was too busy
	Missed int `json:"missed,omitempty"`
}

// Reset tells the reader of a stream that it missed events, and the status now.
type Reset struct {
	Reason string         `json:"reason"`
	Status cluster.Status `json:"status"`
}

const (
	eventStream = "text/event-stream"
	// keepAlive is the time between two signs of life on an idle stream: without them a reader
	// would not notice a dead connection.
	keepAlive = 2 * time.Second
	// stall is how long a write waits for a reader that takes nothing.
	stall = 10 * time.Second
)

// getEvents streams events until the reader, the node or the server ends. A new reader gets the
// status first. A reader that returns with the id of the last event that it saw gets the events
// since then, or a reset if some of them are gone.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request) {
	out, ctx := s.openStream(w, r)
	if out == nil {
		return
	}
	defer s.streams.Leave(out)
	defer out.end()
	out.begin(lastSeen(r))
	idle := time.NewTicker(keepAlive)
	defer idle.Stop()
	for {
		x := out.forward()
		if x.closed || out.control.Flush() != nil {
			return
		}
		select {
		case <-x.more:
		case <-idle.C:
			out.write(": alive\n\n")
		case <-ctx.Done():
			return
		}
	}
}

// openStream begins a stream of events that lasts until ctx ends. It returns nil if there is to be
// none, and has answered then.
func (s *Server) openStream(w http.ResponseWriter, r *http.Request) (*stream, context.Context) {
	if s.streams.OwnPlace(r.RemoteAddr) {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable,
			fmt.Errorf("%d event streams are open, which is the limit; close some", maxStreams))
		return nil, nil
	}
	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		return nil, nil
	}
	ctx, end := context.WithCancel(r.Context())
	out := &stream{w: w, control: http.NewResponseController(w), journal: s.journal,
		status: s.Node.Status, end: end}
	if old, full := s.streams.Enter(out, r.RemoteAddr); full {
		old.end() // the oldest stream of the source that has the most
	}
	return out, ctx
}

// lastSeen is the id of the newest event that a reader has seen; "" for none. A browser that
// reconnects sends the header, and the URL of the first time.
func lastSeen(r *http.Request) string {
	return cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
}

// stream writes the events for one reader. A write that fails makes Flush fail.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	journal *journal
	status  func() cluster.Status
	end     func()
	place   uint64
}

// begin starts after the event with that id.
func (o *stream) begin(after string) {
	place, ok := o.journal.place(after)
	switch {
	case after == "":
		o.now("")
	case ok:
		o.place = place
	default:
		o.now(fmt.Sprintf("%q is not of this start of node %s: events before it are gone", after,
			o.journal.node))
	}
}

// forward writes the events that are new, and returns them.
func (o *stream) forward() extract {
	x := o.journal.after(o.place)
	if x.gap {
		o.now(fmt.Sprintf("events after %q are gone: only the newest are kept", o.journal.id(o.place)))
		x = o.journal.after(o.place)
	}
	for _, e := range x.events {
		o.place++
		o.event(o.journal.id(o.place), "transition", e)
	}
	return x
}

// now writes the status, as a reset if there is a reason for one, and goes on after the newest
// event. It reads the place before the status: a change in between is told twice, not never.
func (o *stream) now(reason string) {
	o.place = o.journal.newest()
	id := o.journal.id(o.place)
	if st := o.status(); reason == "" {
		o.event(id, "status", st)
	} else {
		o.event(id, "reset", Reset{Reason: reason, Status: st})
	}
}

func (o *stream) event(id, kind string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		data = []byte("{}") // no such value exists
	}
	if id != "" {
		o.write("id: %s\n", id)
	}
	o.write("event: %s\ndata: %s\n\n", kind, data)
}

func (o *stream) write(format string, args ...any) {
	_ = o.control.SetWriteDeadline(time.Now().Add(stall))
	_, _ = fmt.Fprintf(o.w, format, args...)
}

const (
	eventBuffer = 256
	journalSize = 1024 // events that are kept for readers that return
)

// journal numbers the node's events of this boot from 1 on, keeps the newest and wakes
// the streams.
//
// An id is "boot-sequence", such as "3.9f86d081-42". The boot has the number of the start and the
// data directory's identity: after its disk was replaced, a node counts from 1 again.
type journal struct {
	node cluster.NodeID
	boot string

	mu     sync.Mutex
	last   uint64  // sequence of the newest event; 0 before the first
	events []Event // the newest, in order, without a gap, up to last
	closed bool    // there will be no more events
	more   chan struct{}
}

func newJournal(st cluster.Status) *journal {
	boot := fmt.Sprintf("%d.%.8s", st.Boot, st.Identity)
	return &journal{node: st.Node, boot: boot, more: make(chan struct{})}
}

// keep adds events until there are no more.
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
	if e.Missed > 0 { // readers whose place is before the gap must learn of it
		j.events, j.last = nil, j.last+uint64(e.Missed)
	}
	if len(j.events) == journalSize {
		j.events = append(j.events[:0:0], j.events[journalSize/2:]...)
	}
	j.events = append(j.events, Event{
		Time: e.Time, Node: j.node, Group: e.Group, From: e.From.String(), To: e.To.String(),
		Reason: e.Reason.String(), Term: e.Term, Leader: e.Leader, LeaderMeta: e.LeaderMeta, Peer: e.Peer,
		Missed: e.Missed,
	})
	j.last++
	close(j.more)
	j.more = make(chan struct{})
}

// id names the place after the event with that sequence.
func (j *journal) id(sequence uint64) string {
	return j.boot + "-" + strconv.FormatUint(sequence, 10)
}

// place is the sequence in an id; ok is false if the id is of another boot, or malformed.
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
	closed bool // there will be no more events
	more   <-chan struct{}
}

// after returns the events after a place.
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
