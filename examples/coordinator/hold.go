package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/examples/coordinator/audit"
	"github.com/bmqelect/bmqelect/lsn"
)

// hold is what a worker has in force. All that it does is in its journal.
type hold struct {
	node    cluster.NodeID
	journal *audit.Journal

	mu      sync.Mutex
	leaders lsn.Fence // of answers: one of a replaced leader is not heeded
	fences  *fences
	until   []time.Time // of each partition: in force until then; zero if it is not
	sick    error       // why it could not accept what it was given; nil if all is well
}

func newHold(node cluster.NodeID, j *audit.Journal, f *fences) *hold {
	return &hold{node: node, journal: j, fences: f, until: make([]time.Time, len(f.of))}
}

// question says how this worker stands.
func (h *hold) question(leaving bool) question {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expire()
	q := question{Node: h.node, Leaving: leaving}
	for p, f := range h.fences.of {
		q.Partitions = append(q.Partitions, standing{Newest: f.Newest(), InForce: !h.until[p].IsZero()})
	}
	return q
}

// accept follows an answer to what was asked at the given time: it puts in force
// what is new, goes on with what was granted again, and ends the rest. What the
// fences refuse is part of the error; it hinders nothing else.
func (h *hold) accept(asked time.Time, a answer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.leaders.Admit(a.Stamp); err != nil {
		return fmt.Errorf("answer of a leader that was replaced: %w", err)
	}
	h.expire()
	until := asked.Add(a.Grant)
	admitted, refused := h.sort(a.Assigned, until)
	if len(admitted) == 0 {
		return refused
	}
	if h.sick = h.fences.save(); h.sick != nil {
		return errors.Join(refused, h.sick)
	}
	for _, p := range admitted {
		h.begin(p, until)
	}
	return refused
}

// sort renews what goes on, ends what does not, and returns what is to begin.
func (h *hold) sort(assigned map[int]lsn.LSN, until time.Time) (admitted []int, refused error) {
	for p, fence := range h.fences.of {
		next, given := assigned[p]
		inForce := !h.until[p].IsZero()
		if inForce && given && next == fence.Newest() {
			h.until[p] = until
			continue
		}
		if inForce {
			h.end(p, "revoked")
		}
		if !given {
			continue
		}
		if err := fence.AdmitNew(next); err != nil {
			refused = errors.Join(refused, fmt.Errorf("assignment of partition %d: %w", p, err))
			continue
		}
		admitted = append(admitted, p)
	}
	return admitted, refused
}

// begin puts in force what the fence has admitted last, on record first. An answer
// that came too late grants nothing.
func (h *hold) begin(p int, until time.Time) {
	now := time.Now()
	if now.Before(until) && h.journal.Append(h.line(audit.Begun, p, now)) == nil {
		h.until[p] = until
	}
}

func (h *hold) line(e audit.Event, p int, at time.Time) audit.Line {
	return audit.Line{Time: at, Event: e, Partition: p, LSN: h.fences.of[p].Newest()}
}

// end ends what is in force, which it was no longer than it was granted for. A
// journal that fails is found by health.
func (h *hold) end(p int, why string) {
	at := time.Now()
	if at.After(h.until[p]) {
		at = h.until[p]
	}
	h.until[p] = time.Time{}
	l := h.line(audit.Ended, p, at)
	l.Why = why
	_ = h.journal.Append(l)
}

// expire ends what was not granted again in time.
func (h *hold) expire() {
	now := time.Now()
	for p, until := range h.until {
		if !until.IsZero() && !now.Before(until) {
			h.end(p, "expired")
		}
	}
}

// work does something for every partition that is in force. The clock is read for
// each; still, a process may be paused between the reading and the act. So work on
// anything that others share sends the LSN along, for a fence at the other end.
func (h *hold) work() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p, until := range h.until {
		if now := time.Now(); now.Before(until) {
			_ = h.journal.Append(h.line(audit.Worked, p, now))
		}
	}
}

// drop ends all.
func (h *hold) drop(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expire()
	for p, until := range h.until {
		if !until.IsZero() {
			h.end(p, why)
		}
	}
}

// health is nil, or why this worker cannot do its part.
func (h *hold) health() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.sick, h.journal.Err())
}

// inForce lists what is in force, for people.
func (h *hold) inForce() map[int]lsn.LSN {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expire()
	list := map[int]lsn.LSN{}
	for p, until := range h.until {
		if !until.IsZero() {
			list[p] = h.fences.of[p].Newest()
		}
	}
	return list
}
