package cluster

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Least values of the mesh's times: below them a busy machine would lose healthy links.
const (
	leastIdle  = 100 * time.Millisecond
	leastDial  = 50 * time.Millisecond
	leastPause = 10 * time.Millisecond
)

// meshTimes sets the times of the mesh so that they never outweigh those of the election:
// with I the inactivity interval of t,
//
//	IdleTimeout      = 2 I              100 ms to 3 s    a silent link ends
//	PingInterval     = IdleTimeout / 3                   two pings may be late or lost
//	DialTimeout      = I / 2             50 ms to 2 s    with the pause after it, a
//	RedialMax        = I / 2             10 ms to 2 s    network that heals is in use after I
//	RedialMin        = RedialMax / 10    at most 50 ms
//	HandshakeTimeout = I                100 ms to 2 s
//
// The greatest values are the mesh's defaults.
func meshTimes(c *netmesh.Config, t elector.Timing) {
	interval := t.Inactivity()
	c.IdleTimeout = within(leastIdle, 2*interval, netmesh.DefaultIdleTimeout)
	c.PingInterval = c.IdleTimeout / 3
	c.DialTimeout = within(leastDial, interval/2, netmesh.DefaultDialTimeout)
	c.RedialMax = within(leastPause, interval/2, netmesh.DefaultRedialMax)
	c.RedialMin = min(c.RedialMax/10, netmesh.DefaultRedialMin)
	c.HandshakeTimeout = within(2*leastDial, interval, netmesh.DefaultHandshakeTimeout)
}

// within is d, or the bound that it is beyond.
func within(least, d, most time.Duration) time.Duration { return min(max(least, d), most) }
