package leadership

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Input is something that happened: one of Campaign, GiveUp, Release, Resign, Fitness, Candidacy,
// Prefer, Close, Lease, StopWork, Lost, Tick.
type Input interface{ isInput() }

// ID names a campaign and the leadership that it gets. 0 means no campaign.
type ID uint64

// Campaign asks for a leadership. It waits until the elector leads with time for work. If
// After is the leadership whose work was told to stop, Campaign says that this work has
// stopped, as Release does, but it does not give up what the node leads.
type Campaign struct{ ID, After ID }

// GiveUp tells the work of a leadership to stop, because its owner wants that.
type GiveUp struct{ ID ID }

// Release says that the work of a leadership has stopped, or that nobody waits for its
// campaign any more.
type Release struct {
	ID   ID
	Rest time.Duration // for which the node does not stand, whoever campaigns
}

// Resign gives up what the node has, whoever holds it.
type Resign struct{}

// Fitness says whether the application is fit to lead: Why not, "" if it is.
type Fitness struct{ Unfit string }

// Candidacy says whether the node is to stand for election.
type Candidacy struct{ MayStand bool }

// Prefer changes the node's priority.
type Prefer struct{ Priority int }

// Close ends the election on this node. Abrupt does not wait for guarded work.
type Close struct{ Abrupt bool }

// Lease says, after a step of the elector, that the node leads.
type Lease struct {
	Term     lsn.Term
	End      elector.Time // elector.Never if no lease is needed
	Handover bool         // one is under way
	Pending  bool         // the elector has not been given every request yet
}

// StopWork says that the elector hands over, and when the work must have stopped. The
// Lease of the same step comes first.
type StopWork struct {
	By  elector.Time
	Why elector.Reason
}

// Lost says, after a step of the elector, that the node does not lead, and why if it did.
type Lost struct{ Why elector.Reason }

// Tick says that time has passed.
type Tick struct{}

func (Campaign) isInput()  {}
func (GiveUp) isInput()    {}
func (Release) isInput()   {}
func (Resign) isInput()    {}
func (Fitness) isInput()   {}
func (Candidacy) isInput() {}
func (Prefer) isInput()    {}
func (Close) isInput()     {}
func (Lease) isInput()     {}
func (StopWork) isInput()  {}
func (Lost) isInput()      {}
func (Tick) isInput()      {}

// Effects is what a step asks for, in this order: answer campaigns, tell the holder,
// hand over the requests, and call again by Wake.
type Effects struct {
	// Refused is a campaign that fails, Refusal is why.
	Refused ID
	Refusal Refusal
	// Granted is a campaign that has got its leadership.
	Granted ID
	// Holder is the leadership that Stop, Over and Overdue are about.
	Holder ID
	// Stop cancels the context of the work: it must stop by State.Deadline. ReasonNone
	// leaves the context as it is.
	Stop elector.Reason
	// Over says that another node may lead from now on. It comes once, with Stop or after.
	Over bool
	// Deadline is the present deadline of Holder if Holder is not 0. After Stop it never
	// becomes later.
	Deadline elector.Time
	// Overdue says that the work had its time and was not released. It comes once.
	Overdue bool
	// Requests are inputs for the elector: Eligible, Prefer, Guard, Resign, Stop or Tick.
	Requests []elector.Input
	// Wake is when the machine wants the next Tick at the latest; elector.Never if it has
	// no deadline.
	Wake elector.Time
}

// Refusal says why a campaign fails.
type Refusal uint8

// The refusals. NotRefused is the invalid zero.
const (
	NotRefused   Refusal = iota
	Busy                 // another campaign waits, or work has not been released
	NotCandidate         // this node has never been a candidate
	Resigned             // Resign
	Closed               // the election is closed on this node
)

// String returns the refusal's name in lower case.
func (r Refusal) String() string {
	return [...]string{"none", "busy", "not-candidate", "resigned", "closed"}[r]
}
