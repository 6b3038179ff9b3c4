package loop

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

const (
	maxInline = 12 << 10 // bytes of a value in the note of its call; JSON makes more of it
	// maxCalls of other nodes come in or are carried out at a time, maxCallsOf of them of one node.
	maxCalls, maxCallsOf = 64, 8
	maxText              = 1 << 10               // bytes of the text of an error in a reply
	noRoomFor            = time.Millisecond      // before a note is sent again
	askAgain             = 50 * time.Millisecond // after nothing was done, or nobody leads
	shortWait            = 2 * time.Second       // before it is told what a change of voters waits for
	longWait             = time.Minute           // of a leader, for one call
	remembered           = 10 * time.Second      // is an answer that may not have arrived
)

// errWaiting says that nothing is done yet, and that it is harmless to ask again.
var errWaiting = errors.New("not done yet")

// outcomes are the errors that a reply tells, by their number there.
var outcomes = []error{
	nil, elector.ErrNotLeader, ErrConflict, ErrNoVoter, ErrRefused, ErrUnknown, errWaiting,
}

// call asks the leader of an election to change the voters, to say what a change would do, or to
// publish a value. A large value stays with the asker, and the leader pulls it.
type call struct {
	ID      uint64
	Over    bool          // the asker has the reply, or has given up
	Wait    time.Duration // how long the asker waits
	Change  VoterChange
	Plan    []VoterChange
	Publish bool
	Match   []lsn.LSN // IfMatch: at most one
	Value   []byte
	Of      elector.Value // size and hash of a value that is to be pulled
}

// reply answers a call.
type reply struct {
	ID   uint64
	Code uint8 // index in outcomes
	More bool  // it says what is waited for; another reply follows
	Text string
	LSN  lsn.LSN
}

// err is the error that a reply tells.
func (r *reply) err() error {
	if r.Code == 0 {
		return nil
	}
	is := ErrUnknown // of a newer build
	if int(r.Code) < len(outcomes) {
		is = outcomes[r.Code]
	}
	return &calledError{words.Printable(r.Text, maxText), is}
}

// calledError is an error that another node returned.
type calledError struct {
	text string
	is   error
}

func (e *calledError) Error() string { return e.text }
func (e *calledError) Unwrap() error { return e.is }

// calls are those that this node has made and those of others, which it carries out. They need no
// driver.
type calls struct {
	mu      sync.Mutex
	links   map[elector.NodeID]bool // whether its build knows records
	asked   map[uint64]asked        // by call
	serving map[origin]*served
}

// origin names a call of another node.
type origin struct {
	node elector.NodeID
	id   uint64
}

// served is a call of another node that is carried out, or was.
type served struct {
	end   func() // ends it
	reply *reply // nil until it is there
	at    time.Time
}

type asked struct {
	to    elector.NodeID
	of    elector.Value
	value []byte
	reply chan reply // has room for one that says more and the last one
}

func newCalls() calls {
	return calls{
		links: map[elector.NodeID]bool{}, asked: map[uint64]asked{}, serving: map[origin]*served{},
	}
}

// linked notes a link, and whether the build of the peer knows records.
func (c *calls) linked(peer *netmesh.PeerInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.links[peer.Node] = peer.Version >= netmesh.RecordsVersion
}

// link reports whether there is a link to a node, and whether its build knows records.
func (c *calls) link(to elector.NodeID) (linked, knows bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	knows, linked = c.links[to]
	return linked, knows
}

// lost ends the calls over a link that is gone.
func (c *calls) lost(peer elector.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.links, peer)
	for of, s := range c.serving {
		if of.node == peer {
			c.over(of, s)
		}
	}
	for id, a := range c.asked {
		if a.to == peer {
			delete(c.asked, id)
			a.reply <- reply{Code: uint8(slices.Index(outcomes, ErrUnknown)),
				Text: fmt.Sprintf("%s: the link to leader %s ended", ErrUnknown, peer)}
		}
	}
}

// over ends and forgets a call of another node.
func (c *calls) over(of origin, s *served) {
	s.end()
	delete(c.serving, of)
}

// value returns a value that this node has asked a leader to publish.
func (c *calls) value(leader elector.NodeID, hash valueHash) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.asked {
		if a.to == leader && a.of.Hash == hash {
			return a.value
		}
	}
	return nil
}

// atLeader has the leader of an election carry out a call, whichever node that is. It asks again as
// long as ctx lives where nothing was done, and where repeat says that it is harmless. told gets
// why it asks again, and what the leader waits for.
func (l *Loop) atLeader(
	ctx context.Context, e *Election, c call, repeat bool, told func(error),
) (r reply, _ error) {
	var doubt, why error // whether it was done; why it is asked again
	for {
		leader, err := ask(ctx, l, func(d *Driver) (elector.NodeID, error) {
			if err := e.Ended(); err != nil || e.g.machine.Leader() != "" {
				return e.g.machine.Leader(), err
			}
			return "", fmt.Errorf("%w: no leader is known%s", errWaiting, d.missing(e.g))
		})
		switch {
		case err != nil && why != nil && ctx.Err() != nil:
			return r, fmt.Errorf("%w: %w", cmp.Or(doubt, why), err)
		case err != nil:
		case leader == l.Node:
			r, err = l.carryOut(ctx, e, &c, told)
		default:
			r, err = l.call(ctx, e, leader, c, told)
		}
		switch {
		case errors.Is(err, ErrUnknown) && repeat:
			doubt = err
		case errors.Is(err, elector.ErrNotLeader) || errors.Is(err, errWaiting):
		case err != nil && doubt != nil: // a conflict may be with its own value
			return r, doubt
		default:
			return r, err
		}
		why = err
		told(why)
		select { // what ended is found above
		case <-time.After(askAgain):
		case <-ctx.Done():
		case <-e.Gone.Done():
		}
	}
}

// missing names the voters to which this node has no link, as the end of a sentence.
func (d *Driver) missing(g *group) string {
	away := slices.DeleteFunc(slices.Clone(g.machine.Electorate()), func(id elector.NodeID) bool {
		return id == d.Node || d.up[id] != nil
	})
	if len(away) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s has no link to %s", d.Node, words.List(away))
}

// Publish has the leader of an election write a value, whichever node that is, and waits until it
// is committed.
func (l *Loop) Publish(ctx context.Context, e *Election, w Write) (lsn.LSN, error) {
	c := call{Wait: longWait, Publish: true, Value: w.Value}
	if w.IfMatch != nil {
		c.Match = []lsn.LSN{*w.IfMatch}
	}
	r, err := l.atLeader(ctx, e, c, w.IfMatch != nil, func(error) {})
	return r.LSN, err
}

// ChangeVoters has the leader of an election change its voters, whichever node that is, and waits
// until the change is committed. It returns what was done, and tells meanwhile what it waits for.
// A change that was done is answered as done, whoever undoes it next; only if the link to the
// leader ends before the answer is there it is asked for again.
func (l *Loop) ChangeVoters(
	ctx context.Context, e *Election, c VoterChange, told func(error),
) (string, error) {
	r, err := l.atLeader(ctx, e, call{Wait: longWait, Change: c}, true, told)
	return r.Text, err
}

// PlanVoters has the leader of an election say what changes of its voters would do, one after the
// other, or why one is refused. The error is ErrNoVoter if there is nothing to remove.
func (l *Loop) PlanVoters(
	ctx context.Context, e *Election, told func(error), changes ...VoterChange,
) ([]string, error) {
	r, err := l.atLeader(ctx, e, call{Wait: longWait, Plan: changes}, true, told)
	return strings.Split(r.Text, "\n"), err
}

// carryOut carries out a call on this node, if it leads.
func (l *Loop) carryOut(
	ctx context.Context, e *Election, c *call, told func(error),
) (r reply, err error) {
	switch {
	case c.Publish:
		w := Write{Value: c.Value}
		if len(c.Match) > 0 {
			w.IfMatch = &c.Match[0]
		}
		r.LSN, err = l.PublishHere(ctx, e, w)
	case len(c.Plan) > 0:
		r.Text, err = ask(ctx, l, func(d *Driver) (string, error) { return d.plan(e.g, c.Plan) })
	default:
		r.Text, err = l.change(ctx, e, c.Change, told)
	}
	return r, err
}

// call asks another node, and waits for the reply. The error is ErrUnknown if it does not come, and
// errWaiting if the call did not leave.
func (l *Loop) call(
	ctx context.Context, e *Election, to elector.NodeID, c call, told func(error),
) (reply, error) {
	if linked, knows := l.calls.link(to); linked && !knows {
		return reply{}, fmt.Errorf("%w: leader %s runs a build that knows no records: upgrade it",
			ErrRefused, to)
	}
	a := asked{to: to, value: c.Value, reply: make(chan reply, 2)}
	if c.ID = rand.Uint64(); len(c.Value) > maxInline {
		a.of = elector.Value{Size: uint32(len(c.Value)), Hash: sha256.Sum256(c.Value)}
		c.Of, c.Value = a.of, nil
	}
	if until, ok := ctx.Deadline(); ok {
		c.Wait = min(c.Wait, time.Until(until))
	}
	l.calls.mu.Lock()
	l.calls.asked[c.ID] = a
	l.calls.mu.Unlock()
	defer l.forget(to, e.Name, c.ID)
	if err := l.notify(ctx, to, e.Name, noteCall, &c); err != nil {
		return reply{}, fmt.Errorf("%w: the call did not reach leader %s: %w", errWaiting, to, err)
	}
	for {
		soon, cancel := context.WithTimeout(ctx, askAfter)
		r, err := await(soon, l, a.reply, e.Gone.Done())
		again := err != nil && soon.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case again: // one of them may be lost; the leader knows a call that it has
			_ = l.notify(ctx, to, e.Name, noteCall, &c)
		case err != nil:
			return r, fmt.Errorf("%w: leader %s has not answered: %w", ErrUnknown, to, err)
		case r.More:
			told(r.err())
		default:
			return r, r.err()
		}
	}
}

// forget forgets a call that this node made, and has the leader forget it.
func (l *Loop) forget(leader elector.NodeID, group string, id uint64) {
	l.calls.mu.Lock()
	delete(l.calls.asked, id)
	l.calls.mu.Unlock()
	l.tell(leader, group, noteCall, &call{ID: id, Over: true})
}

// tell sends a note, if there is room for it.
func (l *Loop) tell(to elector.NodeID, group string, kind uint8, body any) bool {
	text, err := json.Marshal(body)
	return err == nil && l.mesh.Notify(to, netmesh.Note{Group: group, Kind: kind, Body: text})
}

// notify sends a note, as soon as there is room for it.
func (l *Loop) notify(
	ctx context.Context, to elector.NodeID, group string, kind uint8, body any,
) error {
	for !l.tell(to, group, kind, body) {
		if linked, _ := l.calls.link(to); !linked {
			return errors.New("there is no link")
		}
		select {
		case <-time.After(noRoomFor):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.ended:
			return ErrClosed
		}
	}
	return nil
}

// replied takes the reply to a call.
func (l *Loop) replied(from elector.NodeID, body []byte) {
	var r reply
	if json.Unmarshal(body, &r) != nil {
		return
	}
	l.calls.mu.Lock()
	defer l.calls.mu.Unlock()
	switch a, ok := l.calls.asked[r.ID]; {
	case !ok || a.to != from:
	case !r.More:
		delete(l.calls.asked, r.ID)
		a.reply <- r
	case len(a.reply) == 0:
		a.reply <- r
	}
}

// called takes a call of another node, and has it carried out. One that comes again is answered
// again.
func (l *Loop) called(from elector.NodeID, group string, body []byte) {
	var c call
	if json.Unmarshal(body, &c) != nil {
		return
	}
	s, of, mine := &l.calls, origin{from, c.ID}, 0
	s.mu.Lock()
	defer s.mu.Unlock()
	for o, other := range s.serving {
		if other.reply != nil && time.Since(other.at) > remembered {
			s.over(o, other)
		} else if o.node == from {
			mine++
		}
	}
	before := s.serving[of]
	switch {
	case c.Over && before != nil:
		s.over(of, before)
	case c.Over || c.Of.Size > elector.MaxValue || len(c.Match) > 1: // of a broken build
	case before != nil && before.reply != nil:
		go l.tell(from, group, noteAnswer, before.reply)
	case before != nil:
	case mine >= maxCallsOf:
		l.refuse(of, group, fmt.Sprintf("%d of %s, the limit for one node", mine, from))
	case len(s.serving) >= maxCalls:
		l.refuse(of, group, fmt.Sprintf("%d, the limit", maxCalls))
	default:
		ctx, end := context.WithTimeout(context.Background(), min(c.Wait, longWait))
		s.serving[of] = &served{end: end}
		go l.serve(ctx, of, group, &c)
	}
}

// refuse answers that too much is under way. It does not wait for room: who gets no reply asks
// again.
func (l *Loop) refuse(of origin, group, limit string) {
	r := answerTo(of, reply{}, fmt.Errorf("%w: leader %s has too many requests of other nodes: %s",
		errWaiting, l.Node, limit))
	go l.tell(of.node, group, noteAnswer, &r)
}

// serve carries out a call of another node.
func (l *Loop) serve(ctx context.Context, of origin, group string, c *call) {
	var r reply
	e, err := l.Lookup(group, false)
	if err != nil {
		err = fmt.Errorf("%w: %w", errWaiting, err)
	} else if c.Of.Size > 0 {
		c.Value, err = l.fetch(ctx, e, of.node, c.Of)
	}
	if err == nil {
		r, err = l.carryOut(ctx, e, c, func(why error) {
			more := answerTo(of, reply{More: true}, why)
			l.tell(of.node, group, noteAnswer, &more)
		})
	}
	r = answerTo(of, r, err)
	l.calls.mu.Lock()
	if s := l.calls.serving[of]; s != nil {
		s.reply, s.at = &r, time.Now()
	}
	l.calls.mu.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), shortWait)
	defer stop()
	_ = l.notify(ctx, of.node, group, noteAnswer, &r) // the end of the link tells the asker
}

// fetch pulls the value of a call from its asker.
func (l *Loop) fetch(
	ctx context.Context, e *Election, from elector.NodeID, v elector.Value,
) ([]byte, error) {
	c := &coming{g: e.g, from: from, of: v, call: make(chan []byte, 1), sum: sha256.New()}
	l.later(func(d *Driver) {
		d.coming = append(d.coming, c)
		d.pull(c, d.Now())
	})
	value, err := await(ctx, l, c.call, e.Gone.Done())
	if err != nil {
		l.later(func(d *Driver) { d.forget(c) })
		err = fmt.Errorf("%w: %w", errWaiting, err)
	} else if value == nil {
		err = fmt.Errorf("%w: its value has not come", errWaiting)
	}
	return value, err
}

// answerTo is the reply to a call that has this outcome.
func answerTo(of origin, r reply, err error) reply {
	if r.ID = of.id; err != nil {
		is := func(o error) bool { return o != nil && errors.Is(err, o) }
		r.Code, r.Text = uint8(max(slices.IndexFunc(outcomes, is), 0)), err.Error()
		if r.Code == 0 {
			r.Code = uint8(slices.Index(outcomes, errWaiting)) // as ctx of a value that was not written
		}
	}
	return r
}
