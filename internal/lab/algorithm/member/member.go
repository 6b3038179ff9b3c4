package member

import (
	"fmt"
	"math/bits"
	"reflect"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// Ranks of those that are no members.
const (
	Nobody = -1
	Store  = -2 // algorithm.StoreNode
	All    = -3 // all other members
)

// Rules are those of one member while it takes part. What they do goes through their
// *Member, which they embed; it has all of these except Receive and Tick.
type Rules interface {
	// Receive acts on a message of the member of that rank, or of the Store.
	Receive(from int, msg algorithm.Message)
	// Tick ends each step: it does what is due, and returns when to do more.
	Tick() algorithm.Time
	// Input acts on any other input, before Tick: elector.Tick itself too, Persisted when Saved
	// has it already, LinkUp and LinkDown when Links have them, and Stop while the member
	// still takes part.
	Input(in algorithm.Input)
	// View is what the member answers if it is asked who leads.
	View() algorithm.View
	// Lease is that of an algorithm that is Leased.
	Lease() elector.Lease
}

// Member is one member, for its rules. It is not safe for concurrent use.
type Member struct {
	Cfg    algorithm.Config
	Timing elector.Timing
	Self   int // its rank
	Links  Set // to whom there is one

	Now     algorithm.Time
	Skew    algorithm.Time // the clock that all share, minus this member's, at the start
	Entropy uint64         // of this step
	Disk    algorithm.Disk // what was there at the start
	Saved   algorithm.Disk // what is durable

	Role   elector.Role // until Become, a Follower
	Leader int          // whom it follows; Nobody
	Term   lsn.Term
	Why    string // the rule by which the View changes in this step
	Stays  bool   // when it is told to stop, it takes part until this is false

	wanted  algorithm.Disk // by Save
	written algorithm.Disk // what was last given to the disk
	writing bool           // and is not durable yet
	held    []algorithm.Envelope
	out     algorithm.Effects
}

// machine is a member and its rules.
type machine struct {
	*Member
	begin   func(*Member) Rules
	rules   Rules // nil while it takes no part
	stopped bool
}

// Maker makes members whose rules begin when they start. The machines have a Lease; they panic
// when there are more members than a Set can hold.
func Maker(begin func(*Member) Rules) func(algorithm.Config) algorithm.Machine {
	return func(cfg algorithm.Config) algorithm.Machine {
		if len(cfg.Order) > MaxMembers {
			panic(fmt.Sprintf("%d members; must be at most %d", len(cfg.Order), MaxMembers))
		}
		return &machine{begin: begin, Member: &Member{Cfg: cfg, Timing: cfg.Elector.Timing,
			Self: cfg.Rank(cfg.Self()), Leader: Nobody}}
	}
}

// Step acts on an input; see algorithm.Machine.
func (m *machine) Step(now algorithm.Time, entropy uint64, in algorithm.Input) algorithm.Effects {
	m.Now, m.Entropy, m.Why = now, entropy, ""
	m.out = algorithm.Effects{Messages: m.out.Messages[:0], Durable: m.out.Durable[:0]}
	switch in := in.(type) {
	case algorithm.Start:
		m.Disk, m.Saved, m.wanted, m.written = in.Disk, in.Disk, in.Disk, in.Disk
		m.Skew, m.Role, m.Why = in.Clock-now, elector.Follower, "start"
		m.rules = m.begin(m.Member)
	case algorithm.Received:
		from := m.Rank(in.From)
		if m.rules != nil && from != Nobody {
			m.rules.Receive(from, in.Message)
		}
	default:
		m.input(in)
	}
	m.out.Wake = elector.Never
	if m.takesPart() {
		m.out.Wake = m.rules.Tick()
		m.takesPart()
	}
	m.flush()
	m.out.Why = m.Why
	return m.out
}

// takesPart ends the rules of a member that is stopped, unless it stays.
func (m *machine) takesPart() bool {
	if m.stopped && !m.Stays {
		m.rules = nil
	}
	return m.rules != nil
}

func (m *machine) input(in algorithm.Input) {
	switch in := in.(type) {
	case elector.LinkUp:
		m.Links.Put(m.Rank(in.Peer), true)
	case elector.LinkDown:
		m.Links.Put(m.Rank(in.Peer), false)
	case elector.Persisted:
		m.Saved, m.writing = m.written, false
	}
	if m.rules != nil {
		m.rules.Input(in)
	}
	if _, ok := in.(elector.Stop); ok {
		m.stopped, m.Why = true, "stop"
	}
}

// flush has what the rules save written, and sends what they hold after that. There is one write
// at a time; the next one has all that has changed meanwhile.
func (m *Member) flush() {
	if m.writing {
		return
	}
	if m.wanted != m.written {
		m.written, m.writing, m.out.Persist = m.wanted, true, m.wanted
	}
	m.out.Durable, m.held = m.held, m.out.Durable
}

// View is what the member answers if it is asked who leads.
func (m *machine) View() algorithm.View {
	if m.rules == nil {
		return algorithm.View{}
	}
	return m.rules.View()
}

// Lease implements algorithm.Leased.
func (m *machine) Lease() elector.Lease {
	if m.rules == nil {
		return elector.Lease{}
	}
	return m.rules.Lease()
}

// Input does nothing.
func (*Member) Input(algorithm.Input) {}

// View has Role, Leader and Term.
func (m *Member) View() algorithm.View {
	return algorithm.View{Role: m.Role, Leader: m.Name(m.Leader), Term: m.Term}
}

// Lease is empty: the algorithm has no leases.
func (*Member) Lease() elector.Lease { return elector.Lease{} }

// Become changes what the member holds to be true, and says by which rule.
func (m *Member) Become(role elector.Role, leader int, why string) {
	m.Role, m.Leader, m.Why = role, leader, why
}

// Rank returns the rank of a name; Nobody if no member has it.
func (m *Member) Rank(id algorithm.NodeID) int {
	if id == algorithm.StoreNode {
		return Store
	}
	return m.Cfg.Rank(id)
}

// Name returns who has a rank, "" for Nobody.
func (m *Member) Name(rank int) algorithm.NodeID {
	switch rank {
	case Nobody:
		return ""
	case Store:
		return algorithm.StoreNode
	case All:
		return elector.AllMembers
	}
	return m.Cfg.Order[rank]
}

// Others ranges over the ranks of all other members.
func (m *Member) Others(yield func(int) bool) {
	for rank := range m.Cfg.Order {
		if rank != m.Self && !yield(rank) {
			return
		}
	}
}

// Quorum reports whether the members of a set are as many as an election needs.
func (m *Member) Quorum(of Set) bool { return of.Count() >= m.Cfg.Elector.QuorumSize() }

// Draw draws a number from 0 up to below n. Within a step it draws the same again.
func (m *Member) Draw(n time.Duration) time.Duration {
	drawn, _ := bits.Mul64(m.Entropy, uint64(n))
	return time.Duration(drawn)
}

// Send sends a message to the member of a rank, to the Store or to All.
func (m *Member) Send(to int, msg algorithm.Message) {
	m.out.Messages = append(m.out.Messages, algorithm.Envelope{To: m.Name(to), Message: msg})
}

// Broadcast sends a message to all others.
func (m *Member) Broadcast(msg algorithm.Message) { m.Send(All, msg) }

// Hold sends a message, as Send does, when all that was saved in this step or before is durable.
func (m *Member) Hold(to int, msg algorithm.Message) {
	m.held = append(m.held, algorithm.Envelope{To: m.Name(to), Message: msg})
}

// Save asks to have a comparable value on disk, in place of what is there. To save what is there
// already, or on its way, costs nothing; so does a zero value on an empty disk.
func (m *Member) Save(state algorithm.Disk) {
	if m.wanted != nil || !reflect.ValueOf(state).IsZero() {
		m.wanted = state
	}
}
