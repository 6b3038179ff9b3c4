package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	// Pos is where; the zero Pos if the cause is not in the file, for example an
	// Override, which Message then names.
	Pos     Pos
	Message string // what is wrong and what would be right, on one line
}

// FileError names everything that is wrong with a file, in the order of the file.
type FileError struct {
	File     string // as it was given
	Problems []Problem
}

// Error returns one line for each problem: file:line:column: message.
func (e *FileError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = fmt.Sprintf("%s:%d:%d: %s", e.File, p.Pos.Line, p.Pos.Column, p.Message)
		if p.Pos == (Pos{}) {
			lines[i] = fmt.Sprintf("%s: %s", e.File, p.Message)
		}
	}
	return strings.Join(lines, "\n")
}

// report collects problems.
type report struct{ problems []Problem }

// at notes a problem with v.
func (r *report) at(v *value, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if v.origin != "" {
		message = v.origin + ": " + message
	}
	r.problems = append(r.problems, Problem{v.pos, strings.ReplaceAll(message, "\n", " ")})
}

// err returns a *FileError with what was collected, each problem once, or nil.
func (r *report) err(file string) error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return &FileError{file, slices.Compact(r.problems)}
}
