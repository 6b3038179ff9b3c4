package netmesh

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/memnet"
)

// alone makes a the only voter.
func alone(c *Config) { c.Facts = Facts{Voters: []string{"a"}, VoterCount: 1} }

// TestInventedMembersAtOneAddress: an attacker who invents members makes a node dial any address.
// All of them together get about as many dials as one would, one at a time. A member that moves
// all the time gets no more.
func TestInventedMembersAtOneAddress(t *testing.T) {
	many := func(a *node) {
		for i := range 250 {
			a.AddPeer(nodeID(fmt.Sprint("invented", i)), "z:7000")
		}
		time.Sleep(8 * time.Second)
	}
	moving := func(a *node) {
		for i := range 8000 {
			a.AddPeer("invented", []string{"z:7000", "Z:7000"}[i%2])
			time.Sleep(time.Millisecond)
		}
	}
	closes := func(c net.Conn) { _ = c.Close() }
	for name, c := range map[string]struct {
		invite func(*node)
		answer func(net.Conn)
		most   int64 // connections in 8 s, which are 6600 without a bound
	}{
		"ends connections at once": {many, closes, 800},
		"says nothing":             {many, func(net.Conn) {}, 40},
		"moves":                    {moving, closes, 200},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, network *memnet.Network) {
				ln, err := network.Host("z").Listen("z:7000")
				require.NoError(t, err)
				var came, open, most atomic.Int64
				serve := func(conn net.Conn) {
					came.Add(1)
					most.Store(max(most.Load(), open.Add(1)))
					go func() {
						c.answer(conn)
						_, _ = io.Copy(io.Discard, conn) // until the dialer ends it
						open.Add(-1)
						_ = conn.Close()
					}()
				}
				go func() {
					for conn, err := ln.Accept(); err == nil; conn, err = ln.Accept() {
						serve(conn)
					}
				}()
				a := start(t, "a", onHost(network, alone))
				c.invite(a)
				a.close(t)
				require.NoError(t, ln.Close())
				require.LessOrEqual(t, came.Load(), c.most)
				require.LessOrEqual(t, most.Load(), int64(2), "one ends as the next one begins")
			})
		})
	}
}

// TestAVoterIsDialedWhereOthersClaimToBe, as often as without them.
func TestAVoterIsDialedWhereOthersClaimToBe(t *testing.T) {
	virtual(t, func(t *testing.T, network *memnet.Network) {
		a := start(t, "a", onHost(network, func(c *Config) {
			c.Facts.Voters, c.Facts.VoterCount = []string{"a", "b"}, 2
		}))
		for i := range 250 {
			a.AddPeer(nodeID(fmt.Sprint("invented", i)), "b:7000")
		}
		a.AddPeer("b", "b:7000")
		time.Sleep(time.Minute)
		start(t, "b", onHost(network))
		time.Sleep(2 * a.cfg.times.redialMax)
		require.Equal(t, 1, a.count("b", "up 1"))
	})
}
