package elector_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// FuzzCommands lets the application and operators say anything, in any order and
// at any time, to a machine in every situation, while its followers ack.
func FuzzCommands(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		f.Add(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, random.Uint64()),
			random.Uint64()))
	}
	var all []*driven
	for _, role := range roles {
		all = append(all, situations(f, role)...)
	}
	f.Fuzz(func(t *testing.T, story []byte) {
		for _, s := range all {
			d := &driven{Machine: s.Clone(), now: s.now}
			for _, b := range story[:min(len(story), 50)] {
				d.now = d.now.Add(time.Duration(b>>4) * 70 * time.Millisecond)
				check(t, d, said(d, b&15, b>>4))
				check(t, d, elector.Persisted{Term: d.State().Term})
			}
		}
	})
}

// said is the input that one number in a story stands for.
func said(d *driven, n, more byte) elector.Input {
	switch n {
	case 0:
		if more < 3 {
			return elector.Pause{For: time.Duration(more) * time.Second}
		}
	case 1, 2:
		return elector.Eligible{Able: n == 2}
	case 3, 4:
		return elector.Guard{Held: n == 3}
	case 5:
		return elector.Transfer{}
	case 6, 7:
		return elector.Resign{Rest: time.Duration(n-6) * time.Second}
	case 8, 9:
		return elector.Stop{Abrupt: n == 9}
	case 10:
		return elector.Start{Term: d.State().Term}
	case 11:
		return elector.LinkDown{Peer: "b"}
	case 12, 13:
		return acked(d, "b", n == 12)
	case 14, 15:
		return acked(d, "c", n == 14)
	}
	return elector.Tick{}
}

// acked is what a follower of d would say now.
func acked(d *driven, from elector.NodeID, able bool) elector.Input {
	l := d.State().Leader
	return elector.Received{From: from, Message: elector.Message{
		Kind: elector.HeartbeatAck, Term: max(l.Term, 1), Sequence: l.Sequence, SentAt: d.now,
		Priority: 1, MayStand: able,
	}}
}

// checkDuty checks a step against the promises to the application.
func checkDuty(t *testing.T, in elector.Input, before, after elector.State, e elector.Effects) {
	h := after.Leader.Handover
	if h.Stopping {
		require.True(t, after.Leader.Working, "nothing is there to stop")
		require.Greater(t, h.End, after.Now, "the time of the work is over")
	}
	told := h.Stopping && !before.Leader.Handover.Stopping
	require.Equal(t, told, e.StopWork, "the work is told to stop once")
	if after.Unable || after.RestEnd > after.Now {
		require.NotEqual(t, elector.Candidate, after.Role, "it stands")
		require.False(t, after.Follower.Round.IsOpen(), "it scouts")
	}
	named := max(before.Follower.SuccessorUntil, after.Follower.SuccessorUntil) > after.Now
	if after.PauseEnd > after.Now && !after.Turns.LedLast && !named {
		require.False(t, before.Role == elector.Follower && after.Role == elector.Candidate, "it stands")
		opened := !before.Follower.Round.IsOpen() && after.Follower.Round.IsOpen()
		require.False(t, opened, "it scouts")
	}
	for _, tr := range e.Transitions {
		if before.Leader.Working && tr.From == elector.Leader && handedOver(tr.Reason) && !abrupt(in) {
			require.True(t, workOver(in, before, after.Now), "%s while the work was held", tr)
		}
	}
}

func handedOver(why elector.Reason) bool {
	return why == elector.Transferred || why == elector.Resigned || why == elector.Stopped
}

func abrupt(in elector.Input) bool {
	stop, ok := in.(elector.Stop)
	return ok && stop.Abrupt
}

// workOver reports whether the guarded work that was told to stop has said so, or its time is over.
func workOver(in elector.Input, before elector.State, now elector.Time) bool {
	h := before.Leader.Handover
	return h.Stopping && (in == elector.Guard{} || now >= h.End)
}
