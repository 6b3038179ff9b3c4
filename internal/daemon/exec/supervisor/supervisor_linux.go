// Package supervisor runs a command that must not outlive a deadline, whatever happens to the
// process that started it.
//
// A small process, the supervisor, stands between that process, the owner, and the command. It is
// the same program, started again, in which Main runs, and it is the parent of the command. The
// owner tells it over a socket how far the deadline has moved. When the deadline comes near, the
// supervisor kills the command and all its descendants. It also ends them when the socket closes,
// which the kernel does if the owner dies. An owner that is stopped (SIGSTOP) moves no deadline.
//
// The supervisor is a subreaper: processes that daemonize become its children, so it finds them. If
// it is late, the owner kills all descendants of the supervisor, and then the supervisor. Out of
// reach are processes that another process starts for the command (a service manager, a container
// engine), and those that may not be signaled. If another process kills the supervisor, the kernel
// kills the command, and the owner kills the rest of the supervisor's session; a process that has
// left the session goes on.
//
// Only Linux has what this needs. A Command is safe for concurrent use.
package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// The exit codes of shells for a command that could not be started.
const (
	CodeNotExecutable = 126
	CodeNotFound      = 127
	codeSignaled      = 128 // plus the signal's number
)

// CodeOf is the exit code of a shell for such an error.
func CodeOf(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return CodeNotFound
	}
	return CodeNotExecutable
}

// Config says what to run. All fields except Stdin and Held are required.
type Config struct {
	// Self is the command line that starts this program so that it calls Main with the arguments that
	// follow.
	Self []string
	// Args are the command's name, looked up in PATH, and its arguments.
	Args []string
	Env  []string // of the command, and of the supervisor
	// Stdin is the command's; nil is an empty one. The command shares this process's output.
	Stdin *os.File
	// Deadline returns when everything must be gone; each call may return another time. Zero is never.
	Deadline func() time.Time
	// Margin is the time before the deadline at which everything is killed; positive.
	Margin time.Duration
	// Started is called once the command runs, before Done is closed.
	Started func()
	// Grace is the time between SIGTERM and SIGKILL, except after Stop: when the owner has died, and
	// when the command has ended and left processes behind. Positive.
	Grace time.Duration
	// Held are files that stay open as long as anything of the command may run. If one of them is
	// closed already, the command is not started.
	Held []syscall.Conn
}

// ErrLate is the Err of a command that was not started.
var ErrLate = errors.New("the deadline came near before the command could start")

// Result tells how a command ended.
type Result struct {
	// Code is the exit code, or 128 and the number of the signal that ended it;
	// CodeNotFound or CodeNotExecutable if it did not start.
	Code int
	// Expired means that everything was killed because the deadline came near.
	Expired bool
	// Err is why the command did not start, or that its supervisor was killed.
	Err error
}

// word is the kind of a message.
type word string

// What the owner says.
const (
	tellDeadline word = "deadline" // everything must be gone at that moment
	tellSignal   word = "signal"   // send the command that signal
	tellStop     word = "stop"     // let the command end
	tellKill     word = "kill"     // kill everything
	tellHold     word = "hold"     // keep the file open that comes with the message
)

// What the supervisor says.
const (
	sayFailed  word = "failed"  // the command did not start; its exit code, and why
	sayLate    word = "late"    // the command was not started, because the deadline had come near
	sayStarted word = "started" // the command runs
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
	data, _ := json.Marshal(m) // a string and a number can always be encoded
	return data
}

// settings are what a supervisor knows at its start, besides the command.
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
