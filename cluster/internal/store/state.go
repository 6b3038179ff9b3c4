package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// The versions of the record. A record has a higher one if an older program would misread
// it, by dropping the emergencies, the term of the forgotten groups, the records or the size of
// the journal. One without any keeps the lower version, so that a downgrade is possible.
const (
	formatPlain       = 1
	formatEmergencies = 2
	formatForgotten   = 3
	formatRecords     = 4
	formatJournal     = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// state is everything that is durable. A value is never changed in place: a commit
// changes a clone.
type state struct {
	Format   int       `json:"format"`
	Commit   int       `json:"commit"` // the bbolt transaction that wrote the record
	Identity uuid.UUID `json:"identity"`
	Cluster  string    `json:"cluster"`
	Node     string    `json:"node"`
	Boot     uint64    `json:"boot"`
	// Groups holds the highest reserved term of every group that has one: this node has
	// voted in no higher term. A program that knows no Entered starts there. These are plain
	// integers, so that the file does not depend on how lsn prints a term.
	Groups numbers `json:"groups"`
	// Entered holds the term that the node has entered, for each of Groups where it is lower
	// than the reserved one.
	Entered numbers `json:"entered,omitempty"`
	// Records holds the record of every group that has one. Their values are apart.
	Records map[string]elector.Record `json:"records,omitempty"`
	// Journal is the size of the journal in bytes; 0 for none.
	Journal int64 `json:"journal,omitempty"`
	// Fresh are the groups whose value the commit wrote. If its fsync failed, the values may be in
	// the page cache only: the next start writes them again.
	Fresh []string `json:"fresh,omitempty"`
	// Forgotten is the highest term in which this node may have voted in a group that is not in
	// Groups, because it was removed, or never added: see shares.
	Forgotten uint64 `json:"forgotten,omitempty"`
	// used is what Forgotten would be if no group reserved terms now.
	used uint64
	// Idle counts, for each of Groups, the starts of the node since the last one that opened
	// the group. A group that is open has no entry.
	Idle numbers `json:"idle,omitempty"`
	// Pause stays here when it is over. An older program drops it: its elections go on.
	Pause *Pause `json:"pause,omitempty"`
	// Identities are those of the data directories that each voter had, the newest last. An
	// older program drops them, and then accepts a voter with an outdated directory.
	Identities map[elector.NodeID][]uuid.UUID `json:"identities,omitempty"`
	// Emergencies are never removed.
	Emergencies []Emergency `json:"emergencies,omitempty"`
}

func newState(owner Owner) state {
	return state{Format: formatPlain, Identity: uuid.New(), Cluster: owner.Cluster, Node: owner.Node,
		Groups: numbers{}}
}

// blank reports whether no group has, or had, a term above 0.
func (s state) blank() bool {
	highest := max(s.Forgotten, s.floor())
	for _, term := range s.Groups {
		highest = max(highest, term)
	}
	return highest == 0
}

func (s state) clone() state {
	s.Groups, s.Entered = maps.Clone(s.Groups), maps.Clone(s.Entered)
	s.Idle, s.Identities = maps.Clone(s.Idle), maps.Clone(s.Identities)
	s.Records = maps.Clone(s.Records)
	s.Emergencies = slices.Clone(s.Emergencies)
	return s
}

// numbers maps the names of groups to terms or counts. There can be thousands, and each
// commit writes all of them: without reflection and sorting it takes less than half the time.
type numbers map[string]uint64

// MarshalJSON returns what package json returns for a map, except for the order.
func (n numbers) MarshalJSON() ([]byte, error) {
	text := append(make([]byte, 0, 32*len(n)+2), '{')
	for name, number := range n {
		if len(text) > 1 {
			text = append(text, ',')
		}
		if strings.ContainsFunc(name, mayBeEscaped) {
			quoted, err := json.Marshal(name)
			if err != nil {
				return nil, err
			}
			text = append(text, quoted...)
		} else {
			text = append(append(append(text, '"'), name...), '"')
		}
		text = strconv.AppendUint(append(text, ':'), number, 10)
	}
	return append(text, '}'), nil
}

// mayBeEscaped reports whether package json may escape r.
func mayBeEscaped(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

// encode returns the record: the checksum of the JSON after it, and that JSON.
func (s state) encode() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode durable state: %w", err)
	}
	return append(checksum(text), text...), nil
}

// checksum is the CRC-32C of text in hexadecimal, and a space.
func checksum(text []byte) []byte {
	return fmt.Appendf(nil, "%08x ", crc32.Checksum(text, castagnoli))
}

func (s state) wantFormat() int {
	switch {
	case s.Journal > journalSize:
		return formatJournal
	case len(s.Records) > 0:
		return formatRecords
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
	const sumSize = 9
	text := record[min(sumSize, len(record)):]
	if has, want := record[:len(record)-len(text)], checksum(text); !bytes.Equal(has, want) {
		return state{}, fmt.Errorf("record of %d bytes has checksum %q, its content %q",
			len(record), has, want)
	}
	var s state
	err := json.Unmarshal(text, &s)
	switch {
	case err != nil:
		return state{}, fmt.Errorf("decode record: %w", err)
	case s.Format > formatJournal:
		return state{}, fmt.Errorf("%w: it has format %d, this program knows formats %d to %d",
			ErrNewer, s.Format, formatPlain, formatJournal)
	case s.Format < formatPlain:
		err = fmt.Errorf("record has format %d, this program knows formats %d to %d",
			s.Format, formatPlain, formatJournal)
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
	for group, term := range s.Entered {
		if term >= s.Groups[group] {
			err = fmt.Errorf("group %q has entered term %d, not one below the reserved %d",
				group, term, s.Groups[group])
		}
	}
	for group, r := range s.Records {
		err = errors.Join(err, r.Check())
		if entered := s.terms(group).Entered; r.LSN.Term > entered {
			err = fmt.Errorf("group %q has entered term %d, below that of %s", group, entered, r)
		}
	}
	for _, e := range s.Emergencies {
		err = errors.Join(err, e.check())
	}
	s.used = s.Forgotten
	return s, err
}
