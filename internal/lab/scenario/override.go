package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// Override replaces one setting of a file before it is checked, so that what is
// left out still follows from what is there. Keys are profile, scouting, rule,
// duration, seed, and those in the file's mappings, as in elector.lease and
// network.delay. Values are written as in the file.
type Override struct{ Key, Value string }

// String returns the override as a command line writes it.
func (o Override) String() string { return "--set " + o.Key + "=" + o.Value }

// ParseOverride reads key=value. That the key is known and the value right, Load
// checks.
func ParseOverride(text string) (Override, error) {
	key, v, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return Override{}, fmt.Errorf("set %q: want key=value, as in elector.lease=1s", text)
	}
	return Override{key, v}, nil
}

// OverrideKeys are the keys that an Override may have.
func OverrideKeys() []string {
	keys := []string{"profile", "scouting", "rule", "duration", "seed"}
	for _, k := range electorKeys() {
		keys = append(keys, "elector."+k)
	}
	for _, k := range linkKeys {
		keys = append(keys, "network."+k)
	}
	return keys
}

// override writes the overrides into the file's values. A later one wins.
func (b *builder) override(root *value, set []Override) {
	for _, o := range set {
		from := &value{origin: o.String()}
		if !slices.Contains(OverrideKeys(), o.Key) {
			b.at(from, "unknown setting %q: %s", o.Key, suggest(o.Key, OverrideKeys()))
			continue
		}
		in, key := root, o.Key
		if section, rest, ok := strings.Cut(o.Key, "."); ok {
			in, key = root.section(section, from), rest
		}
		in.put(key, &value{text: o.Value, origin: from.origin})
	}
}

// section returns the mapping of that key, which it adds if there is none.
func (v *value) section(key string, from *value) *value {
	f := v.find(key)
	if f == nil {
		v.put(key, &value{kind: mapping, origin: from.origin})
		f = v.find(key)
	}
	return f.value
}

// put sets a key. Where v is no mapping, reading it reports that.
func (v *value) put(key string, to *value) {
	named := field{&value{text: key, origin: to.origin}, to}
	if f := v.find(key); f != nil {
		*f = named
		return
	}
	v.fields = append(v.fields, named)
}
