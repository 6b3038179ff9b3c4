package kubernetes

import (
	"fmt"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// Record is what the Lease object says. The times in it decide nothing and are left out.
type Record struct {
	Holder      algorithm.NodeID // "" for nobody
	UUID        uint64           // of the holder's process: with Holder, its identity
	Transitions uint64           // leaderTransitions
	Version     uint64           // resourceVersion; 0 if there is no object yet
}

// Get reads the lease.
type Get struct{ Xid uint64 }

// Write replaces the lease of Record.Version, or creates it if that is 0.
type Write struct {
	Xid    uint64
	Record Record
}

// Answer has the lease as it is: Read by a Get, or Wrote by a Write that was not in conflict.
type Answer struct {
	Xid         uint64
	Read, Wrote bool
	Record      Record
}

// Name implements algorithm.Message.
func (Get) Name() string { return "Get" }

// Name implements algorithm.Message.
func (w Write) Name() string {
	if w.Record.Version == 0 {
		return "Create"
	}
	return "Update"
}

// Name implements algorithm.Message.
func (a Answer) Name() string {
	switch {
	case a.Wrote:
		return "Updated"
	case !a.Read:
		return "Conflict"
	case a.Record.Version == 0:
		return "NotFound"
	}
	return "Lease"
}

// String implements algorithm.Message.
func (Get) String() string { return "Get" }

// String implements algorithm.Message.
func (w Write) String() string { return w.Name() + " " + w.Record.String() }

// String implements algorithm.Message.
func (a Answer) String() string {
	if a.Record.Version == 0 {
		return a.Name()
	}
	return a.Name() + " " + a.Record.String()
}

// String is for messages. The process of a holder is not shown.
func (r Record) String() string {
	return fmt.Sprintf("holder=%q transitions=%d version=%d", r.Holder, r.Transitions, r.Version)
}

// server is the API server and the store behind it, with one Lease object.
type server struct {
	lease   Record
	effects []algorithm.Envelope
}

// View implements algorithm.Machine: a store has no view.
func (*server) View() algorithm.View { return algorithm.View{} }

// Step implements algorithm.Machine.
func (s *server) Step(_ algorithm.Time, _ uint64, in algorithm.Input) algorithm.Effects {
	s.effects = s.effects[:0]
	if in, ok := in.(algorithm.Received); ok {
		switch r := in.Message.(type) {
		case Get:
			s.answer(in.From, Answer{Xid: r.Xid, Read: true})
		case Write:
			fits := r.Record.Version == s.lease.Version
			if fits {
				s.lease = r.Record
				s.lease.Version++
			}
			s.answer(in.From, Answer{Xid: r.Xid, Wrote: fits})
		}
	}
	return algorithm.Effects{Messages: s.effects, Wake: elector.Never}
}

func (s *server) answer(to algorithm.NodeID, a Answer) {
	if a.Read || a.Wrote {
		a.Record = s.lease
	}
	s.effects = append(s.effects, algorithm.Envelope{To: to, Message: a})
}
