package lsn

import (
	"fmt"
	"sync"
)

// Fence guards a resource that leaders write to: it admits only LSNs that do
// not go backwards, so that a leader which was replaced and does not know it
// yet can do no harm. The zero Fence is ready and admits the LSNs of every
// leadership. It is safe for concurrent use.
//
// The resource must apply an admitted request before it asks about the next, under a lock of its
// own if requests come concurrently: the Fence orders the questions, not the work. To survive a
// restart the resource saves Newest durably before it acts on an admitted LSN, and starts with
// NewFence.
type Fence struct {
	mu     sync.Mutex
	newest LSN
}

// NewFence returns a fence that has already admitted newest: the Newest that
// was saved before a restart, or the zero LSN.
func NewFence(newest LSN) *Fence { return &Fence{newest: newest} }

// StaleError says that an LSN was refused because the fence had admitted a
// newer one, or, by AdmitNew, that one itself.
type StaleError struct {
	Got    LSN // the one refused
	Newest LSN // the newest admitted
}

// Error names both LSNs, and what to do if terms began again.
func (e *StaleError) Error() string {
	text := fmt.Sprintf("lsn: stale: got %s after %s", e.Got, e.Newest)
	if e.Got.Term < e.Newest.Term {
		text += fmt.Sprintf("; if every data directory was lost, start the nodes with a minimum term "+
			"above %d (MinTerm, --min-term): docs/operations.md#all-disks-are-gone", e.Newest.Term)
	}
	return text
}

// Admit admits l unless the fence has admitted a newer one. The same LSN may
// come again, as it does where it stands for a lock that is held over several
// requests. A refusal is a *StaleError; an LSN that is of no leadership (term 0 or
// above MaxTerm) is refused by another error.
func (f *Fence) Admit(l LSN) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.admit(l, !l.Less(f.newest))
}

// AdmitNew is Admit for messages that must take effect once each: it refuses
// the newest LSN when it comes again.
func (f *Fence) AdmitNew(l LSN) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.admit(l, f.newest.Less(l))
}

// admit is called with f.mu held.
func (f *Fence) admit(l LSN, inOrder bool) error {
	if !l.Term.Led() {
		// The zero LSN is a forgotten one, and an absurd one would shut out
		// every real leader for ever.
		return fmt.Errorf("lsn: fence: %s is of no leadership, want a term of 1 to %d", l, MaxTerm)
	}
	if !inOrder {
		return &StaleError{Got: l, Newest: f.newest}
	}
	f.newest = l
	return nil
}

// Newest returns the newest LSN admitted. It never goes back, and is at least
// any LSN whose Admit or AdmitNew has returned without error.
func (f *Fence) Newest() LSN {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest
}
