package recording

import "time"

// Record is one thing that happened to a node. Which fields mean something follows from
// its kind.
type Record struct {
	Time time.Time `json:"time"`  // wall clock of the node
	Age  float64   `json:"age_s"` // seconds since the start of the process, by the monotonic clock
	Node string    `json:"node"`
	Boot uint64    `json:"boot"` // counts the starts on the data directory
	Kind Kind      `json:"kind"`
	// Group is the election of Opened, Transition and of what a node was told.
	Group string `json:"group,omitempty"`

	From   string `json:"from,omitempty"` // Transition: roles, reason and leader as in an event
	To     string `json:"to,omitempty"`   // also Transfer: to whom; the voter of AddVoter
	Reason string `json:"reason,omitempty"`
	Term   uint64 `json:"term,omitempty"`
	Leader string `json:"leader,omitempty"`
	// Peer is the other end of a link, or the node that caused a transition.
	Peer string `json:"peer,omitempty"`

	Why      string `json:"why,omitempty"`      // LinkDown: the evidence; Died: the proof
	Faults   string `json:"faults,omitempty"`   // links: what a rehearsal had cut on purpose
	Identity string `json:"identity,omitempty"` // of the data directory: Started its own, LinkUp the peer's
	PeerBoot uint64 `json:"peer_boot,omitempty"`
	// Seconds is of StepDown the rest, of Held by how much the node was late, at least.
	Seconds float64 `json:"seconds,omitempty"`
	// AtMost is of Held the time since the node was last seen to work.
	AtMost float64 `json:"at_most_s,omitempty"`
	Setup  *Setup  `json:"setup,omitempty"` // Opened
}

// Kind says what happened.
type Kind string

// The kinds of records. Of the same process they come in the order in which they happened.
const (
	Started    Kind = "started"    // the process
	Ended      Kind = "ended"      // the process, in good order
	Opened     Kind = "opened"     // the node takes part in an election
	Transition Kind = "transition" // of role or leader
	LinkUp     Kind = "link-up"
	LinkDown   Kind = "link-down"
	Died       Kind = "died"      // the peer's process is proven dead
	Held       Kind = "held"      // the goroutine of the elections was held up
	Transfer   Kind = "transfer"  // the node was told to hand over
	StepDown   Kind = "step-down" // the node was told to step down, and not to stand for a while
	Unfit      Kind = "unfit"     // the application cannot lead
	Fit        Kind = "fit"       // it can again

	AddVoter    Kind = "add-voter"    // the node, as leader, was told to make To a voter
	RemoveVoter Kind = "remove-voter" // ... to remove it
)

// Setup is how a node takes part in an election.
type Setup struct {
	Voters       []string `json:"voters"`
	NotCandidate bool     `json:"not_candidate,omitempty"`
	Priority     int      `json:"priority,omitempty"`
	Scouting     bool     `json:"scouting"`
	Rule         string   `json:"rule"`
	// Elector are the settings as a scenario writes them, by its keys.
	Elector map[string]string `json:"elector"`
}

// about is what a record tells the state of, "" if it tells of a moment only: of several
// records about the same thing the newest says how things are.
func (r *Record) about() string {
	switch r.Kind {
	case Started:
		return string(Started)
	case Opened, Transition:
		return string(r.Kind) + " " + r.Group
	case LinkUp, LinkDown:
		return "link " + r.Peer
	}
	return ""
}

// dormant is the role of a node that has left an election.
const dormant = "DORMANT"
