package scenario

// kind is the shape of a value.
type kind uint8

const (
	scalar kind = iota
	null        // nothing, as in "key:"
	list
	mapping
)

// describe says what a value is, for messages.
func (k kind) describe() string {
	return [...]string{"a single value", "nothing", "a list", "a mapping"}[k]
}

// value is a part of a file, freed of YAML's many ways to write it.
type value struct {
	kind   kind
	pos    Pos
	origin string // the override that it comes from; "" if it is in the file

	text   string   // of a scalar
	items  []*value // of a list
	fields []field  // of a mapping, keys distinct, in the order of the file
}

// field is one key of a mapping and its value.
type field struct{ key, value *value }

// find returns the field of that name, or nil.
func (v *value) find(key string) *field {
	for i := range v.fields {
		if v.fields[i].key.text == key {
			return &v.fields[i]
		}
	}
	return nil
}

// elements returns a list's items; anything else counts as a list of one.
func (v *value) elements() []*value {
	if v.kind == list {
		return v.items
	}
	return []*value{v}
}
