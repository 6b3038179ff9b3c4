package elector

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// Identity is that of a data directory: the UUID that was made with it. The zero Identity is
// that of a node without a directory, and of a voter that no leader has met yet.
type Identity [16]byte

// String returns the first four bytes in hexadecimal, which is enough for people; "-" for none.
func (i Identity) String() string {
	if i == (Identity{}) {
		return "-"
	}
	return hex.EncodeToString(i[:4])
}

// Voter is a voter as a record names it.
type Voter struct {
	Node     NodeID
	Identity Identity // whose votes and acknowledgements count under that name
}

// Roster is the set of voters of a record, as one comparable value. The zero Roster is empty.
type Roster struct {
	text string // by voter, in order of names: the name's length, the name, the identity
}

// NewRoster returns the roster of these voters, in any order. Their names must be valid and
// distinct.
func NewRoster(voters ...Voter) Roster {
	voters = slices.SortedFunc(slices.Values(voters), func(a, b Voter) int {
		return strings.Compare(string(a.Node), string(b.Node))
	})
	var text []byte
	for _, v := range voters {
		text = append(append(text, byte(len(v.Node))), v.Node...)
		text = append(text, v.Identity[:]...)
	}
	return Roster{string(text)}
}

// ParseRoster is the inverse of Bytes, for bytes from a disk or a peer. The error says what is
// wrong with them.
func ParseRoster(text []byte) (Roster, error) {
	r := Roster{string(text)}
	last, n := NodeID(""), 0
	for rest := text; len(rest) > 0; n++ {
		end := 1 + int(rest[0]) // of the name; 1+rest[0] would be a byte
		size := end + len(Identity{})
		if len(rest) < size {
			return Roster{}, fmt.Errorf("voters: %d bytes are left for voter %d, it needs %d",
				len(rest), n+1, size)
		}
		name := NodeID(rest[1:end])
		switch {
		case NameProblem(name) != "":
			return Roster{}, fmt.Errorf("voters: name %q is %s", name, NameProblem(name))
		case name <= last:
			return Roster{}, fmt.Errorf("voters: %q after %q, they must be in order", name, last)
		}
		last, rest = name, rest[size:]
	}
	if n == 0 || n > scouting.MaxVoters {
		return Roster{}, fmt.Errorf("voters: there are %d, it must be 1 to %d", n, scouting.MaxVoters)
	}
	return r, nil
}

// Bytes returns the roster as the mesh carries it; ParseRoster reads it.
func (r Roster) Bytes() []byte { return []byte(r.text) }

// MarshalText returns the roster as disks keep it, in JSON: Bytes in base64.
func (r Roster) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, r.Bytes()), nil
}

// UnmarshalText is the inverse of MarshalText.
func (r *Roster) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.AppendDecode(nil, text)
	if err == nil {
		*r, err = ParseRoster(raw)
	}
	return err
}

// Voters returns the voters, sorted by name.
func (r Roster) Voters() []Voter {
	var voters []Voter
	for rest := r.text; rest != ""; {
		name, after := rest[1:1+int(rest[0])], rest[1+int(rest[0]):]
		v := Voter{Node: NodeID(name)}
		rest = after[copy(v.Identity[:], after):]
		voters = append(voters, v)
	}
	return voters
}

// Find returns the voter of that name, and whether there is one.
func (r Roster) Find(id NodeID) (Voter, bool) {
	for _, v := range r.Voters() {
		if v.Node == id {
			return v, true
		}
	}
	return Voter{}, false
}

// With returns the roster with a voter added, or with its identity replaced.
func (r Roster) With(v Voter) Roster { return NewRoster(append(r.Without(v.Node).Voters(), v)...) }

// Without returns the roster without the voter of that name.
func (r Roster) Without(id NodeID) Roster {
	return NewRoster(slices.DeleteFunc(r.Voters(), func(v Voter) bool { return v.Node == id })...)
}

// String returns the names and identities, for example "a=1f0c33aa,b=-".
func (r Roster) String() string {
	var parts []string
	for _, v := range r.Voters() {
		parts = append(parts, fmt.Sprintf("%s=%s", v.Node, v.Identity))
	}
	return strings.Join(parts, ",")
}

// MaxValue is the size of the largest value that a record can have, in bytes.
const MaxValue = 1 << 20

// Value names a value of the application: when it was first written, its size in bytes and its
// SHA-256. The driver keeps the bytes. The zero Value is the empty one, which nobody wrote.
type Value struct {
	LSN  lsn.LSN
	Size uint32
	Hash [32]byte
}

// Record is one version of what a quorum keeps for an election: a value of the application, and
// the voters. Versions are ordered by LSN: the term of the leader that wrote it, and a counter of
// its own that begins with 1 in each term. The zero Record is that of an election in which none
// was written; the configuration names its voters then. §15.1
type Record struct {
	LSN    lsn.LSN
	Value  Value
	Voters Roster
	// Lineage is the directory of the leader that wrote the first record, from which this one
	// descends. Founded is whether that one was committed: from then on no record of another
	// lineage takes its place. §15.14
	Lineage Identity `json:",omitzero"`
	Founded bool     `json:",omitempty"`
}

// String returns the record on one line, for example
// "record=5.1 voters=a=1f0c33aa,b=- value=4.2 size=10 hash=0c11aa22".
func (r Record) String() string {
	text := fmt.Sprintf("record=%s voters=%s", r.LSN, r.Voters)
	if r.Value != (Value{}) {
		text += fmt.Sprintf(" value=%s size=%d hash=%x", r.Value.LSN, r.Value.Size, r.Value.Hash[:4])
	}
	origin := "founding"
	if r.Founded {
		origin = "lineage"
	}
	if r.Lineage != (Identity{}) {
		text += fmt.Sprintf(" %s=%s", origin, r.Lineage)
	}
	return text
}

// Check returns what is wrong with a record that is to be accepted from the disk or a peer; nil if
// nothing is.
func (r Record) Check() error {
	_, err := ParseRoster([]byte(r.Voters.text))
	switch {
	case err != nil:
		return err
	case !r.LSN.Term.Led() || r.LSN.Counter == 0:
		return fmt.Errorf("LSN %s is of no leadership", r.LSN)
	case r.Value.LSN.Compare(r.LSN) > 0:
		return fmt.Errorf("its value is of %s, after the record's %s", r.Value.LSN, r.LSN)
	case r.Value.LSN.IsZero() != (r.Value.Hash == [32]byte{}),
		r.Value.LSN.IsZero() && r.Value.Size > 0:
		return errors.New("a value has an LSN and a hash, or it is empty and has neither")
	case r.Founded && r.Lineage == (Identity{}):
		return errors.New("a record that is founded has a lineage")
	case r.Value.Size > MaxValue:
		return fmt.Errorf("its value has %d bytes, the limit is %d", r.Value.Size, MaxValue)
	}
	return nil
}
