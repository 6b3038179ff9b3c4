package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/health"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/limit"
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
	// Transitions, if not 0, is for how many like it this one stands, in elections that are not named.
	Transitions int `json:"transitions,omitempty"`
}

// masses is the kind of an event that stands for many transitions.
const masses = "transitions"

// mass is what many transitions have in common.
func (e Event) mass() Event { e.Time, e.Group, e.Term = time.Time{}, "", 0; return e }

// RecordEvent tells that a node knows another record to be committed than before. If they come
// fast, some of the past are left out.
type RecordEvent struct {
	Time   time.Time            `json:"time"`
	Node   cluster.NodeID       `json:"node"`
	Group  string               `json:"group"`
	Leader cluster.NodeID       `json:"leader,omitempty"`
	Record cluster.RecordStatus `json:"record"`
}

// VotersEvent is a step of a change of voters that the node was asked for.
type VotersEvent struct {
	Time time.Time      `json:"time"`
	Node cluster.NodeID `json:"node"`
	cluster.VoterStep
}

// SuccessionEvent tells that the leader names this node as its successor, or names it no more.
type SuccessionEvent struct {
	Time      time.Time      `json:"time"`
	Node      cluster.NodeID `json:"node"`
	Group     string         `json:"group"`
	Successor bool           `json:"successor"`
}

// ProbeEvent tells that a health probe of the node has come to another verdict.
type ProbeEvent struct {
	Time time.Time      `json:"time"`
	Node cluster.NodeID `json:"node"`
	health.Status
}

// Reset tells the reader of a stream that it missed events, and the status now.
type Reset struct {
	Reason string         `json:"reason"`
	Status cluster.Status `json:"status"`
}

const (
	// recordPause is the time between two events of the record of an election.
	recordPause = 20 * time.Millisecond
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
	if s.streams.OwnPlace(r.RemoteAddr) {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable,
			fmt.Errorf("%d event streams are open, which is the limit; close some", maxStreams))
		return
	}
	f, err := filterIn(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		return
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	out := &stream{w: w, control: http.NewResponseController(w), journal: s.journal, filter: f,
		status: func() cluster.Status { return s.Node.StatusOf(f.selection()) }, end: end}
	if old, full := s.streams.Enter(out, r.RemoteAddr); full {
		old.end() // the oldest stream of the source that has the most
	}
	defer s.streams.Leave(out)
	defer s.journal.name(f.group)()
	out.begin(lastSeen(r))
	idle := time.NewTicker(keepAlive)
	defer idle.Stop()
	s.follow(s.Node.Default())
	for _, e := range s.Node.Elections(cluster.Selection{
		Group: f.group, Prefix: f.prefix, Limit: maxFollowed,
	}) {
		s.follow(e)
	}
	for {
		x := out.forward()
		if x.closed || out.control.Flush() != nil {
			return
		}
		for _, opened := range x.opened() {
			if e, err := s.Node.Lookup(opened); err == nil && f.passes("record", opened) {
				s.follow(e)
			}
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

// maxFollowed is of how many elections the journal has the records, besides those that a reader
// names.
const maxFollowed = 256

// follow lets the journal have the records of an election, as long as it is open, and whether this
// node is to lead it next.
func (s *Server) follow(e *cluster.Election) {
	ctx, end := context.WithCancel(s.open)
	if !s.journal.begin(e.Group(), end) {
		end()
		return
	}
	s.running.Go(func() {
		first := true
		for named := range e.Succession(ctx) {
			if named || !first {
				s.journal.put("succession", e.Group(),
					SuccessionEvent{time.Now(), s.journal.node, e.Group(), named})
			}
			first = false
		}
	})
	s.running.Go(func() {
		defer s.journal.end(e.Group())
		for rec := range e.Records(ctx) {
			if g := e.Status(); g.Record != nil && !rec.LSN.IsZero() {
				s.journal.record(RecordEvent{time.Now(), s.journal.node, g.Group, g.Leader, *g.Record})
			}
			select { // the status takes the driver's time, and readers want the newest
			case <-time.After(recordPause):
			case <-ctx.Done():
			}
		}
	})
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
	filter  filter
	end     func()
	place   uint64
	told    map[string]lsn.LSN // the newest record of each election, whose events have no id
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
	for i, e := range x.events {
		o.place++
		if o.filter.passes(e.kind, e.group) {
			o.event(o.journal.id(o.place), e.kind, e.data)
		} else if i+1 == len(x.events) {
			o.write("id: %s\n\n", o.journal.id(o.place)) // so that a reader does not come back too late
		}
	}
	known := map[string]lsn.LSN{} // of the elections that are open
	for _, e := range x.records {
		known[e.Group] = e.Record.Committed
		if known[e.Group] != o.told[e.Group] && o.filter.passes("record", e.Group) {
			o.event("", "record", e)
		}
	}
	o.told = known
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
	eventBuffer = 4096
	journalSize = 1024 // events that are kept for readers that return
	// atATime is how many transitions of a second are told one by one; beyond that, those alone of
	// elections that a reader names.
	atATime = 256
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
	events []entry // the newest, in order, without a gap, up to last
	closed bool    // there will be no more events
	more   chan struct{}
	surge  limit.Surge[Event]
	named  map[string]int // how many readers are there of one election alone, by its name
	// records are the newest of each election that is followed, the zero value before the first.
	records map[string]RecordEvent
	ends    map[string]func() // they end that
}

// entry is an event as a stream has it.
type entry struct {
	kind  string
	group string // "" if it is about the node
	data  any
}

func newJournal(st cluster.Status) *journal {
	boot := fmt.Sprintf("%d.%.8s", st.Boot, st.Identity)
	return &journal{node: st.Node, boot: boot, more: make(chan struct{}),
		surge: limit.Surge[Event]{Most: atATime}, named: map[string]int{},
		records: map[string]RecordEvent{}, ends: map[string]func(){}}
}

// keep adds events until there are no more. What comes in masses is summed up once a second: it
// would push all others out.
func (j *journal) keep(events <-chan cluster.Event) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for open := true; open; {
		select {
		case e, more := <-events:
			if open = more; more {
				j.take(e)
				continue
			}
		case <-second.C:
		}
		for e, count := range j.surge.Take() {
			e.Time, e.Transitions = time.Now(), count
			j.put(masses, "", e)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	close(j.more)
}

func (j *journal) take(e cluster.Event) {
	j.mu.Lock()
	named := j.named[e.Group] > 0
	j.mu.Unlock()
	if named || e.Missed > 0 || j.surge.Passes(j.event(e).mass()) {
		j.add(e)
	}
}

// name notes a reader of one election alone, "" for none, until leave is called.
func (j *journal) name(group string) (leave func()) {
	count := func(by int) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.named[group] += by; j.named[group] > 0 && group != "" {
			return
		}
		delete(j.named, group)
		if end := j.ends[group]; end != nil && len(j.ends) > maxFollowed {
			end()
		}
	}
	count(1)
	return func() { count(-1) }
}

func (j *journal) add(e cluster.Event) {
	if e.Missed > 0 { // readers whose place is before the gap must learn of it
		j.mu.Lock()
		j.events, j.last = nil, j.last+uint64(e.Missed)
		j.mu.Unlock()
	}
	j.put("transition", e.Group, j.event(e))
}

func (j *journal) event(e cluster.Event) Event {
	return Event{
		Time: e.Time, Node: j.node, Group: e.Group, From: e.From.String(), To: e.To.String(),
		Reason: e.Reason.String(), Term: e.Term, Leader: e.Leader, LeaderMeta: e.LeaderMeta, Peer: e.Peer,
		Missed: e.Missed,
	}
}

// put appends an event.
func (j *journal) put(kind, group string, data any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.events) == journalSize {
		j.events = append(j.events[:0:0], j.events[journalSize/2:]...)
	}
	j.events = append(j.events, entry{kind, group, data})
	j.last++
	j.wake()
}

// wake wakes the streams; the lock is held.
func (j *journal) wake() {
	if !j.closed {
		close(j.more)
		j.more = make(chan struct{})
	}
}

// begin reports whether the records of an election are to be followed, which nobody does yet, and
// for which there is room unless a reader names it.
func (j *journal) begin(group string, end func()) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, followed := j.records[group]
	if followed || len(j.records) >= maxFollowed && j.named[group] == 0 {
		return false
	}
	j.records[group], j.ends[group] = RecordEvent{Group: group}, end
	return true
}

func (j *journal) end(group string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ends[group]()
	delete(j.records, group)
	delete(j.ends, group)
}

// record keeps the newest event of the record of an election.
func (j *journal) record(e RecordEvent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records[e.Group] = e
	j.wake()
}

// Probed adds the new verdict of a health probe to the events. It does not wait.
func (s *Server) Probed(st health.Status) {
	s.journal.put("probe", "", ProbeEvent{time.Now(), s.journal.node, st})
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
	events  []entry
	records []RecordEvent // the newest of each election
	gap     bool          // some events after the place are gone
	closed  bool          // there will be no more events
	more    <-chan struct{}
}

// opened names the elections that were opened.
func (x *extract) opened() (groups []string) {
	for _, e := range x.events {
		if t, ok := e.data.(Event); ok && t.Reason == elector.Started.String() {
			groups = append(groups, e.group)
		}
	}
	return groups
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
	x.records = slices.Collect(maps.Values(j.records))
	return x
}
