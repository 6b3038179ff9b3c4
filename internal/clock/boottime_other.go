//go:build !linux

package clock

// boottime reports that this system has no clock known to count suspension.
func boottime() (Clock, bool) { return nil, false }
