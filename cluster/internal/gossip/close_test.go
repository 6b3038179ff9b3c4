package gossip

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestLeaveIsToldFromDeath(t *testing.T) {
	a := start(t, "a", probing(500*time.Millisecond))
	b := start(t, "b", joining(a.gossipAddr()), probing(500*time.Millisecond))
	c := start(t, "c", joining(a.gossipAddr()), probing(500*time.Millisecond))
	requireTogether(t, a, b, c)
	require.NoError(t, b.Leave(within(t, patience)))
	require.NoError(t, b.Leave(within(t, patience)), "leaving twice does nothing")
	b.kill()
	require.NoError(t, b.Leave(within(t, patience)), "leaving after Close does nothing")
	require.Equal(t, StateLeft, a.requireEvent(Left, "b").Member.State)
	c.kill()
	require.Equal(t, StateDead, a.requireEvent(Failed, "c").Member.State)

	b = start(t, "b", joining(a.gossipAddr()), probing(500*time.Millisecond))
	requireTogether(t, a, b)
}

func TestLeaveIsBounded(t *testing.T) {
	a := start(t, "a")
	b := start(t, "b", joining(a.gossipAddr()))
	requireTogether(t, a, b)
	a.kill()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.Leave(ctx) // whether anybody heard is not the point here
	}()
	require.Eventually(t, func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}, patience, time.Millisecond)
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
					_ = p.UpdateMeta(Meta{Priority: i*1000 + n})
					_ = p.Members()
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
	node, err := readHello(conn)
	require.NoError(t, err)
	require.Equal(t, elector.NodeID("a"), node)
	require.NoError(t, a.Close(within(t, patience)), "the stream is open and would stay so for an hour")
}

func TestBlockedConsumerHoldsUpNothingButItself(t *testing.T) {
	release := make(chan struct{})
	var once sync.Once
	defer once.Do(func() { close(release) })
	a := start(t, "a", func(c *Config) { c.OnEvent = func(Event) { <-release } })
	b := start(t, "b", joining(a.gossipAddr()))
	c := start(t, "c", joining(a.gossipAddr()))
	requireTogether(t, a, b, c)
	require.NoError(t, c.Leave(within(t, patience)))
	require.Eventually(t, func() bool { return len(a.view()) == 1 }, patience, 5*time.Millisecond)

	err := a.Close(within(t, 10*time.Millisecond))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, `"a"`)
	once.Do(func() { close(release) })
	require.NoError(t, a.Close(within(t, patience)))
}

func TestQueueMergesWhatWaits(t *testing.T) {
	event := func(kind EventKind, node elector.NodeID, priority int) Event {
		return Event{Kind: kind, Member: Member{Node: node, Meta: Meta{Priority: priority}}}
	}
	for _, c := range []struct {
		name   string
		pushed []Event
		want   []Event
	}{
		{"order is kept between members",
			[]Event{event(Joined, "b", 1), event(Joined, "a", 1)},
			[]Event{event(Joined, "b", 1), event(Joined, "a", 1)}},
		{"an update of the unheard is its joining",
			[]Event{event(Joined, "a", 1), event(Updated, "a", 2)},
			[]Event{event(Joined, "a", 2)}},
		{"the latest wins",
			[]Event{event(Updated, "a", 1), event(Failed, "a", 1), event(Joined, "a", 3)},
			[]Event{event(Joined, "a", 3)}},
		{"a conflict hides nothing and is not hidden",
			[]Event{event(Joined, "a", 1), event(Conflict, "a", 1), event(Left, "a", 1)},
			[]Event{event(Left, "a", 1), event(Conflict, "a", 1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newEventQueue(func(Event) {})
			for _, e := range c.pushed {
				q.push(e)
			}
			var got []Event
			for e, ok := q.pop(); ok; e, ok = q.pop() {
				got = append(got, e)
			}
			require.Equal(t, c.want, got)
		})
	}
}
