package netmesh

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/stretchr/testify/require"
)

// echo answers every heartbeat by an ack, and counts the other messages.
type echo struct {
	mesh chan *Mesh
	got  chan struct{}
	self *Mesh
}

func (b *echo) LinkUp(
	PeerInfo) {
	b.self = <-b.mesh
	b.mesh <- b.self
	b.got <- struct{}{}
}
func (b *echo) LinkDown(elector.NodeID, elector.Evidence)   {}
func (b *echo) Died(elector.NodeID, elector.Proof)          {}
func (b *echo) Noted(elector.NodeID, Note)                  { b.got <- struct{}{} }
func (*echo) Changed(elector.NodeID, uint64, []pair.Change) {}
func (b *echo) Acked(elector.NodeID, uint64, pair.Ack)      { b.got <- struct{}{} }
func (b *echo) Beaten(p elector.NodeID, session uint64, beat pair.Beat, _ time.Duration) {
	b.self.Ack(p, session, pair.Ack{Sequence: beat.Sequence, SentAt: beat.SentAt})
}
func (b *echo) Received(p elector.NodeID, g string, m elector.Message) {
	if m.Kind == elector.LeaderHeartbeat {
		m.Kind = elector.HeartbeatAck
		b.self.Send(p, g, m)
		return
	}
	b.got <- struct{}{}
}

func echoing(b testing.TB, name elector.NodeID, edit func(*Config)) (*Mesh, *echo) {
	b.Helper()
	h := &echo{mesh: make(chan *Mesh, 1), got: make(chan struct{}, 2*benchWindow)}
	cfg := testConfig(name)
	edit(&cfg)
	m, err := Listen(cfg, h)
	require.NoError(b, err)
	h.mesh <- m
	b.Cleanup(func() { require.NoError(b, m.Close(context.Background())) })
	return m, h
}

// BenchmarkRoundTrip is a heartbeat to a peer on loopback TCP and its ack back:
// all of the mesh, twice.
func BenchmarkRoundTrip(b *testing.B) {
	plainAndTLS(b, func(b *testing.B, edit func(*Config)) {
		x, here := echoing(b, "x", edit)
		y, there := echoing(b, "y", edit)
		x.AddPeer("y", y.Addr().String())
		<-here.got
		<-there.got
		b.ReportAllocs()
		for b.Loop() {
			x.Send("y", "default", heartbeat(1))
			<-here.got
		}
	})
}

// BenchmarkBeat is a beat to a peer on loopback and its ack back, by datagrams. One that the kernel
// loses is repeated.
func BenchmarkBeat(b *testing.B) {
	plainAndTLS(b, func(b *testing.B, edit func(*Config)) {
		x, here := echoing(b, "x", edit)
		y, there := echoing(b, "y", edit)
		x.AddPeer("y", y.Addr().String())
		<-here.got
		<-there.got
		session, seq := x.Links()[0].Peer.Session, uint64(0)
		lost := time.NewTimer(time.Second)
		say := func() {
			seq++
			lost.Reset(time.Second)
			x.Beat("y", session, beat(seq))
			select {
			case <-here.got:
			case <-lost.C:
			}
		}
		for x.Links()[0].Beats != BeatsDatagrams || y.Links()[0].Beats != BeatsDatagrams {
			say()
		}
		b.ReportAllocs()
		for b.Loop() {
			say()
		}
	})
}

// benchWindow is how many messages BenchmarkThroughput has under way.
const benchWindow = 512

// BenchmarkThroughput keeps the queue of one link filled, with acks of as many
// elections.
func BenchmarkThroughput(b *testing.B) { plainAndTLS(b, throughput) }

func throughput(b *testing.B, edit func(*Config)) {
	x, here := echoing(b, "x", edit)
	y, there := echoing(b, "y", edit)
	x.AddPeer("y", y.Addr().String())
	<-here.got
	<-there.got
	window := make(chan struct{}, benchWindow)
	groups := make([]string, 2*benchWindow)
	for i := range groups {
		groups[i] = strconv.Itoa(i)
	}
	b.ReportAllocs()
	go func() {
		for i := range b.N {
			window <- struct{}{}
			x.Send("y", groups[i%len(groups)], ack(1))
		}
	}()
	for range b.N {
		<-there.got
		<-window
	}
}

// BenchmarkQueue measures what a heartbeat costs in the queue of one peer, among the heartbeats of
// other elections.
func BenchmarkQueue(b *testing.B) {
	for _, elections := range []int{1, 100, 3000} {
		b.Run(strconv.Itoa(elections), func(b *testing.B) {
			groups := make([]string, elections)
			for i := range groups {
				groups[i] = "election-" + strconv.Itoa(i)
			}
			var q queue
			m, spare := heartbeat(1), []queued(nil)
			b.ReportAllocs()
			for i := range b.N {
				q.push(groups[i%elections], &m)
				if i%elections == elections-1 {
					spare = q.swap(spare)
				}
			}
		})
	}
}
