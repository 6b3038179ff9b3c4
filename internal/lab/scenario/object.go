package scenario

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/lsn"
)

// object reads a mapping key by key. Its readers set their target if the key is
// there and its value right, report it if it is there and wrong, and return
// whether they set.
type object struct {
	*report
	*value
	// odd says that a problem with the keys was reported. What seems to be missing
	// may be there under a wrong name, so that is not reported too.
	odd bool
}

// object begins to read v, what it is in a message, and reports the keys that
// are not known and those without a value. What is not a mapping is reported and
// reads as an empty one.
func (r *report) object(v *value, what string, known ...string) object {
	o := object{r, &value{kind: mapping, pos: v.pos, origin: v.origin}, v.kind != mapping}
	if o.odd {
		r.at(v, "%s is a mapping of keys to values, this is %s", what, v.kind.describe())
	}
	for _, f := range v.fields {
		switch {
		case !slices.Contains(known, f.key.text):
			o.odd = true
			r.at(f.key, "unknown key %q in %s: %s", f.key.text, what, suggest(f.key.text, known))
		case f.value.kind == null:
			o.odd = true
			r.at(f.value, "%q has no value: give one or leave the key out", f.key.text)
		default:
			o.fields = append(o.fields, f)
		}
	}
	return o
}

// incomplete reports that something is missing, unless it may be there under a
// wrong name.
func (o object) incomplete(format string, args ...any) {
	if !o.odd {
		o.at(o.value, format, args...)
	}
}

// get returns the value of a key, or nil.
func (o object) get(key string) *value {
	if f := o.find(key); f != nil {
		return f.value
	}
	return nil
}

// has reports whether the key is there, whatever its value.
func (o object) has(key string) bool { return o.find(key) != nil }

// key returns where the key stands, or the object itself if it is not there.
func (o object) key(key string) *value {
	if f := o.find(key); f != nil {
		return f.key
	}
	return o.value
}

// read sets target to what parse makes of the value of key.
func read[T any](o object, key string, target *T, parse func(text string) (T, string)) bool {
	v := o.get(key)
	if v == nil {
		return false
	}
	if v.kind != scalar {
		o.at(v, "%s is a single value, this is %s", key, v.kind.describe())
		return false
	}
	got, wrong := parse(v.text)
	if wrong != "" {
		o.at(v, "%s is %q, but must be %s", key, v.text, wrong)
		return false
	}
	*target = got
	return true
}

func (o object) duration(key string, d *time.Duration) bool {
	return read(o, key, d, parseDuration)
}

func (o object) positive(key string, d *time.Duration) bool {
	return read(o, key, d, parsePositive)
}

func (o object) share(key string, ppm *int) bool { return read(o, key, ppm, parseShare) }

func (o object) flag(key string, b *bool) bool { return read(o, key, b, parseFlag) }

func (o object) count(key string, n *int) bool { return read(o, key, n, parseCount) }

func (o object) term(key string, t *lsn.Term) bool { return read(o, key, t, parseTerm) }

// line reads text that is not empty; line breaks become spaces.
func (o object) line(key string, s *string) bool { return read(o, key, s, parseLine) }
