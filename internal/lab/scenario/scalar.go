package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/lsn"
)

const (
	maxDuration = 1000 * time.Hour // bounds every time of a scenario
	million     = 1_000_000
)

// read sets target to what parse makes of a value. It returns false if there is
// no value, or if it is wrong, which it reports.
func read[T any](b *builder, s scalar, target *T, parse func(string) (T, string)) bool {
	if !s.there() {
		return false
	}
	got, wrong := parse(s.text)
	if wrong != "" {
		b.at(s.place, "%s is %q, but must be %s", s.key, s.text, wrong)
		return false
	}
	*target = got
	return true
}

// Each parser returns what the text says, or what would be right.

func parseDuration(text string) (time.Duration, string) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxDuration {
		return 0, "a duration from 0 to 1000h with its unit, as in 1.5s or 200ms"
	}
	return d, ""
}

func parsePositive(text string) (time.Duration, string) {
	d, wrong := parseDuration(text)
	if wrong != "" || d == 0 {
		return 0, "a duration above 0 and up to 1000h with its unit, as in 1.5s or 200ms"
	}
	return d, ""
}

// parseShare reads 30% or 0.3 and returns parts per million.
func parseShare(text string) (int, string) {
	number, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, "a share from 0% to 100%, as in 30% or 0.3"
	}
	return int(math.Round(f * million)), ""
}

func parseFlag(text string) (bool, string) {
	if text != "true" && text != "false" {
		return false, "true or false"
	}
	return text == "true", ""
}

// parseInt allows what the elector checks further.
func parseInt(text string) (int, string) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, "a whole number"
	}
	return int(n), ""
}

func parseSeed(text string) (uint64, string) { return parseWhole[uint64](text, 64) }

func parseCount(text string) (float64, string) { return parseWhole[float64](text, 32) }

func parseWhole[T uint64 | float64](text string, bits int) (T, string) {
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return 0, "a whole number, 0 or more"
	}
	return T(n), ""
}

func parseTerm(text string) (lsn.Term, string) {
	t, err := lsn.ParseTerm(text)
	if err != nil || t == 0 {
		return 0, fmt.Sprintf("a term from 1 to %d", lsn.MaxTerm)
	}
	return t, ""
}

// parseRate returns by how many parts per million a clock of that rate is fast.
func parseRate(text string) (int64, string) {
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || !(rate > 0.5 && rate <= 1.5) {
		return 0, "a rate above 0.5 and up to 1.5 seconds for each true second, as in 1.02"
	}
	return int64(math.Round((rate - 1) * million)), ""
}

// parseLine reads text that is not empty; line breaks become spaces.
func parseLine(text string) (string, string) {
	if line := strings.Join(strings.Fields(text), " "); line != "" {
		return line, ""
	}
	return "", "some text"
}

// maxValue is the longest value that a scenario publishes: one line of a report.
const maxValue = 100

func parseValue(text string) (string, string) {
	line, wrong := parseLine(text)
	if wrong != "" || len(line) > maxValue {
		return "", fmt.Sprintf("some text of at most %d bytes", maxValue)
	}
	return line, ""
}

// parsePart returns a share, from 0 to 1.
func parsePart(text string) (float64, string) {
	ppm, wrong := parseShare(text)
	return float64(ppm) / million, wrong
}

func parseFigure(text string) (float64, string) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f <= million) {
		return 0, "a number from 0 to 1000000"
	}
	return f, ""
}

// span writes a time in one unit, as people compare them: 70s, 1.5s, 200ms.
func span(d time.Duration) string {
	if d < time.Second {
		return strings.Replace(d.String(), "\u00b5s", "us", 1)
	}
	return number(d.Seconds()) + "s"
}

// percent writes parts per million.
func percent(ppm int) string { return number(float64(ppm)/10_000) + "%" }

// number writes f without exponent or needless zeros.
func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// phrase joins a verb and what it is about.
func phrase(verb string, about []string) string {
	return strings.Join(append([]string{verb}, about...), " ")
}

func texts[ID ~string](ids []ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}
