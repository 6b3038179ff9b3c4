package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/fatih/color"
)

// TextOptions says how text is written.
type TextOptions struct {
	// Width is how many columns a line may have; 0 means 80, less than 60 is
	// taken as 60. A single word that is longer has a line for itself.
	Width int
	// Color says that the output is a terminal with color and Unicode. Nothing is
	// said by color alone.
	Color bool
}

// printer writes lines of text. The first error is kept until close.
type printer struct {
	out   *bufio.Writer
	width int
	color bool
}

func newPrinter(w io.Writer, o TextOptions) *printer {
	width := o.Width
	if width == 0 {
		width = 80
	}
	return &printer{out: bufio.NewWriter(w), width: max(width, 60), color: o.Color}
}

// close writes what is left and returns the first error.
func (p *printer) close() error {
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// line writes one line, without spaces at its end.
func (p *printer) line(parts ...string) {
	p.out.WriteString(strings.TrimRight(strings.Join(parts, ""), " ") + "\n")
}

// wrapped writes text after a head; its other lines are indented as far.
func (p *printer) wrapped(head string, indent int, text string, look ...color.Attribute) {
	lines := wrap(plain(text), p.width-indent)
	if len(lines) == 0 {
		lines = []string{""}
	}
	p.line(head, p.paint(lines[0], look...))
	for _, l := range lines[1:] {
		p.line(strings.Repeat(" ", indent), p.paint(l, look...))
	}
}

// paint colors text if the output has color.
func (p *printer) paint(s string, how ...color.Attribute) string {
	if !p.color || len(how) == 0 {
		return s
	}
	c := color.New(how...)
	c.EnableColor()
	return c.Sprint(s)
}

// tick is the mark of what held or did not, padded to five columns.
func (p *printer) tick(held bool) string {
	switch {
	case held && p.color:
		return p.paint("\u2713", color.FgGreen, color.Bold) + "    "
	case held:
		return "ok   "
	case p.color:
		return p.paint("\u2717", color.FgRed, color.Bold) + "    "
	}
	return "FAIL "
}
