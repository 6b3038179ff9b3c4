package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/lsn"
)

// The versions of the record. The number rises when an older program could
// misread what a newer one wrote: it would drop the emergencies, or the term of
// the groups that were forgotten. A record without any stays what it was, so that
// an older program may still be put back.
const (
	formatPlain       = 1
	formatEmergencies = 2
	formatForgotten   = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// state is everything that is durable. Values are never changed in place: a
// commit makes a new one from a clone.
type state struct {
	Format   int       `json:"format"`
	Commit   int       `json:"commit"` // the bbolt transaction that wrote the record
	Identity uuid.UUID `json:"identity"`
	Cluster  string    `json:"cluster"`
	Node     string    `json:"node"`
	Boot     uint64    `json:"boot"`
	// Groups holds the term of every group that has one. Plain integers, so that
	// the file does not depend on how lsn prints a term.
	Groups map[string]uint64 `json:"groups"`
	// Forgotten is the highest term of any group that was removed from Groups.
	Forgotten uint64 `json:"forgotten,omitempty"`
	// Idle counts, for each of Groups that was not opened since, the starts of the
	// node after the last one that opened it.
	Idle map[string]uint64 `json:"idle,omitempty"`
	// Emergencies are never removed.
	Emergencies []Emergency `json:"emergencies,omitempty"`
}

func newState(owner Owner) state {
	return state{Format: formatPlain, Identity: uuid.New(), Cluster: owner.Cluster, Node: owner.Node,
		Groups: map[string]uint64{}}
}

func (s state) clone() state {
	s.Groups, s.Idle = maps.Clone(s.Groups), maps.Clone(s.Idle)
	s.Emergencies = slices.Clone(s.Emergencies)
	return s
}

// encode returns the record: CRC-32C in hexadecimal, a space, JSON.
func (s state) encode() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode durable state: %w", err)
	}
	return append(fmt.Appendf(nil, "%08x ", crc32.Checksum(text, castagnoli)), text...), nil
}

func (s state) wantFormat() int {
	switch {
	case s.Forgotten > 0:
		return formatForgotten
	case len(s.Emergencies) > 0:
		return formatEmergencies
	}
	return formatPlain
}

// decode is the inverse of encode. It checks all that can be checked without
// knowing the directory's owner.
func decode(record []byte) (state, error) {
	text, err := verify(record)
	if err != nil {
		return state{}, err
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return state{}, fmt.Errorf("decode record: %w", err)
	}
	switch {
	case s.Format < formatPlain || s.Format > formatForgotten:
		err = fmt.Errorf("record has format %d, this program knows formats %d to %d",
			s.Format, formatPlain, formatForgotten)
	case s.Identity == uuid.Nil || s.Groups == nil:
		err = errors.New("record lacks the identity or the groups")
	case !lsn.Term(s.Forgotten).Valid():
		err = fmt.Errorf("a forgotten group had term %d, above the highest valid term %d",
			s.Forgotten, lsn.MaxTerm)
	}
	for group, term := range s.Groups {
		if !lsn.Term(term).Valid() {
			err = fmt.Errorf("group %q has term %d, above the highest valid term %d",
				group, term, lsn.MaxTerm)
		}
	}
	for _, e := range s.Emergencies {
		err = errors.Join(err, e.check())
	}
	return s, err
}

// verify returns the JSON part of a record whose checksum is right.
func verify(record []byte) ([]byte, error) {
	const digits = 8
	if len(record) <= digits || record[digits] != ' ' {
		return nil, fmt.Errorf("record of %d bytes does not start with a checksum", len(record))
	}
	want, err := strconv.ParseUint(string(record[:digits]), 16, 32)
	if err != nil {
		return nil, fmt.Errorf("read checksum of record: %w", err)
	}
	text := record[digits+1:]
	if got := crc32.Checksum(text, castagnoli); got != uint32(want) {
		return nil, fmt.Errorf("record has checksum %08x, its content %08x", want, got)
	}
	return text, nil
}
