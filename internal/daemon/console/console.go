// Package console prints the events of many nodes as one stream: a line per transition, a color per
// node, and plain text if the output is no terminal.
package console

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/fatih/color"

	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// Printer writes lines. It is safe for concurrent use.
type Printer struct {
	mu    sync.Mutex
	out   io.Writer
	width int // of the longest node name so far
	nodes map[string]*color.Color
}

// New returns a printer that writes to out. It writes colors unless the standard output is no
// terminal, or NO_COLOR is set.
func New(out io.Writer) *Printer {
	return &Printer{out: out, width: 2, nodes: map[string]*color.Color{}}
}

// palette avoids red, the color of trouble, and green, that of a leader.
var palette = []color.Attribute{
	color.FgCyan, color.FgMagenta, color.FgYellow, color.FgBlue,
	color.FgHiCyan, color.FgHiMagenta, color.FgHiYellow, color.FgHiBlue,
}

// Transition writes one transition.
func (p *Printer) Transition(e admin.Event) {
	role := e.From + " -> " + e.To
	if e.From == e.To {
		role = e.To
	}
	text := fmt.Sprintf("%-22s term %-4d %s", role, e.Term, e.Reason)
	other := e.Leader
	if other == "" || other == e.Node {
		other = e.Peer
	}
	switch {
	case other == "":
	case e.Reason != "TRANSFERRED":
		text += " " + string(other)
	case e.From == "LEADER":
		text += " to " + string(other)
	default:
		text += " by " + string(other)
	}
	if e.Transitions > 0 {
		text = fmt.Sprintf("%-22s %s: %s %s", role, Count(e.Transitions, "election"), e.Reason, other)
	}
	if e.Missed > 0 {
		text += fmt.Sprintf(" (missed before: %d)", e.Missed)
	}
	switch e.Reason {
	case "ELECTED", "REAFFIRMED":
		text = color.New(color.FgGreen, color.Bold).Sprint(text)
	case "LEASE_EXPIRED", "LEADER_NO_HEARTBEAT", "LEADER_UNAVAILABLE", "LEADER_PREEMPTED":
		text = color.New(color.FgRed).Sprint(text)
	}
	p.Note(e.Time, string(e.Node), "%s", text)
}

// Note writes a line about a node; at is when it happened. Each node has a color, in the order of
// their first lines.
func (p *Printer) Note(at time.Time, node, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.width = max(p.width, len(node))
	c, ok := p.nodes[node]
	if !ok {
		c = color.New(palette[len(p.nodes)%len(palette)])
		p.nodes[node] = c
	}
	fmt.Fprintf(p.out, "%s  %s  %s\n",
		at.Local().Format("15:04:05.000"), c.Sprintf("%-*s", p.width, node), fmt.Sprintf(format, args...))
}

// Say writes text that is about no node, such as a hint.
func (p *Printer) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.out, strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
}

// Columns aligns the rows of a table. Tabs separate the cells of a row.
func Columns(rows []string) []string {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, strings.Join(rows, "\n"))
	_ = columns.Flush() // a string takes all
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// JSON writes a value, indented for people.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Alert colors what needs attention.
func Alert(text string) string { return color.New(color.FgRed, color.Bold).Sprint(text) }

// Count writes how many there are of what.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Strong colors what to look at, such as a command to type.
func Strong(text string) string { return color.New(color.Bold).Sprint(text) }
