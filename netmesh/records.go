package netmesh

import (
	"fmt"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// recordItem is a message that tells of a record, or has a field that came with records. It travels
// in frames of its own, to peers that know them: others would not understand it, and what an
// election without a record sends stays as it was. A newer build may append fields, as to wireItem.
type recordItem struct {
	Message          wireItem
	RecordTerm       uint64
	RecordCounter    uint64
	CommittedTerm    uint64
	CommittedCounter uint64
	Entered          uint64
	Lineage          []byte // empty for none
	Founded          bool
	Voters           []byte // of the offer, as its value
	ValueTerm        uint64
	ValueCounter     uint64
	ValueSize        uint32
	ValueHash        []byte
	Cold             bool
}

// maxRecordItem is the most bytes that one encoded recordItem takes.
const maxRecordItem = maxItem + 9*9 + 5 + scouting.MaxVoters*(1+elector.MaxNameLength+16) + 3 + 34 +
	18 + 1 + 1

// hasRecord reports whether a message needs a frame of its own kind.
func hasRecord(m *elector.Message) bool {
	return m.Record != lsn.LSN{} || m.Committed != lsn.LSN{} || m.Entered != 0 || m.Cold ||
		m.Kind > elector.NodeUnavailable
}

// frame is the kind of frame in which a message travels.
func (i *queued) frame() frameKind {
	if hasRecord(&i.msg) {
		return frameRecords
	}
	return frameBatch
}

// set makes w the wire form of m.
func (w *recordItem) set(group string, m *elector.Message) {
	w.clear()
	w.Message.set(group, m)
	w.RecordTerm, w.RecordCounter = uint64(m.Record.Term), m.Record.Counter
	w.CommittedTerm, w.CommittedCounter = uint64(m.Committed.Term), m.Committed.Counter
	w.Entered, w.Founded, w.Cold = uint64(m.Entered), m.Founded, m.Cold
	if m.Lineage != (elector.Identity{}) {
		w.Lineage = append(w.Lineage, m.Lineage[:]...)
	}
	if r := m.Offer; r != nil {
		w.Voters = append(w.Voters, r.Voters.Bytes()...)
		w.ValueTerm, w.ValueCounter = uint64(r.Value.LSN.Term), r.Value.LSN.Counter
		w.ValueSize = r.Value.Size
		w.ValueHash = append(w.ValueHash, r.Value.Hash[:]...)
	}
}

// clear makes every field zero and keeps the buffers.
func (w *recordItem) clear() {
	message, lineage, voters, hash := &w.Message, w.Lineage[:0], w.Voters[:0], w.ValueHash[:0]
	message.clear()
	*w = recordItem{Message: *message, Lineage: lineage, Voters: voters, ValueHash: hash}
}

// message returns what w carries, or what no correct peer sends.
func (w *recordItem) message(names *interner) (group string, m elector.Message, err error) {
	if err := w.Message.check(); err != nil {
		return "", m, err
	}
	group, m = w.Message.message(names)
	m.Record = lsn.LSN{Term: lsn.Term(w.RecordTerm), Counter: w.RecordCounter}
	m.Committed = lsn.LSN{Term: lsn.Term(w.CommittedTerm), Counter: w.CommittedCounter}
	m.Entered, m.Founded, m.Cold = lsn.Term(w.Entered), w.Founded, w.Cold
	if n := copy(m.Lineage[:], w.Lineage); n != len(w.Lineage) || n != 0 && n != len(m.Lineage) {
		return "", m, fmt.Errorf("a lineage has %d bytes", len(w.Lineage))
	}
	if m.Kind == elector.RecordOffer {
		m.Offer, err = w.offer(m.Lineage)
	}
	return group, m, err
}

// offer returns the record that is offered.
func (w *recordItem) offer(lineage elector.Identity) (*elector.Record, error) {
	voters, err := elector.ParseRoster(w.Voters)
	if err != nil {
		return nil, err
	}
	r := elector.Record{
		LSN: lsn.LSN{Term: lsn.Term(w.RecordTerm), Counter: w.RecordCounter}, Voters: voters,
		Lineage: lineage, Founded: w.Founded,
		Value: elector.Value{
			LSN:  lsn.LSN{Term: lsn.Term(w.ValueTerm), Counter: w.ValueCounter},
			Size: w.ValueSize,
		},
	}
	switch n := copy(r.Value.Hash[:], w.ValueHash); {
	case n != len(r.Value.Hash) || n != len(w.ValueHash):
		return nil, fmt.Errorf("the hash of a value has %d bytes", len(w.ValueHash))
	case r.LSN.Term > lsn.Term(w.Message.Term):
		return nil, fmt.Errorf("record %s from a node in term %d", r.LSN, w.Message.Term)
	}
	return &r, r.Check()
}
