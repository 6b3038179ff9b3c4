package loop

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/lsn"
)

// Errors of requests that concern a record.
var (
	ErrConflict = errors.New("the record has another value")
	ErrUnknown  = errors.New("it is not known whether it was done")
	ErrRefused  = errors.New("refused")
	ErrNoVoter  = fmt.Errorf("%w: no such voter", ErrRefused)
)

// Recorded is the newest record that a node knows to be committed, with its value. It is immutable.
type Recorded struct {
	Record elector.Record
	Value  []byte
	newer  signal
}

// Newer is closed when the node knows a newer record.
func (r *Recorded) Newer() <-chan struct{} { return r.newer.Done() }

// Recorded returns the newest committed record that this node knows.
func (e *Election) Recorded() *Recorded {
	return lazily(&e.recorded, func() *Recorded { return &Recorded{} })
}

// lazily returns what p points to. It makes the first value when somebody asks for it: in most of a
// hundred thousand elections nobody does.
func lazily[T any](p *atomic.Pointer[T], first func() *T) *T {
	if has := p.Load(); has != nil {
		return has
	}
	p.CompareAndSwap(nil, first())
	return p.Load()
}

// Write is a value of at most elector.MaxValue bytes that is to be published.
type Write struct {
	Value   []byte
	IfMatch *lsn.LSN     // fails with ErrConflict unless the present value is that of this LSN
	Allowed func() error // if set, the driver asks it at the moment of the write
}

// write is a Write on its way.
type write struct {
	Write

	value elector.Value
	lsn   lsn.LSN     // under which it was written; zero while it waits
	taken atomic.Bool // by the driver, which writes it, or by the caller, so that it never is
	done  chan answer[lsn.LSN]
}

// PublishHere writes a value, if this node leads, and waits until it is committed.
func (l *Loop) PublishHere(ctx context.Context, e *Election, in Write) (lsn.LSN, error) {
	w := &write{Write: in, done: make(chan answer[lsn.LSN], 1), value: elector.Value{
		Size: uint32(len(in.Value)), Hash: sha256.Sum256(in.Value),
	}}
	err := l.Do(ctx, func(d *Driver) error {
		if err := e.Ended(); err != nil {
			return err
		}
		e.g.own().writes = append(e.g.writes, w)
		d.stepRequests(e.g)
		return nil
	})
	var a answer[lsn.LSN]
	if err == nil {
		a, err = await(ctx, l, w.done, e.Gone.Done())
	}
	if err != nil && !w.taken.CompareAndSwap(false, true) {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if err != nil {
		return lsn.LSN{}, err
	}
	return a.value, a.err
}

// nextWrite is the input that writes the next value which waits, if the leader may write it now.
func (d *Driver) nextWrite(g *group) (elector.Input, bool) {
	for len(g.writes) > 0 {
		why := g.machine.Publishable()
		if errors.Is(why, elector.ErrNotInSync) || errors.Is(why, elector.ErrWriting) ||
			why == nil && d.needsNewcomer(g) {
			return nil, false
		}
		w := g.writes[0]
		why = d.mayWrite(g, w, why)
		if newest, _ := g.machine.Versions(); why == nil && newest == (lsn.LSN{}) &&
			!w.taken.Load() {
			return elector.Publish{}, true // the first record, which has no value
		}
		g.writes = g.writes[1:]
		if !w.taken.CompareAndSwap(false, true) {
			continue
		}
		if why != nil {
			w.done <- answer[lsn.LSN]{err: why}
			continue
		}
		g.writing = w
		g.keep(w.value.Hash, w.Value)
		return elector.Publish{Value: w.value}, true
	}
	g.writes = nil
	return nil, false
}

// mayWrite returns why a value must not be written now, after the machine has said its part.
func (d *Driver) mayWrite(g *group, w *write, why error) error {
	if why != nil && !errors.Is(why, elector.ErrNotLeader) {
		why = fmt.Errorf("%w: %w", ErrRefused, why)
	}
	if why == nil {
		why = d.mayBegin(g)
	}
	if why == nil && w.Allowed != nil {
		why = w.Allowed()
	}
	if now := &g.Recorded().Record; why == nil && w.IfMatch != nil {
		// Each committed record between the two has the same value.
		if at := *w.IfMatch; at.Less(now.Value.LSN) || now.LSN.Less(at) {
			why = fmt.Errorf("%w: it is of %s, not of %s", ErrConflict, now.Value.LSN, at)
		}
	}
	return why
}

// mayBegin returns why the election must not get its first record yet. Before that record, only
// equal configurations make sure that all nodes count the same voters. After it, a voter of a build
// that knows no records hears of no leader.
func (d *Driver) mayBegin(g *group) error {
	if newest, _ := g.machine.Versions(); newest != (lsn.LSN{}) {
		return nil
	}
	if why := d.Differs(); why != "" {
		return fmt.Errorf("%w: before the first record every connected node must be configured with "+
			"the same voters, or none: %s", ErrRefused, why)
	}
	return d.refuseOlder()
}

// refuseOlder returns an error if a connected voter runs a build that knows neither records nor
// proofs of leadership.
func (d *Driver) refuseOlder() error {
	for _, id := range d.Voters {
		if linked, knows := d.calls.link(id); linked && !knows {
			return fmt.Errorf("%w: voter %s runs a build that knows no records: upgrade it",
				ErrRefused, id)
		}
	}
	return nil
}

// showRecord shows the record that is committed after a step with these effects, and answers who
// published it.
func (g *group) showRecord(e *elector.Effects) {
	newest, committed := g.machine.Versions()
	if newest != g.newest {
		g.own().newest = newest
		g.setVoter(g.machine.MayVote())
	}
	if w := g.writing; w != nil && w.lsn == (lsn.LSN{}) {
		if w.lsn = e.Accept.LSN; w.lsn == (lsn.LSN{}) || w.lsn != e.Accept.Value.LSN {
			// The machine wrote nothing: its lease had ended when the step began.
			w.done <- answer[lsn.LSN]{err: elector.ErrNotLeader}
			g.writing = nil
		}
	}
	if committed == (lsn.LSN{}) {
		return
	}
	old := g.Recorded()
	if committed == old.Record.LSN {
		return
	}
	now := &Recorded{Record: g.machine.Record().Committed}
	now.Value = g.value(now.Record.Value)
	g.recorded.Store(now)
	old.newer.happen()
	if now.Record.Voters != old.Record.Voters {
		g.logVoters(&now.Record)
	}
	if w := g.writing; w != nil {
		if a, known := w.outcome(&now.Record); known {
			w.done <- a
			g.writing = nil
		}
	}
}

// logVoters logs the voters of a committed record, and whether the configuration has others.
func (g *group) logVoters(r *elector.Record) {
	fields := []any{"group", g.Name, "record", r.LSN.String(), "voters", r.Voters.String()}
	configured := words.List(slices.Sorted(slices.Values(g.common.Voters)))
	differs := configured != names(r.Voters) && len(g.common.Voters) > 0
	if !g.common.surge.Passes(transitionKind{voters: r.Voters.String()}) {
		g.common.Log.Debug("voters", fields...)
		return
	} else if !differs {
		g.common.Log.Info("voters", fields...)
		return
	}
	g.common.Log.Warn("the record has other voters than the configuration, and counts",
		append(fields, "configured", configured, "advice", "change the configuration of every node "+
			"before another election is opened: docs/operations.md#changing-the-voters")...)
}

// outcome tells what a committed record says of a value that was written. Committed records descend
// from each other, and the values of descendants are no older.
func (w *write) outcome(committed *elector.Record) (a answer[lsn.LSN], known bool) {
	switch c := committed.Value.LSN.Compare(w.lsn); {
	case c == 0:
		return answer[lsn.LSN]{value: committed.LSN}, true
	case c > 0:
		a.err = fmt.Errorf("%w: another one of %s followed", ErrUnknown, committed.Value.LSN)
	case committed.LSN.Less(w.lsn):
		return a, false
	default:
		a.err = fmt.Errorf("%w any more: the next one did not get the value", elector.ErrNotLeader)
	}
	return a, true
}

// Read returns the newest committed record, once this node as leader knows that it is the newest.
// valid says, after the record was read, why the leadership no longer excludes newer ones; over is
// closed when it is over.
func (l *Loop) Read(ctx context.Context, e *Election, valid func() error, over <-chan struct{}) (
	*Recorded, error,
) {
	for {
		newer := e.Recorded().Newer()
		now, err := ask(ctx, l, func(*Driver) (*Recorded, error) {
			if !e.g.machine.Record().InSync {
				return nil, nil
			}
			return e.Recorded(), nil
		})
		if err == nil {
			err = valid()
		}
		if err != nil || now != nil {
			return now, err
		}
		select {
		case <-newer:
		case <-over:
		case <-ctx.Done():
		}
	}
}

// keep keeps the bytes of a value that this node is about to accept. Those of older records are
// forgotten.
func (g *group) keep(hash [32]byte, value []byte) {
	r := g.machine.Record()
	for old := range g.values {
		if old != r.Accepted.Value.Hash && old != r.Committed.Value.Hash {
			delete(g.values, old)
		}
	}
	if g.values == nil {
		g.own().values = map[[32]byte][]byte{}
	}
	g.values[hash] = value
}

// value returns the bytes of a value of the accepted or the committed record.
func (g *group) value(v elector.Value) []byte { return g.values[v.Hash] }
