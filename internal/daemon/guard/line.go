package guard

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// word begins a line of the talk between a process and its guard.
type word string

// What a guard is told.
const (
	tellDeadline word = "deadline" // all must be gone by then: a time of the guard's clock
	tellSignal   word = "signal"   // send the command that signal
	tellStop     word = "stop"     // let the command end
	tellKill     word = "kill"     // let nothing live
	tellHold     word = "hold"     // keep the file open that comes with the line
)

// What a guard says.
const (
	sayFailed  word = "failed"  // the exit code instead; it did not start, for the reason in the text
	sayExited  word = "exited"  // the command's exit code; others may be left
	sayExpired word = "expired" // the deadline came near
	sayKilling word = "killing" // what is left is being killed
	sayGone    word = "gone"    // nothing is left
)

// line is one thing said.
type line struct {
	word   word
	number int64
	text   string
}

func (l line) String() string { return fmt.Sprintf("%s %d %s\n", l.word, l.number, l.text) }

// parseLine is lenient with nothing: both ends are the same program.
func parseLine(s string) (line, error) {
	first, rest, _ := strings.Cut(s, " ")
	second, text, _ := strings.Cut(rest, " ")
	number, err := strconv.ParseInt(second, 10, 64)
	if err != nil {
		return line{}, fmt.Errorf("line %q between a command's guard and its owner: %w", s, err)
	}
	return line{word(first), number, text}, nil
}

// listen calls heard with every line until the other end has gone, or speaks
// another language.
func listen(r io.Reader, heard func(line)) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		l, err := parseLine(lines.Text())
		if err != nil {
			return
		}
		heard(l)
	}
}
