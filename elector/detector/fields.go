package detector

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// field is the name of a field, and the function that reads its value.
type field struct {
	name string
	read func(value string) error
}

// into reads a value by parse.
func into[T any](target *T, parse func(string) (T, error)) func(string) error {
	return func(value string) (err error) {
		*target, err = parse(value)
		return err
	}
}

// readFields reads fields in any order, separated by commas or semicolons, perhaps in braces.
// Errors quote the example.
func readFields(text []byte, example string, fields ...field) error {
	inner := strings.TrimSpace(string(text))
	if open, ok := strings.CutPrefix(inner, "{"); ok {
		inner = strings.TrimSuffix(open, "}")
	}
	if inner == "" {
		return nil
	}
	seen := map[string]bool{}
	separates := func(r rune) bool { return r == ',' || r == ';' }
	for part := range strings.FieldsFuncSeq(inner, separates) {
		key, value, _ := strings.Cut(part, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == key })
		if i < 0 {
			var names []string
			for _, f := range fields {
				names = append(names, f.name)
			}
			return fmt.Errorf("%q is no field: there are %s", key, strings.Join(names, ", "))
		}
		if err := fields[i].read(value); err != nil || seen[key] {
			return fmt.Errorf("%s is %q, but must be written as in %s, and once", key, value, example)
		}
		seen[key] = true
	}
	return nil
}

func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
