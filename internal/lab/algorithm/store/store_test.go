package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/store"
)

// TestRequestsThatComeTwiceOrLate is what a network without connections does to the store.
func TestRequestsThatComeTwiceOrLate(t *testing.T) {
	s := store.New(store.ZooKeeper, 2*time.Second)
	ask := func(at time.Duration, r store.Request) []algorithm.Envelope {
		in := algorithm.Received{From: "a", Message: r}
		return s.Step(algorithm.Time(at), 0, in).Messages
	}
	reply := func(r store.Reply) []algorithm.Envelope {
		return []algorithm.Envelope{{To: "a", Message: r}}
	}
	require.Equal(t, reply(store.Reply{Op: store.Grant, Xid: 1, Lease: 1}),
		ask(0, store.Request{Op: store.Grant, Xid: 1, TTL: 6 * time.Second}))
	for range 2 { // a key is made once
		require.Equal(t, reply(store.Reply{Op: store.Create, Xid: 2, Lease: 1, Created: 1}),
			ask(time.Second, store.Request{Op: store.Create, Xid: 2, Lease: 1}))
	}
	ask(2*time.Second, store.Request{Op: store.Grant, Xid: 4, Lease: 1})
	// The connection of request 3 has been left: SessionMoved.
	require.Empty(t, ask(7*time.Second, store.Request{Op: store.KeepAlive, Xid: 3, Lease: 1}))
	// So the session ends at the tick after 2s + 6s.
	require.Equal(t, reply(store.Reply{Op: store.KeepAlive, Xid: 5}),
		ask(8*time.Second, store.Request{Op: store.KeepAlive, Xid: 5, Lease: 1}))
}
