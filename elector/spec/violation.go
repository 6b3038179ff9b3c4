package spec

import (
	"fmt"
	"strings"
	"time"
)

// Violation is a broken rule: which one, how, and how to see it again.
type Violation struct {
	// Rule is "I1", "I2", "I3", "V1", "V3", "work", "transition", "vote", "votes", "promise",
	// "scouting", "state", "lease", "persist" or "wedge".
	Rule   string
	Detail string
	Seed   uint64        // of the simulation
	At     time.Duration // simulated time
	Trace  []string      // the last events, oldest first
}

// Error tells all of it, the trace last, one event a line.
func (v *Violation) Error() string {
	return fmt.Sprintf("%s violated at %s with seed %d: %s\n  %s",
		v.Rule, v.At, v.Seed, v.Detail, strings.Join(v.Trace, "\n  "))
}

// Broken returns a violation of a rule.
func Broken(rule, format string, args ...any) *Violation {
	return &Violation{Rule: rule, Detail: fmt.Sprintf(format, args...)}
}
