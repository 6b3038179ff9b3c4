package elector_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestLease(t *testing.T) {
	require.Zero(t, candidate(t, 3).Lease())
	require.False(t, elector.Lease{}.Valid(1))

	d := leader(t, 3)
	l := d.Lease()
	require.Equal(t, elector.Lease{Term: 3, End: d.now.Add(elector.Article().Lease)}, l)
	require.True(t, l.Valid(d.now))
	require.True(t, l.Valid(l.End-1))
	require.False(t, l.Valid(l.End), "valid before its end, not at it")
}

// TestClockNeverGoesBack: a reading below the newest one counts as the newest.
func TestClockNeverGoesBack(t *testing.T) {
	d := boot(t, 3, 2)
	d.step(elector.Tick{})
	d.Step(d.now-5, 0, elector.Tick{})
	require.Equal(t, d.now, d.State().Now)
}

func TestTransferable(t *testing.T) {
	require.ErrorIs(t, follower(t).Transferable("b"), elector.ErrNotLeader)

	d := leader(t, 3)
	require.ErrorContains(t, d.Transferable("x"), `"x": not one of the voters a, b, c`)
	require.ErrorContains(t, d.Transferable("a"), `"a": it leads already`)
	require.ErrorContains(t, d.Transferable("c"), "has not acked")
	require.ErrorContains(t, d.Transferable("b"), "not a candidate")

	d.hear("b", elector.Message{Kind: elector.HeartbeatAck, Term: 3, Sequence: 1, SentAt: d.now,
		MayStand: true})
	require.NoError(t, d.Transferable("b"))
	d.step(elector.LinkDown{Peer: "b"})
	require.ErrorContains(t, d.Transferable("b"), "not connected")
}

// TestHandoverIsToldInFull: what a driver needs in order to stop the work in time.
func TestHandoverIsToldInFull(t *testing.T) {
	d := leader(t, 3)
	require.Zero(t, d.Handover())
	ack := elector.Message{Kind: elector.HeartbeatAck, Term: 3, Sequence: 1, SentAt: d.now,
		MayStand: true}
	d.hear("b", ack)
	d.step(elector.Guard{Held: true})
	d.step(elector.Transfer{To: "b"})
	require.Equal(t, "transfer", d.Handover().Cause.String())
	want := elector.Handover{
		To: "b", Cause: d.Handover().Cause, Why: elector.Transferred,
		Asked: d.now, End: d.now.Add(elector.Article().ElectionResult),
	}
	require.Equal(t, want, d.Handover())

	d.now++
	e := d.hear("b", ack)
	require.True(t, e.StopWork)
	want.Stopping, want.End = true, d.Lease().End
	require.Equal(t, want, d.Handover())
	require.Equal(t, want, d.Status().Handover)
	require.Contains(t, e.String(), "stop work\n")
}

func TestRestartedMachineForgetsItsVote(t *testing.T) {
	d := voter(t)
	d.step(elector.Stop{})
	d.step(elector.Start{Term: 3})
	d.now = d.Status().EmbargoEnd
	e := d.hear("b", elector.Message{Kind: elector.ElectionProposal, Term: 3})
	require.False(t, e.Messages[0].Message.WillVote, "whom it voted for in term 3 is not on disk")
}

// TestStuckDiskFillsNoMemory: while nothing becomes durable, only the newest
// message of each kind to each node is kept.
func TestStuckDiskFillsNoMemory(t *testing.T) {
	d := boot(t, 3, 2)
	for term := lsn.Term(3); term < 1000; term++ {
		for _, k := range []elector.Kind{elector.LeaderHeartbeat, elector.ElectionScouting,
			elector.ElectionProposal} {
			for _, from := range []elector.NodeID{"b", "c"} {
				in := elector.Received{From: from, Message: elector.Message{Kind: k, Term: term,
					ProposedTerm: term}}
				require.Empty(t, d.Step(d.now, 0, in).Messages)
			}
		}
	}
	require.LessOrEqual(t, len(d.Held()), 2*3)
}
