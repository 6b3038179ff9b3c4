// Package alarm rings at a moment of CLOCK_BOOTTIME, which goes on while the machine
// sleeps: Go's own timers do not, and ring as much too late.
package alarm
