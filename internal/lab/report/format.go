package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bmqelect/bmqelect/internal/base/words"
)

// seconds writes a time to the millisecond without needless zeros: "12.05s".
func seconds(d time.Duration) string {
	whole := float64(d.Round(time.Millisecond).Milliseconds())
	return strconv.FormatFloat(whole/1e3, 'f', -1, 64) + "s"
}

// exact writes a time to the millisecond, always with three digits, for columns.
func exact(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

// percent writes a share of 1. It never rounds up to 100 %.
func percent(share float64) string {
	s := fmt.Sprintf("%.2f %%", share*100)
	if share < 1 && s == "100.00 %" {
		return "99.99 %"
	}
	return s
}

// count writes a number with its thousands apart: "12,345".
func count[T ~int | ~uint64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plain makes foreign text safe to print on one line, however long.
func plain(s string) string { return words.Printable(s, math.MaxInt) }

// clip shortens s to width runes.
func clip(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return string(r[:max(width-1, 0)]) + "~"
}

// pad clips s to width runes or fills it up with spaces; padLeft has them first.
func pad(s string, width int) string     { return fmt.Sprintf("%-*s", width, clip(s, width)) }
func padLeft(s string, width int) string { return fmt.Sprintf("%*s", width, clip(s, width)) }

// Wrap breaks s between words into lines of at most width runes. A word that is
// longer has a line for itself. There is one line at least.
func Wrap(s string, width int) []string {
	lines := []string{""}
	for i, word := range strings.FieldsFunc(s, func(r rune) bool { return r == ' ' }) {
		switch last := &lines[len(lines)-1]; {
		case i == 0:
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

// ticks are the times that an axis from 0 to end labels: at most most of them, in steps of 1,
// 2 or 5 and zeros.
func ticks(end time.Duration, most int) (at []time.Duration) {
	step := time.Millisecond
	for i := 0; int((end+step-1)/step) > most; i++ {
		if step *= 2; i%3 == 1 {
			step += step / 4
		}
	}
	for t := time.Duration(0); t < end; t += step {
		at = append(at, t)
	}
	return at
}
