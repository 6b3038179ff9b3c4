package algorithm

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// Name is what the algorithm's source calls a message: what its method Name or the String of its
// field Kind returns, or else the name of its type.
func Name(m Message) string {
	if named, ok := m.(interface{ Name() string }); ok {
		return named.Name()
	}
	v := reflect.ValueOf(m)
	if kind := v.FieldByName("Kind"); kind.IsValid() {
		return fmt.Sprint(kind)
	}
	return v.Type().Name()
}

// Text is a message on one line: its name, and its exported fields that are not zero, for example
// "Vote term=3 granted". A message that is a fmt.Stringer says it itself.
func Text(m Message) string {
	if s, ok := m.(fmt.Stringer); ok {
		return s.String()
	}
	return Name(m) + fields(reflect.ValueOf(m))
}

// fields are those of a struct except Kind, and those of structs that it embeds.
func fields(v reflect.Value) string {
	var out strings.Builder
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		words := strings.TrimLeftFunc(f.Name, unicode.IsUpper) // "s" of IDs, "erm" of Term
		name := strings.ToLower(strings.TrimSuffix(f.Name, words)) + words
		switch {
		case !f.IsExported(), f.Name == "Kind", value.IsZero():
		case f.Anonymous:
			out.WriteString(fields(value))
		case value.Kind() == reflect.Bool:
			out.WriteString(" " + name)
		default:
			fmt.Fprintf(&out, " %s=%v", name, value)
		}
	}
	return out.String()
}
