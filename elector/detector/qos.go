package detector

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// QoS is the quality of service that a user asks of the detection of a crash. Exactly one of
// Accuracy and Duration is set.
type QoS struct {
	// Detect is T_D^U: a crash is detected within it, the mean delay included. It is between
	// 1ms and 1h.
	Detect time.Duration
	// Mistakes is T_MR^L: from one mistake to the next, the mean is at least this. It is at
	// least Detect.
	Mistakes Recurrence
	// Accuracy is P_A^L: at a random moment while the sender is up, it is trusted with at least
	// this probability. It is at least 0.5 and below 1.
	Accuracy float64
	// Duration is T_M^U: a mistake lasts no longer than this on average. It is below Mistakes.
	Duration time.Duration
}

// Check calls wrong for each field that is out of range, with its value and what would be right.
func (q QoS) Check(wrong func(field string, value any, want string)) {
	want := func(ok bool, field string, value any, want string, args ...any) {
		if !ok {
			wrong(field, value, fmt.Sprintf(want, args...))
		}
	}
	want(q.Detect >= time.Millisecond && q.Detect <= time.Hour, "detect", q.Detect,
		"between %s and %s", time.Millisecond, time.Hour)
	want(q.Mistakes >= Recurrence(q.Detect) && q.Mistakes > 0, "mistakes", q.Mistakes,
		"a rate of at most one in detect, 1/%s: for example 1/30d", q.Detect)
	switch {
	case q.Duration == 0:
		want(q.Accuracy >= 0.5 && q.Accuracy < 1, "accuracy", q.Accuracy, "at least 0.5 and below 1")
	case q.Accuracy != 0:
		want(false, "duration", q.Duration, "left out: accuracy, %v, says it already", q.Accuracy)
	default:
		want(q.Duration > 0 && q.Duration < time.Duration(q.Mistakes), "duration", q.Duration,
			"positive, and shorter than the time between mistakes, %s", time.Duration(q.Mistakes))
	}
}

// Validate returns all that Check says as one error, or nil.
func (q QoS) Validate() error {
	var wrong []error
	q.Check(func(field string, value any, want string) {
		wrong = append(wrong, fmt.Errorf("%s is %v, but must be %s", field, value, want))
	})
	return errors.Join(wrong...)
}

// MarshalText returns the fields that are set, as UnmarshalText reads them; nothing for the zero
// QoS.
func (q QoS) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// String returns the same text.
func (q QoS) String() string {
	if q == (QoS{}) {
		return ""
	}
	text := fmt.Sprintf("detect: %s, mistakes: %s", q.Detect, q.Mistakes)
	if q.Duration != 0 {
		return text + fmt.Sprintf(", duration: %s", q.Duration)
	}
	return text + ", accuracy: " + strconv.FormatFloat(q.Accuracy, 'f', -1, 64)
}

// UnmarshalText reads fields in any order, separated by commas or semicolons and perhaps in braces,
// such as "detect: 200ms, mistakes: 1/30d, accuracy: 0.99999". Without any field it yields the zero
// QoS. It does not check the fields.
func (q *QoS) UnmarshalText(text []byte) error {
	var read QoS
	err := readFields(text, ExampleQoS,
		field{"detect", into(&read.Detect, time.ParseDuration)},
		field{"mistakes", func(value string) error { return read.Mistakes.UnmarshalText([]byte(value)) }},
		field{"accuracy", into(&read.Accuracy, parseFloat)},
		field{"duration", into(&read.Duration, time.ParseDuration)})
	if err == nil {
		*q = read
	}
	return err
}

// ExampleQoS is a quality of service as text; a usual link gives it.
const ExampleQoS = "detect: 1s, mistakes: 1/1d, accuracy: 0.99999"

// duration returns T_M^U in seconds. E(T_MR) >= T_MR^L and E(T_M) <= (1 - P_A^L) x T_MR^L
// together make P_A >= P_A^L.
func (q QoS) duration() float64 {
	if q.Duration != 0 {
		return q.Duration.Seconds()
	}
	return (1 - q.Accuracy) * time.Duration(q.Mistakes).Seconds()
}

// Recurrence is a mean time between mistakes. Its text is the rate: "1/30d" is one mistake
// in thirty days, "10/1h" is one in six minutes.
type Recurrence time.Duration

const day = 24 * time.Hour

// MarshalText returns the rate as "1/" and a duration.
func (r Recurrence) MarshalText() ([]byte, error) {
	if d := time.Duration(r); d >= day && d%day == 0 {
		return fmt.Appendf(nil, "1/%dd", d/day), nil
	}
	return fmt.Appendf(nil, "1/%s", time.Duration(r)), nil
}

// String returns the same text.
func (r Recurrence) String() string {
	text, _ := r.MarshalText()
	return string(text)
}

// UnmarshalText reads a count, a slash and a duration: days ("30d"), or what
// time.ParseDuration reads.
func (r *Recurrence) UnmarshalText(text []byte) error {
	wrong := func(why string) error {
		return fmt.Errorf("mistakes are %q, but must be a count, a slash and a time, "+
			"for example 1/30d or 5/12h: %s", text, why)
	}
	countText, timeText, _ := strings.Cut(string(text), "/")
	count, err := strconv.ParseUint(countText, 10, 31)
	if err != nil || count == 0 {
		return wrong("the count is a whole number from 1 to 2147483647")
	}
	span, err := parseDays(timeText)
	if err != nil {
		return wrong("the time is days (30d), or a duration such as 12h, 90m or 1h30m")
	}
	if span/time.Duration(count) <= 0 {
		return wrong("the time is positive, and at least 1ns for each mistake")
	}
	*r = Recurrence(span / time.Duration(count))
	return nil
}

func parseDays(text string) (time.Duration, error) {
	number, inDays := strings.CutSuffix(text, "d")
	if !inDays {
		return time.ParseDuration(text)
	}
	days, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return 0, err
	}
	return time.Duration(days) * day, nil
}
