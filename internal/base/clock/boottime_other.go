//go:build !linux

package clock

// boottime reports that this system has no clock known to count suspension.
func boottime() (Clock, bool) { return nil, false }

// bootAlarm reports that there is no alarm that rings after a sleep.
func bootAlarm(Clock) (Alarm, bool) { return nil, false }
