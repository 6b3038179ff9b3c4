package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// records maps the names of groups to their records.
type records map[string]elector.Record

// fixed is a record but for its voters, as the file has it.
type fixed struct {
	Term, Counter, ValueTerm, ValueCounter uint64
	Size                                   uint32
	Hash                                   [32]byte
}

// encodeRecord returns a record as the file has it: fixed, then the voters.
func encodeRecord(r elector.Record) []byte {
	v := r.Value
	text, err := binary.Append(nil, binary.BigEndian, fixed{
		uint64(r.LSN.Term), r.LSN.Counter, uint64(v.LSN.Term), v.LSN.Counter, v.Size, v.Hash,
	})
	if err != nil {
		panic(err) // a struct of fixed size
	}
	return append(text, r.Voters.Bytes()...)
}

// decodeRecord is the inverse of encodeRecord.
func decodeRecord(text []byte) (r elector.Record, err error) {
	var f fixed
	n, err := binary.Decode(text, binary.BigEndian, &f)
	if err != nil {
		return r, fmt.Errorf("a record of %d bytes: %w", len(text), err)
	}
	r.LSN = lsn.LSN{Term: lsn.Term(f.Term), Counter: f.Counter}
	r.Value = elector.Value{Size: f.Size, Hash: f.Hash,
		LSN: lsn.LSN{Term: lsn.Term(f.ValueTerm), Counter: f.ValueCounter}}
	if r.Voters, err = elector.ParseRoster(text[n:]); err != nil {
		return r, err
	}
	return r, r.Check()
}

func (r records) MarshalJSON() ([]byte, error) {
	texts := make(map[string][]byte, len(r))
	for group, record := range r {
		texts[group] = encodeRecord(record)
	}
	return json.Marshal(texts)
}

func (r *records) UnmarshalJSON(text []byte) error {
	var texts map[string][]byte
	if err := json.Unmarshal(text, &texts); err != nil {
		return err
	}
	*r = make(records, len(texts))
	for group, text := range texts {
		record, err := decodeRecord(text)
		if err != nil {
			return fmt.Errorf("group %q: %w", group, err)
		}
		(*r)[group] = record
	}
	return nil
}
