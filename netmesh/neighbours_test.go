package netmesh

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/memnet"
)

// TestInventedMembersAtOneAddress: whoever invents members makes a node dial whom he names. All of
// them get about the dials that one would have had, one at a time.
func TestInventedMembersAtOneAddress(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(net.Conn)
		most   int64 // connections in 8 s, which are 6600 without a bound
	}{
		"ends connections at once": {func(c net.Conn) { _ = c.Close() }, 800},
		"says nothing":             {func(net.Conn) {}, 40},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New()
				ln, err := network.Host("z").Listen("z:7000")
				require.NoError(t, err)
				var came, open, most atomic.Int64
				accept := func() {
					for {
						conn, err := ln.Accept()
						if err != nil {
							return
						}
						came.Add(1)
						most.Store(max(most.Load(), open.Add(1)))
						go func() {
							c.answer(conn)
							_, _ = io.Copy(io.Discard, conn) // until the dialer ends it
							open.Add(-1)
							_ = conn.Close()
						}()
					}
				}
				go accept()
				a := start(t, "a", onHost(network, func(c *Config) {
					c.Facts.Voters, c.Facts.VoterCount = []string{"a"}, 1
				}))
				for i := range 250 {
					a.AddPeer(nodeID(fmt.Sprint("invented", i)), "z:7000")
				}
				time.Sleep(8 * time.Second)
				t.Log(came.Load(), "connections,", most.Load(), "at a time")
				a.close(t)
				require.NoError(t, ln.Close())
				require.LessOrEqual(t, came.Load(), c.most)
				require.LessOrEqual(t, most.Load(), int64(2), "one ends as the next one begins")
			})
		})
	}
}

// TestAMemberThatMovesAllTheTime makes no more dials than one that stays.
func TestAMemberThatMovesAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, came := memnet.New(), 0
		ln, err := network.Host("z").Listen("z:7000")
		require.NoError(t, err)
		go func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				came++
				_ = conn.Close()
			}
		}()
		a := start(t, "a", onHost(network, func(c *Config) {
			c.Facts.Voters, c.Facts.VoterCount = []string{"a"}, 1
		}))
		for i := range 8000 {
			a.AddPeer("invented", []string{"z:7000", "Z:7000"}[i%2])
			time.Sleep(time.Millisecond)
		}
		a.close(t)
		require.NoError(t, ln.Close())
		synctest.Wait()
		require.LessOrEqual(t, came, 200)
	})
}

// TestAVoterIsDialedWhereOthersClaimToBe, as if they were not there.
func TestAVoterIsDialedWhereOthersClaimToBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
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
