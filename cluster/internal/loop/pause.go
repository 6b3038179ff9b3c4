package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/elector"
)

// ErrPaused means that elections are paused on this node.
var ErrPaused = errors.New("elections are paused")

// pause is the newest pause of a node, which may be over. It is immutable.
type pause struct {
	store.Pause

	end elector.Time
}

// Pause pauses all elections, or ends the pause if length is 0, and waits until that is on disk.
func (l *Loop) Pause(ctx context.Context, length time.Duration) error {
	saved := make(chan error, 1)
	err := l.Do(ctx, func(d *Driver) error {
		if d.Err() != nil {
			return d.Err()
		}
		d.stepAll(elector.Pause{For: length})
		until := store.Pause{Until: time.Now().Add(length), For: length}
		d.setPause(pause{until, d.Now().Add(length)}, saved)
		return nil
	})
	if err != nil {
		return err
	}
	failed, err := await(ctx, l, saved, l.persisted)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("it is not on disk yet: %w", err)
	}
	return cmp.Or(err, failed)
}

// setPause replaces the pause and lets the persister write it. saved gets the outcome; it has room
// for one.
func (d *Driver) setPause(p pause, saved chan<- error) {
	p.Led = d.ledLast(p.Led)
	d.paused.Store(&p)
	d.persister.note(func() error {
		record := &p.Pause
		if p.For == 0 {
			record = nil
		}
		err := d.Measure.Timed(func() error { return d.Store.SavePause(record) })
		saved <- err
		return err
	})
}

// ledLast names the elections that this node led last. Elections that are not open stay as they
// were before.
func (d *Driver) ledLast(before []string) (led []string) {
	for _, name := range before {
		if d.groups[name] == nil {
			led = append(led, name)
		}
	}
	for name, g := range d.groups {
		if g.machine.LedLast() {
			led = append(led, name)
		}
	}
	slices.Sort(led)
	return led
}

// noteLed keeps on disk, during a pause, whether this node led an election last.
func (d *Driver) noteLed(g *group) {
	if d.PauseLeft() == 0 {
		return
	}
	if _, led := slices.BinarySearch(d.paused.Load().Led, g.Name); led != g.machine.LedLast() {
		d.saveLed()
	}
}

// saveLed writes which elections this node led last. Very many may change at a time: then the next
// write, after the one under way, has them all.
func (d *Driver) saveLed() {
	if d.ledChanged = d.savesLed; d.savesLed {
		return
	}
	d.savesLed = true
	d.setPause(*d.paused.Load(), make(chan error, 1))
	d.persister.note(func() error {
		d.later(func(d *Driver) {
			if d.savesLed = false; d.ledChanged && d.PauseLeft() > 0 {
				d.saveLed()
			}
		})
		return nil
	})
}

// loadPause continues the pause that is on disk.
func (c *common) loadPause() {
	if p, now := c.Store.Pause(), time.Now(); p.Left(now) > 0 {
		left := p.Left(now)
		c.Log.Info("elections are paused", "for", left)
		rest := store.Pause{Until: now.Add(left), For: p.For, Led: p.Led}
		c.paused.Store(&pause{rest, c.Now().Add(left)})
	}
}

// enterPaused pauses a new election if the node is paused. It reports whether this node led the
// election last.
func (d *Driver) enterPaused(g *group) (led bool) {
	if left := d.PauseLeft(); left > 0 {
		d.step(g, elector.Pause{For: left})
		_, led = slices.BinarySearch(d.paused.Load().Led, g.Name)
	}
	return led
}

// PauseLeft is how long elections are paused on this node; 0 if they are not.
func (c *common) PauseLeft() time.Duration {
	if p := c.paused.Load(); p != nil {
		return max(p.end.Sub(c.Now()), 0)
	}
	return 0
}

// PausedUntil is the end of the pause by the wall clock; zero if elections are not paused.
func (c *common) PausedUntil() time.Time {
	if c.PauseLeft() == 0 {
		return time.Time{}
	}
	return c.paused.Load().Until.UTC().Truncate(time.Second)
}

// pauseError says until when elections are paused; nil if they are not.
func (c *common) pauseError() error {
	if c.PauseLeft() == 0 {
		return nil
	}
	return fmt.Errorf("%w until %s", ErrPaused, c.PausedUntil().Format(time.RFC3339))
}

// refuseUnnamed is the error for a handover without a named target; nil if elections are not
// paused.
func (d *Driver) refuseUnnamed() error {
	if err := d.pauseError(); err != nil {
		return fmt.Errorf("%w: resume them, or transfer to a named node", err)
	}
	return nil
}
