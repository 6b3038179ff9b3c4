package kubernetes

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// Record is what the Lease object says. The times in it decide nothing and are left out.
type Record struct {
	Holder      Holder
	Transitions uint64 // leaderTransitions
	Version     uint64 // resourceVersion; 0 if there is no object yet
}

// Holder is an identity: a process of a node. The zero Holder is nobody.
type Holder struct {
	Node algorithm.NodeID
	UUID uint64
}

// String has the node only.
func (h Holder) String() string { return string(h.Node) }

// Request is a Get, or a Create or an Update over Record.Version.
type Request struct {
	Kind string `codec:"-"`
	Xid  uint64
	Record
}

// Answer says Lease or NotFound to a Get, otherwise Updated or Conflict. Unless it is a Conflict,
// it has the record as it is.
type Answer struct {
	Kind string `codec:"-"`
	Xid  uint64
	Record
}

// server is the API server and the store behind it, with one Lease object.
type server struct {
	*member.Member
	lease Record
}

func serve(m *member.Member) member.Rules {
	s := &server{Member: m}
	if old, ok := m.Disk.(*server); ok {
		s.lease = old.lease
	}
	m.Save(s)
	m.Become(elector.Dormant, member.Nobody, "")
	return s
}

func (*server) Tick() algorithm.Time { return elector.Never }

func (s *server) Receive(from int, msg algorithm.Message) {
	r, _ := msg.(Request)
	a := Answer{Kind: "Lease", Xid: r.Xid}
	switch {
	case r.Kind == "Get" && s.lease.Version == 0:
		a.Kind = "NotFound"
	case r.Kind != "Get" && r.Version != s.lease.Version:
		s.Send(from, Answer{Kind: "Conflict", Xid: r.Xid})
		return
	case r.Kind != "Get":
		a.Kind, s.lease = "Updated", r.Record
		s.lease.Version++
	}
	a.Record = s.lease
	s.Send(from, a)
}
