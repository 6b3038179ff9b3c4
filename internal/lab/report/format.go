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
	var lines []string
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return r == ' ' }) {
		last := len(lines) - 1
		if last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	if len(lines) == 0 {
		return []string{""}
	}
	return lines
}

const ms, day = time.Millisecond, 24 * time.Hour

// steps are distances between ticks that read well.
var steps = []time.Duration{
	ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms, 500 * ms,
	time.Second, 2 * time.Second, 5 * time.Second,
	10 * time.Second, 20 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute,
	10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, day,
}

// ticks are the times that an axis from 0 to end labels: at most most of them
// where a day's step is fine enough.
func ticks(end time.Duration, most int) []time.Duration {
	step := day
	for _, s := range steps {
		if int((end+s-1)/s) <= most {
			step = s
			break
		}
	}
	var at []time.Duration
	for t := time.Duration(0); t < end; t += step {
		at = append(at, t)
	}
	return at
}

// tickLabel writes a time of an axis: seconds, or minutes and hours where these
// are whole.
func tickLabel(t time.Duration) string {
	switch {
	case t >= time.Hour && t%time.Hour == 0:
		return fmt.Sprintf("%dh", t/time.Hour)
	case t >= 10*time.Minute && t%time.Minute == 0:
		return strings.TrimSuffix(t.String(), "0s")
	}
	return seconds(t)
}
