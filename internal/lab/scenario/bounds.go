package scenario

import (
	"fmt"
	"math"
	"strconv"
)

// bounds reads an exact figure or {min, max}, and writes it with show.
func (b *builder) bounds(v *value, what string, parse func(string) (float64, string), show func(float64) string) (Range, string) {
	r := Range{math.Inf(-1), math.Inf(1)}
	if v.kind == scalar {
		o := object{report: b.report, value: &value{kind: mapping, fields: []field{{&value{text: what}, v}}}}
		read(o, what, &r.Min, parse)
		r.Max = r.Min
		return r, "exactly " + show(r.Min)
	}
	o := b.object(v, what, "min", "max")
	low, high := read(o, "min", &r.Min, parse), read(o, "max", &r.Max, parse)
	switch {
	case low && high && r.Min > r.Max:
		b.at(v, "min is %s, but must be at most max, %s", show(r.Min), show(r.Max))
	case low && high:
		return r, fmt.Sprintf("from %s to %s", show(r.Min), show(r.Max))
	case low:
		return r, "at least " + show(r.Min)
	case high:
		return r, "at most " + show(r.Max)
	case v.kind == mapping && len(v.fields) == 0:
		b.at(v, "%s bounds nothing: give a figure, or min, or max", what)
	}
	return r, ""
}

func parseWhole(text string) (float64, string) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, "a whole number, 0 or more"
	}
	return float64(n), ""
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

// ppm is the inverse of parsePart's division.
func ppm(share float64) int { return int(math.Round(share * million)) }
