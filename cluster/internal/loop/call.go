package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

const (
	callPart  = 12 << 10              // of a value, in one note; JSON makes more of it
	maxCalls  = 64                    // of other nodes, that come in or are carried out, at a time
	maxText   = 1 << 10               // bytes of the text of a reply
	noRoomFor = time.Millisecond      // before a note is sent again
	askAgain  = 50 * time.Millisecond // after nothing was done: nobody leads, or has no time
	shortWait = 2 * time.Second       // for a change of voters, which is asked for again
	longWait  = time.Minute           // for a value
)

// errWaiting says that nothing is done yet, and that it is harmless to ask again.
var errWaiting = errors.New("not done yet")

// outcomes are the errors that a reply tells, by their number there.
var outcomes = []error{
	nil, elector.ErrNotLeader, ErrConflict, ErrRefused, ErrUnknown, errWaiting,
}

// call asks the leader of an election to change the voters or to publish a value. It travels in one
// note, or, if the value is larger than that, in several that differ in Value.
type call struct {
	ID      uint64
	Wait    time.Duration // how long the asker waits
	Change  VoterChange
	Publish bool
	Match   []lsn.LSN // IfMatch: at most one
	Size    int       // of the value
	At      int       // where Value belongs in it
	Value   []byte    // the next part; the whole value when all are there

	came time.Time // when the newest part did
}

// reply answers a call.
type reply struct {
	ID   uint64
	Code uint8 // index in outcomes
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
	mu       sync.Mutex
	links    map[elector.NodeID]bool // whether its build knows records
	asked    map[uint64]asked        // by call
	incoming map[origin]*call
	serving  int
}

// origin names a call of another node.
type origin struct {
	node elector.NodeID
	id   uint64
}

type asked struct {
	to    elector.NodeID
	reply chan reply // has room for one
}

func newCalls() calls {
	return calls{
		links: map[elector.NodeID]bool{}, asked: map[uint64]asked{}, incoming: map[origin]*call{},
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
	maps.DeleteFunc(c.incoming, func(o origin, _ *call) bool { return o.node == peer })
	for id, a := range c.asked {
		if a.to == peer {
			delete(c.asked, id)
			a.reply <- reply{Code: uint8(slices.Index(outcomes, ErrUnknown)),
				Text: fmt.Sprintf("%s: the link to leader %s ended", ErrUnknown, peer)}
		}
	}
}

// atLeader has the leader of an election do something: this node by here, or another one by a call.
// It asks again as long as ctx lives where nothing was done, and where repeat says that it is
// harmless. told, if not nil, gets why it asks again.
func (l *Loop) atLeader(ctx context.Context, e *Election, c call, repeat bool,
	here func() (reply, error), told func(error),
) (r reply, _ error) {
	var doubt, why error // whether it was done; why it is asked again
	for {
		leader, err := ask(ctx, l, func(*Driver) (elector.NodeID, error) {
			return e.g.follows, e.Ended()
		})
		switch {
		case err != nil && why != nil && ctx.Err() != nil:
			return r, fmt.Errorf("%w: %w", cmp.Or(doubt, why), err)
		case err != nil:
		case leader == "":
			err = fmt.Errorf("%w: no leader is known", errWaiting)
		case leader == l.Node:
			r, err = here()
		default:
			r, err = l.call(ctx, e, leader, c)
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
		if why = err; told != nil {
			told(why)
		}
		select { // what ended is found above
		case <-time.After(askAgain):
		case <-ctx.Done():
		case <-e.Gone:
		}
	}
}

// Publish has the leader of an election write a value, whichever node that is, and waits until it
// is committed.
func (l *Loop) Publish(ctx context.Context, e *Election, w Write) (lsn.LSN, error) {
	c := call{Wait: longWait, Publish: true, Value: w.Value}
	if w.IfMatch != nil {
		c.Match = []lsn.LSN{*w.IfMatch}
	}
	r, err := l.atLeader(ctx, e, c, w.IfMatch != nil, func() (reply, error) {
		at, err := l.PublishHere(ctx, e, w)
		return reply{LSN: at}, err
	}, nil)
	return r.LSN, err
}

// ChangeVoters has the leader of an election change its voters, whichever node that is, and waits
// until the change is committed. It returns what was done, and tells meanwhile what it waits for.
func (l *Loop) ChangeVoters(
	ctx context.Context, e *Election, c VoterChange, told func(error),
) (string, error) {
	r, err := l.atLeader(ctx, e, call{Wait: shortWait, Change: c}, true, func() (reply, error) {
		short, cancel := context.WithTimeout(ctx, shortWait)
		defer cancel()
		text, err := l.change(short, e, c)
		return reply{Text: text}, err
	}, told)
	return r.Text, err
}

// call asks another node, and waits for the reply. The error is ErrUnknown if it does not come, and
// errWaiting if the call did not leave.
func (l *Loop) call(ctx context.Context, e *Election, to elector.NodeID, c call) (reply, error) {
	c.ID, c.Size = rand.Uint64(), len(c.Value)
	if until, ok := ctx.Deadline(); ok {
		c.Wait = min(c.Wait, time.Until(until))
	}
	replies := make(chan reply, 1)
	l.calls.mu.Lock()
	l.calls.asked[c.ID] = asked{to, replies}
	l.calls.mu.Unlock()
	defer l.calls.forget(c.ID)
	if linked, knows := l.calls.link(to); linked && !knows {
		return reply{}, fmt.Errorf("%w: leader %s runs a build that knows no records: upgrade it",
			ErrRefused, to)
	}
	for value := c.Value; ; c.At += callPart {
		c.Value = value[c.At:min(c.At+callPart, len(value))]
		if err := l.notify(ctx, to, e.Name, noteCall, &c); err != nil {
			return reply{}, fmt.Errorf("%w: the call did not reach leader %s: %w", errWaiting, to, err)
		}
		if c.At+len(c.Value) == len(value) {
			break
		}
	}
	r, err := await(ctx, l, replies, e.Gone)
	if err != nil {
		return r, fmt.Errorf("%w: leader %s has not answered: %w", ErrUnknown, to, err)
	}
	return r, r.err()
}

// forget forgets a call that this node made.
func (c *calls) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asked, id)
}

// notify sends a note, as soon as there is room for it.
func (l *Loop) notify(
	ctx context.Context, to elector.NodeID, group string, kind uint8, body any,
) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	for !l.mesh.Notify(to, netmesh.Note{Group: group, Kind: kind, Body: text}) {
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
	if a, ok := l.calls.asked[r.ID]; ok && a.to == from {
		delete(l.calls.asked, r.ID)
		a.reply <- r
	}
}

// called takes a call, or a part of one. When the last part is there it has the call carried out.
func (l *Loop) called(from elector.NodeID, group string, body []byte) {
	var c call
	if json.Unmarshal(body, &c) != nil {
		return
	}
	s, of := &l.calls, origin{from, c.ID}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.incoming[of]; before != nil && len(before.Value) == c.At {
		c.Value, c.At = append(before.Value, c.Value...), 0
	}
	delete(s.incoming, of)
	if c.came = time.Now(); s.serving+len(s.incoming) >= maxCalls {
		maps.DeleteFunc(s.incoming, func(_ origin, o *call) bool { // given up by the asker
			return c.came.Sub(o.came) > shortWait
		})
	}
	switch {
	case c.At != 0: // it has too many requests, and has said so
	case c.Size > elector.MaxValue || len(c.Value) > c.Size || len(c.Match) > 1: // a broken build
	case s.serving+len(s.incoming) >= maxCalls:
		// Who gets no reply knows less than who gets this one. It does not wait for room: a peer
		// that sends one request after another must not hold up goroutines here.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		go l.answer(ctx, from, group, reply{ID: c.ID},
			fmt.Errorf("%w: it has too many requests", errWaiting))
	case len(c.Value) < c.Size:
		s.incoming[of] = &c
	default:
		s.serving++
		go l.serve(from, group, &c)
	}
}

// serve carries out a call of another node.
func (l *Loop) serve(from elector.NodeID, group string, c *call) {
	ctx, cancel := context.WithTimeout(context.Background(), min(c.Wait, longWait))
	defer cancel()
	r := reply{ID: c.ID}
	e, err := l.Lookup(group)
	switch {
	case err != nil:
		err = fmt.Errorf("%w: %w", errWaiting, err)
	case c.Publish:
		w := Write{Value: c.Value}
		if len(c.Match) > 0 {
			w.IfMatch = &c.Match[0]
		}
		r.LSN, err = l.PublishHere(ctx, e, w)
	default:
		r.Text, err = l.change(ctx, e, c.Change)
	}
	ctx, stop := context.WithTimeout(context.Background(), shortWait)
	defer stop()
	l.answer(ctx, from, group, r, err)
	l.calls.mu.Lock()
	l.calls.serving--
	l.calls.mu.Unlock()
}

// answer sends the reply to a call. Until ctx ends it waits for room.
func (l *Loop) answer(
	ctx context.Context, to elector.NodeID, group string, r reply, err error,
) {
	if err != nil {
		is := func(o error) bool { return o != nil && errors.Is(err, o) }
		r.Code, r.Text = uint8(max(slices.IndexFunc(outcomes, is), 0)), err.Error()
		if r.Code == 0 {
			r.Code = uint8(slices.Index(outcomes, errWaiting)) // as ctx of a value that was not written
		}
	}
	_ = l.notify(ctx, to, group, noteAnswer, &r) // the end of the link tells the asker
}
