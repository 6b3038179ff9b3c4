package supervisor

import (
	"encoding/json"
	"fmt"
	"time"
)

// word is the kind of a message between an owner and its supervisor.
type word string

// What the owner says.
const (
	tellDeadline word = "deadline" // everything must be gone by then: a moment
	tellSignal   word = "signal"   // send the command that signal
	tellStop     word = "stop"     // let the command end
	tellKill     word = "kill"     // kill everything
	tellHold     word = "hold"     // keep the file open that comes with the message
)

// What the supervisor says.
const (
	sayFailed  word = "failed"  // the command did not start: its exit code, and why
	sayExited  word = "exited"  // the command's exit code; descendants may be left
	sayExpired word = "expired" // the deadline came near
	sayKilling word = "killing" // what is left is being killed
	sayGone    word = "gone"    // nothing is left
)

// message is one packet of the socket.
type message struct {
	Word   word
	Number int64
	Text   string `json:",omitempty"`
}

func (m message) encode() []byte {
	data, _ := json.Marshal(m) // a string and a number always can be
	return data
}

// settings are what a supervisor knows from its start, beside the command.
type settings struct {
	Deadline      moment
	Margin, Grace time.Duration
	Held          int // how many files to keep open
}

// parseArguments returns what Main was started with.
func parseArguments(args []string) (s settings, command []string, err error) {
	if len(args) < 2 {
		return s, nil, fmt.Errorf("a supervisor with %d arguments: bmqnode exec starts it, "+
			"nobody does by hand", len(args))
	}
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return s, nil, fmt.Errorf("settings of a supervisor: %w", err)
	}
	return s, args[1:], nil
}
