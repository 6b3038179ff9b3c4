package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// MaxValue is the size of the largest value that Publish takes, in bytes: 1 MiB.
const MaxValue = elector.MaxValue

// Errors of Publish, besides ErrNotLeader and ErrClosed, and of changes of voters.
var (
	// ErrTooLarge means that the value has more than MaxValue bytes. Nothing was written.
	ErrTooLarge = errors.New("the value is too large")
	// ErrConflict means that PublishOptions.IfMatch did not match. Nothing was written.
	ErrConflict = loop.ErrConflict
	// ErrUnknown means that the value was perhaps written, or will be: a later leader may have it.
	// Record tells, once that leader has committed a record.
	ErrUnknown = loop.ErrUnknown
	// ErrRefused means that a record, or the change of voters, is not possible as things are; the
	// text says why. Nothing was written.
	ErrRefused = loop.ErrRefused
)

// Record is one version of the small document that a quorum of an election keeps: a value of the
// application, and the voters. Versions are ordered by LSN. The zero Record is that of an election
// in which none was written, and of a node that has not heard of one since its start.
type Record struct {
	LSN lsn.LSN
	// ValueLSN is the LSN under which Value was first written; zero if none was. A new leader writes
	// the same value under another LSN, and so does a change of voters.
	ValueLSN lsn.LSN
	Value    []byte  // shared: do not change it
	Voters   []Voter // sorted by name; shared: do not change it
}

// Voter is a voter as a record names it.
type Voter struct {
	Node NodeID `json:"node"`
	// Identity is that of its data directory; "" while no leader has met that voter, which then
	// counts for no quorum.
	Identity string `json:"identity,omitempty"`
}

// PublishOptions are those of Election.Publish.
type PublishOptions struct {
	// IfMatch, if set, makes Publish fail with ErrConflict unless the present value is the one that
	// was committed under this LSN: a Record.ValueLSN, or what Publish returned. The zero LSN stands
	// for no value. It is compared at the moment of the write.
	IfMatch *lsn.LSN
}

// Publish replaces the value of the election's record. It returns when a quorum of the voters has
// the value on disk, with the LSN under which it was committed: from then on every leader knows it,
// whatever happens to this node. Values are written one at a time, in the order of the calls. If
// ctx ends before, or another leader takes over, the error wraps ErrUnknown, unless it is certain
// that the value was not written and never will be.
//
// The error wraps ErrNotLeader once this leadership is over: a leadership that has ended writes
// nothing after the next leader knows what is committed. It wraps ErrTooLarge, ErrRefused, or
// ErrClosed, or is the cause of ctx. The caller must not change value before Publish returns.
func (l *Leadership) Publish(ctx context.Context, value []byte) (lsn.LSN, error) {
	err := checkSize(value)
	var at lsn.LSN
	if err == nil {
		at, err = l.e.n.loop.PublishHere(ctx, l.e.p, loop.Write{Value: value, Allowed: l.check})
	}
	return at, l.e.failed("publish", err)
}

func checkSize(value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("%w: it has %d bytes, the limit is %d", ErrTooLarge, len(value), MaxValue)
	}
	return nil
}

// check returns ErrNotLeader once this leadership no longer excludes every other one.
func (l *Leadership) check() error {
	if !l.Valid() {
		return ErrNotLeader
	}
	return nil
}

// Record returns the newest committed record. It waits until this leader knows that, which takes a
// round trip and a write to the disk after the election. No newer record was committed when Record
// was called. The error wraps ErrNotLeader once the leadership is over, or is the cause of ctx.
func (l *Leadership) Record(ctx context.Context) (Record, error) {
	return l.e.read(ctx, l.check, l.done)
}

func (e *Election) read(
	ctx context.Context, valid func() error, over <-chan struct{},
) (rec Record, err error) {
	r, err := e.n.loop.Read(ctx, e.p, valid, over)
	if err == nil {
		rec = asRecord(r)
	}
	return rec, e.failed("record", err)
}

// Record returns the newest record that this node knows to be committed. It may be old: its LSN
// says how old. It is the zero Record until a leader has named one since the start.
func (e *Election) Record() Record { return asRecord(e.p.Recorded()) }

// Newest returns the newest committed record, as Leadership.Record does, on the node that leads. On
// any other, the error wraps ErrNotLeader.
func (e *Election) Newest(ctx context.Context) (Record, error) {
	return e.read(ctx, func() error {
		if !e.IsLeader() {
			return ErrNotLeader
		}
		return nil
	}, e.p.Gone.Done())
}

// Records yields the newest record that this node knows to be committed, and again whenever that
// changes. A slow consumer misses versions of the past, never the newest. Records ends with ctx, or
// when the election is closed.
func (e *Election) Records(ctx context.Context) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for ctx.Err() == nil {
			now := e.p.Recorded()
			if !yield(asRecord(now)) {
				return
			}
			select {
			case <-now.Newer():
			case <-e.p.Gone.Done():
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// Publish is Leadership.Publish for callers that do not hold the leadership, on any node: it asks
// the leader, and waits for one until ctx ends. It asks the next leader only if nothing was written
// for certain, or if o.IfMatch makes sure that it is not written twice.
func (e *Election) Publish(ctx context.Context, value []byte, o PublishOptions) (lsn.LSN, error) {
	err := checkSize(value)
	var at lsn.LSN
	if err == nil {
		at, err = e.n.loop.Publish(ctx, e.p, loop.Write{Value: value, IfMatch: o.IfMatch})
	}
	return at, e.failed("publish", err)
}

// RecordStatus is what a node knows of an election's record. In JSON, an LSN is a text such as
// "5.1".
type RecordStatus struct {
	Accepted lsn.LSN `json:"accepted"` // the newest on disk here, perhaps not committed
	// Committed is the newest that is known to be committed; zero for none since the start.
	Committed lsn.LSN `json:"committed"`
	ValueLSN  lsn.LSN `json:"value_lsn"`  // of the committed value
	ValueSize int     `json:"value_size"` // in bytes
	Voters    []Voter `json:"voters"`     // of the accepted record
	// InSync is whether this leader has committed a record in its term, and so may write.
	InSync bool     `json:"in_sync,omitempty"`
	Behind []NodeID `json:"behind,omitempty"` // leader: the voters that lack its newest record
	Change string   `json:"change,omitempty"` // leader: the change of voters that is under way
	// Uncounted are the voters that count for no quorum, as far as this node knows: they run on a
	// data directory that the record does not name, or no leader has met them yet.
	Uncounted []NodeID `json:"uncounted,omitempty"`
	// Configured are the voters of this node's configuration, if the record has others.
	Configured []NodeID `json:"configured,omitempty"`
}

// asRecord is a record as an application sees it.
func asRecord(r *loop.Recorded) Record {
	return Record{r.Record.LSN, r.Record.Value.LSN, r.Value, asVoters(r.Record.Voters)}
}

func asVoters(roster elector.Roster) (voters []Voter) {
	for _, v := range roster.Voters() {
		identity := ""
		if v.Identity != (elector.Identity{}) {
			identity = uuid.UUID(v.Identity).String()
		}
		voters = append(voters, Voter{v.Node, identity})
	}
	return voters
}

// recordStatus returns GroupStatus.Record.
func recordStatus(s *loop.Snapshot, configured, uncounted []NodeID) *RecordStatus {
	r := &s.Record
	if r.Accepted.LSN.IsZero() {
		return nil
	}
	st := &RecordStatus{
		Accepted: r.Stored, Committed: r.Committed.LSN, ValueLSN: r.Committed.Value.LSN,
		ValueSize: int(r.Committed.Value.Size), Voters: asVoters(r.Accepted.Voters),
		InSync: s.Role == elector.Leader && r.InSync, Behind: r.Behind, Uncounted: uncounted,
	}
	switch {
	case r.Change.Add.Node != "":
		st.Change = "add " + string(r.Change.Add.Node)
	case r.Change.Remove != "":
		st.Change = "remove " + string(r.Change.Remove)
	}
	if len(configured) > 0 && !slices.Equal(slices.Sorted(slices.Values(configured)), s.Electorate) {
		st.Configured = configured
	}
	return st
}

// uncounted returns RecordStatus.Uncounted.
func (n *Node) uncounted(r *elector.RecordStatus, members []MemberStatus) (ids []NodeID) {
	for _, v := range asVoters(r.Accepted.Voters) {
		now := v.Identity
		if i := slices.IndexFunc(members, func(m MemberStatus) bool { return m.Node == v.Node }); i >= 0 {
			now = cmp.Or(members[i].Identity, now)
		} else if v.Node == n.cfg.Node {
			now = n.store.Identity().String()
		}
		if v.Identity == "" || now != v.Identity {
			ids = append(ids, v.Node)
		}
	}
	return ids
}
