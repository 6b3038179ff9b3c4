package kerneltest

import (
	"encoding/json"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/lsn"
)

// now is comparable between the processes of one machine.
func now() elector.Time { return elector.Time(clock.System().Now()) }

// The kinds of records.
const (
	opened    = "opened"    // the node is about to start
	closing   = "closing"   // the node is about to close
	state     = "state"     // Leader and Links have changed
	leads     = "leads"     // IsLeader was true from From to To
	works     = "works"     // guarded work was valid from From to To
	connected = "connected" // the log says so about Peer; likewise:
	lost      = "link down" //
	provable  = "death can be proven"
	proven    = "peer is dead" //
	answer    = "answer"       // IsLeader was true at an instant from From to To
	moved     = "transition"   // the log says so
	failed    = "failed"       // the node has ended by itself
	token     = "token"        // a leadership gave First out between From and To
	writes    = "writes"       // a write with First is sent from From on; if it arrives, then:
	wrote     = "wrote"        // the register admitted or refused it by To
	read      = "read"         // the register had First at an instant from From to To
	runs      = "runs"         // a command of bmqnode exec ran at From and at To
)

// record is a report of a voter, a line of JSON.
type record struct {
	Node        string       `json:",omitempty"` // set by the reader
	Kind        string       //
	At          elector.Time //
	Peer        string       `json:",omitempty"`
	Leader      string       `json:",omitempty"`
	Links       int          `json:",omitempty"` // how many are up
	From, To    elector.Time `json:",omitempty"`
	First, Last lsn.LSN      // tokens of works, First taken after From, Last before To
	Yes         int          `json:",omitempty"` // number of answers in leads
	Refused     bool         `json:",omitempty"` // wrote: the register had admitted a newer token
	Process     int          `json:",omitempty"` // of runs
	Moved       *transition  `json:",omitempty"`
	// Of the election's record: a value, the one that it is to replace, and the answer.
	Value, Base, Outcome string `json:",omitempty"`
}

// transition is one from the log of a node.
type transition struct {
	Group, From, To, Reason, Leader, Peer string
	Term                                  lsn.Term
}

// transitionIn returns the transition of the default election in a line of the log, if any.
func transitionIn(line []byte) *transition {
	var human struct {
		Message string `json:"@message"`
		Msg     string `json:"msg"` // as bmqnode logs
		transition
	}
	err := json.Unmarshal(line, &human)
	if err != nil || human.Message+human.Msg != moved || human.Group != string(cluster.DefaultGroup) {
		return nil
	}
	return &human.transition
}
