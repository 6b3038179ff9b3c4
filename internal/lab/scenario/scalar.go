package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/lsn"
)

// maxDuration bounds every time of a scenario.
const maxDuration = 1000 * time.Hour

const million = 1_000_000

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

// parseShare returns a share in parts per million.
func parseShare(text string) (int, string) {
	f, ok := fraction(text)
	if !ok || !(f >= 0 && f <= 1) {
		return 0, "a share from 0% to 100%, as in 30% or 0.3"
	}
	return int(math.Round(f * million)), ""
}

// fraction reads 30% or 0.3.
func fraction(text string) (f float64, ok bool) {
	number, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if percent {
		f /= 100
	}
	return f, err == nil
}

func parseFlag(text string) (bool, string) {
	if text != "true" && text != "false" {
		return false, "true or false"
	}
	return text == "true", ""
}

// parseCount allows what elector checks further.
func parseCount(text string) (int, string) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, "a whole number"
	}
	return int(n), ""
}

func parseSeed(text string) (uint64, string) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, "a whole number, 0 or more"
	}
	return n, ""
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

func parseLine(text string) (string, string) {
	if line := oneLine(text); line != "" {
		return line, ""
	}
	return "", "some text"
}
