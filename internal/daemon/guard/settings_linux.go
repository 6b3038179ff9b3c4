package guard

import (
	"fmt"
	"strconv"
	"time"
)

// settings are what a guard knows from its start.
type settings struct {
	deadline      moment
	margin, grace time.Duration
	held          int      // how many files to keep open
	args          []string // the command
}

// arguments are the settings as Main gets them.
func (s settings) arguments() []string {
	var args []string
	for _, n := range []int64{int64(s.deadline), int64(s.margin), int64(s.grace), int64(s.held)} {
		args = append(args, strconv.FormatInt(n, 10))
	}
	return append(args, s.args...)
}

func parseSettings(args []string) (s settings, err error) {
	var numbers [4]int64
	if len(args) <= len(numbers) {
		return s, fmt.Errorf("a guard with %d arguments: it is started by its owner, not by hand", len(args))
	}
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(args[i], 10, 64); err != nil {
			return s, fmt.Errorf("argument %d of a guard: %w", i+1, err)
		}
	}
	return settings{
		deadline: moment(numbers[0]), margin: time.Duration(numbers[1]), grace: time.Duration(numbers[2]),
		held: int(numbers[3]), args: args[len(numbers):],
	}, nil
}
