package gossip

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestLeaveIsToldFromDeath(t *testing.T) {
	t.Parallel()
	a := start(t, "a", probing(500*time.Millisecond))
	b := start(t, "b", joining(a.gossipAddr()), probing(500*time.Millisecond))
	c := start(t, "c", joining(a.gossipAddr()), probing(500*time.Millisecond))
	requireTogether(t, a, b, c)
	b.Leave()
	b.Leave() // does nothing
	b.kill()
	b.Leave() // nor does this
	require.Equal(t, StateLeft, a.requireState(StateLeft, "b").State)
	c.kill()
	require.Equal(t, StateDead, a.requireState(StateDead, "c").State)

	b = start(t, "b", joining(a.gossipAddr()), probing(500*time.Millisecond))
	requireTogether(t, a, b)
}

// TestLeaveWaitsForNoRoundOfGossip has no such round: the period is an hour.
func TestLeaveWaitsForNoRoundOfGossip(t *testing.T) {
	rare := func(c *Config) { c.Timing.Gossip = time.Hour }
	a := start(t, "a", rare)
	b := start(t, "b", joining(a.gossipAddr()), rare)
	c := start(t, "c", joining(a.gossipAddr()), rare)
	requireTogether(t, a, b, c)
	b.Leave()
	b.kill()
	a.requireState(StateLeft, "b")
	c.requireState(StateLeft, "b")
}

func TestLeaveIsBounded(t *testing.T) {
	a := start(t, "a")
	b := start(t, "b", joining(a.gossipAddr()))
	requireTogether(t, a, b)
	a.kill()
	b.Leave() // whether anybody heard is not the point here
}

// silentListener returns an address that takes connections and never answers.
func silentListener(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ln.Close()) })
	return ln.Addr().String()
}

func TestCloseUnderLoad(t *testing.T) {
	a := start(t, "a")
	b := start(t, "b", joining(a.gossipAddr()))
	c := start(t, "c", joining(a.gossipAddr(), freeAddr(t), silentListener(t)))
	requireTogether(t, a, b, c)
	var wg sync.WaitGroup
	for _, p := range []*peer{a, b, c} {
		for i := range 4 {
			wg.Go(func() {
				for n := range 50 {
					p.members.setMeta(wireMeta{Meta: Meta{Version: fmt.Sprint(i, n)}})
					_ = p.view()
				}
			})
			wg.Go(func() { _ = p.Close(within(t, patience)) })
		}
	}
	wg.Wait()
	for _, p := range []*peer{a, b, c} {
		require.NoError(t, p.Close(within(t, patience)), "Close may be called again")
	}
}

func TestCloseDoesNotWaitForASilentPeer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, ln.Close()) }()
	a := start(t, "a", joining(ln.Addr().String()), func(c *Config) { c.streamTimeout = time.Hour })
	conn, err := ln.Accept()
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	node, err := a.transport.readHello(conn)
	require.NoError(t, err)
	require.Equal(t, elector.NodeID("a"), node)
	require.NoError(t, a.Close(within(t, patience)),
		"the stream is open and would stay so for an hour")
}

func TestBlockedConsumerHoldsUpNothingButItself(t *testing.T) {
	release := make(chan struct{})
	var once sync.Once
	defer once.Do(func() { close(release) })
	a := start(t, "a", func(c *Config) { c.OnChange = func(Member) { <-release } })
	b := start(t, "b", joining(a.gossipAddr()))
	c := start(t, "c", joining(a.gossipAddr()))
	requireTogether(t, a, b, c)
	c.Leave()
	require.Eventually(t, func() bool { return len(a.view()) == 1 }, patience, 5*time.Millisecond)

	err := a.Close(within(t, 10*time.Millisecond))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, `"a"`)
	once.Do(func() { close(release) })
	require.NoError(t, a.Close(within(t, patience)))
}

func TestChangesThatWaitAreMerged(t *testing.T) {
	ms := newMembers(&Config{}, hclog.NewNullLogger())
	put := func(node elector.NodeID, state State, version string) Member {
		m := Member{Node: node, State: state, Meta: Meta{Version: version}}
		ms.put(m)
		return m
	}
	put("b", StateAlive, "1")
	a := put("a", StateAlive, "1")
	put("b", StateDead, "1")
	b := put("b", StateAlive, "3")
	for _, want := range []Member{b, a} {
		m, ok := ms.next()
		require.True(t, ok)
		require.Equal(t, want, m, "the order is kept between members, and the latest wins")
	}
	_, ok := ms.next()
	require.False(t, ok)
	for i := range maxGone + 1 {
		put(elector.NodeID(fmt.Sprint(i)), StateDead, "1")
	}
	m, _ := ms.next()
	require.Equal(t, Member{Node: "0", State: StateDead}, m, "that it is gone is not forgotten")
}
