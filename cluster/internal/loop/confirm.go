package loop

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// ErrReaffirmed means that a leader got another term before its leadership was confirmed.
var ErrReaffirmed = errors.New("the leader was re-affirmed in another term meanwhile: ask again")

// confirms are the calls that wait for a proof of leadership.
type confirms struct {
	waiting []*confirm   // for the next round
	asked   []*confirm   // for the round under way
	at      elector.Time // when that was asked for, after each of its calls
	term    lsn.Term     // in which
}

// confirm is a call.
type confirm struct {
	ctx  context.Context
	done chan error // has room for one
}

// Confirm waits for a proof that this node led when Confirm was called.
func (l *Loop) Confirm(ctx context.Context, e *Election) error {
	c := &confirm{ctx, make(chan error, 1)}
	err := l.Do(ctx, func(d *Driver) error {
		if err := cmp.Or(e.Ended(), d.refuseOlder()); err != nil {
			return err
		}
		w := &e.g.own().confirms
		w.waiting = slices.DeleteFunc(w.waiting, func(c *confirm) bool { return c.ctx.Err() != nil })
		w.waiting = append(w.waiting, c)
		d.stepRequests(e.g)
		return nil
	})
	if err != nil {
		return err
	}
	proof, err := await(ctx, l, c.done, e.Gone.Done())
	if err != nil {
		return err
	}
	return proof
}

// nextConfirm is the input that begins a round for all calls that wait, unless one is under way.
func (d *Driver) nextConfirm(g *group) (elector.Input, bool) {
	w := &g.confirms
	if len(w.asked) > 0 {
		return nil, false
	}
	w.asked, w.waiting = w.waiting, nil
	w.at, w.term = d.Now(), g.leadTerm
	return elector.Confirm{}, true
}

// signalConfirmed answers the calls of the round under way, once its outcome is known.
func (g *group) signalConfirmed() {
	w := &g.confirms
	if len(w.asked) == 0 {
		return
	}
	err := g.machine.Confirmable()
	switch {
	case err != nil:
	case g.leadTerm != w.term:
		err = ErrReaffirmed
	case g.machine.Confirmed() <= w.at:
		return
	}
	for _, c := range w.asked {
		c.done <- err
	}
	w.asked = nil
}
