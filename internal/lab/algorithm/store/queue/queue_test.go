package queue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/store"
	"github.com/bmqelect/bmqelect/lsn"
)

// leading is a client that leads by key 7.
func leading(t *testing.T) *Client {
	c := &Client{Self: "a"}
	c.Boot(1 << 63)
	c.Connect(0)
	answer := func(r store.Reply) {
		r.Op, r.Xid, r.Lease = c.Pending.Op, c.Pending.Xid, 3
		require.True(t, c.Counts(r))
		c.Answered(0, r, "oldest")
	}
	answer(store.Reply{})
	answer(store.Reply{Created: 7})
	answer(store.Reply{Keys: []store.Key{{Client: "a", Created: 7}}})
	require.Equal(t, elector.Leader, c.View().Role)
	require.Equal(t, lsn.Term(7), c.View().Term)
	return c
}

// Whose key is not among the keys has lost its lease, and names nobody.
func TestWithoutItsKeyAMemberHasNoLease(t *testing.T) {
	c := leading(t)
	c.Deleted(1)
	c.Clear()
	c.Answered(2, store.Reply{Op: store.List, Xid: c.Pending.Xid, Lease: 3,
		Keys: []store.Key{{Client: "b", Created: 8}}}, "oldest")
	require.Equal(t, elector.Candidate, c.View().Role)
	require.Empty(t, c.View().Leader)
	require.Zero(t, c.Lease)
	require.Equal(t, store.Grant, c.Pending.Op)
	require.Zero(t, c.Pending.Lease)
	c.Answered(3, store.Reply{Op: store.List, Xid: c.Pending.Xid}, "oldest") // without any keys
	require.Equal(t, elector.Candidate, c.View().Role)
}

// Replies to requests of another life, connection or lease do not count.
func TestOldRepliesDoNotCount(t *testing.T) {
	c := leading(t)
	asked := c.xid
	for xid, counts := range map[uint64]bool{asked: true, asked - 2: true, asked - 3: false,
		asked + 1: false, asked + 1<<40: false, 1: false} {
		require.Equal(t, counts, c.Counts(store.Reply{Xid: xid}), "%d", int64(xid-asked))
	}
	c.Connect(1)
	require.False(t, c.Counts(store.Reply{Xid: asked}))
}
