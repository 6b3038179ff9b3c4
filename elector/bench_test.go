package elector_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// The heartbeat path. The inputs are made once and stepped again and again: to put an input into an
// interface costs an allocation of the driver, not of the machine.

func heartbeatStep(t testing.TB) func() { return heartbeats(t, follower(t), 1) }

// phiStep is a heartbeat to a node that learns from each.
func phiStep(t testing.TB) func() {
	d := bootWith(t, elector.Config{Phi: accrual}, 3, 2)
	d.beat(0, 3, 1)
	return heartbeats(t, d, 1000)
}

// qualityStep is a heartbeat to a node that asks for a quality of service, and measures.
func qualityStep(t testing.TB) func() {
	d := bootWith(t, elector.Config{QoS: quality}, 3, 2)
	links := elector.NewLinks(nil, true) // it learns who leads
	in := &elector.Received{From: "b", Message: elector.Message{
		Kind: elector.LeaderHeartbeat, Term: 3, Sequence: 1, Period: 500 * millis,
	}}
	d.hear("b", in.Message)
	return func() {
		d.now = d.now.Add(500 * millis)
		in.Message.Sequence++
		in.Message.SentAt = d.now
		links.Received(d.now, "g", in.From, &in.Message)
		var e elector.Input = *in // the driver's allocation
		if len(d.Step(d.now, 0, e).Messages) != 1 {
			t.Fatal("the heartbeat was not acked")
		}
		d.Tune(links)
	}
}

// heartbeats steps d with so many different heartbeats, and then again and again with the last.
func heartbeats(t testing.TB, d *driven, different int) func() {
	var inputs []elector.Input
	for i := range different {
		inputs = append(inputs, elector.Received{From: "b", Message: elector.Message{
			Kind: elector.LeaderHeartbeat, Term: 3, Sequence: uint64(i) + 2, SentAt: 9,
			LSN: lsn.LSN{Term: 3, Counter: 5},
		}})
	}
	next := 0
	return func() {
		d.now += 1000
		if len(d.Step(d.now, 0, inputs[next]).Messages) != 1 {
			t.Fatal("the heartbeat was not acked")
		}
		next = min(next+1, different-1)
	}
}

func ackStep(t testing.TB, voters int) func() {
	d := leader(t, voters)
	var in elector.Input = elector.Received{From: "c", Message: elector.Message{
		Kind: elector.HeartbeatAck, Term: 3, Sequence: 1, SentAt: d.now, MayStand: true,
	}}
	return func() {
		if d.Step(d.now, 0, in).Anomaly != (elector.Anomaly{}) {
			t.Fatal("the ack was not counted")
		}
	}
}

// broadcastStep is a period of a leader that needs no acks, so that its lease never ends.
func broadcastStep(t testing.TB, cfg elector.Config) func() {
	d := bootWith(t, cfg, 1, 2)
	require.Equal(t, elector.Leader, d.State().Role)
	var tick elector.Input = elector.Tick{}
	return func() {
		d.now = d.now.Add(elector.Article().HeartbeatBroadcast)
		if len(d.Step(d.now, 0, tick).Messages) != 1 {
			t.Fatal("no heartbeat was sent")
		}
	}
}

func idleStep(t testing.TB) func() {
	d := follower(t)
	var tick elector.Input = elector.Tick{}
	return func() { d.Step(d.now, 0, tick) }
}

func TestHeartbeatPathAllocatesNothing(t *testing.T) {
	for name, step := range map[string]func(){
		"heartbeat": heartbeatStep(t),
		"phi":       phiStep(t),
		"ack":       ackStep(t, 3),
		"broadcast": broadcastStep(t, elector.Config{}),
		"takeover":  broadcastStep(t, elector.Config{Takeover: time.Second}),
		"idle tick": idleStep(t),
	} {
		require.Zero(t, testing.AllocsPerRun(100, step), name)
	}
	require.LessOrEqual(t, testing.AllocsPerRun(100, qualityStep(t)), 1.0, "the input")
}

func BenchmarkStepHeartbeat(b *testing.B) { run(b, heartbeatStep(b)) }
func BenchmarkStepQuality(b *testing.B)   { run(b, qualityStep(b)) }
func BenchmarkStepBroadcast(b *testing.B) { run(b, broadcastStep(b, elector.Config{})) }
func BenchmarkStepTickIdle(b *testing.B)  { run(b, idleStep(b)) }

func BenchmarkStepAck(b *testing.B) {
	for _, voters := range []int{3, 5, 9} {
		b.Run(fmt.Sprintf("voters=%d", voters), func(b *testing.B) { run(b, ackStep(b, voters)) })
	}
}

func run(b *testing.B, step func()) {
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
}
