package clock

import (
	"math"
	"time"
)

// Never is a moment that does not come.
const Never time.Duration = math.MaxInt64

// Alarm rings when a moment of a clock has come. An alarm of System on Linux rings in
// time even if the machine slept; others may ring as much too late.
type Alarm interface {
	Rings() <-chan time.Time // has an element once the moment has come
	Set(at time.Duration)    // replaces the moment
	Close()
}

// NewAlarm returns an alarm that is not set. Close it after use.
func NewAlarm(c Clock) Alarm {
	if a, ok := bootAlarm(c); ok {
		return a
	}
	a := &timerAlarm{clock: c, timer: time.NewTimer(time.Hour)}
	a.timer.Stop()
	return a
}

type timerAlarm struct {
	clock Clock
	timer *time.Timer
}

func (a *timerAlarm) Rings() <-chan time.Time { return a.timer.C }
func (a *timerAlarm) Set(at time.Duration)    { a.timer.Reset(at - a.clock.Now()) }
func (a *timerAlarm) Close()                  { a.timer.Stop() }
