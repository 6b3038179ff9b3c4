package main_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// BenchmarkFailover kills the leader of five processes in profile article, and
// tells how long it takes until the next one leads: until the first follower
// knows (detection), until one has waited its random 0 to 3 s and asked the
// others (back-off), until it is elected and all follow it (election). Medians,
// in milliseconds.
func BenchmarkFailover(b *testing.B) {
	s := play(b, 5, nil)
	leader := s.agree(s.Nodes(), nil)
	var detection, backOff, election, total []time.Duration
	for b.Loop() {
		killed := time.Now()
		require.NoError(b, s.node(leader.Leader).Kill())
		next := s.agree(s.others(leader.Leader), above(leader.Term))
		known := s.moment(killed, slices.MinFunc, func(e admin.Event) bool {
			return e.Leader == "" &&
				e.From == "FOLLOWER"
		})
		stands := s.moment(killed, slices.MaxFunc,
			func(e admin.Event) bool { return e.Reason == "PROPOSED" })
		followed := s.moment(killed, slices.MaxFunc,
			func(e admin.Event) bool { return e.Term == next.Term && e.Reason == "LEADER_FOUND" })
		detection = append(detection, known.Sub(killed))
		backOff = append(backOff, stands.Sub(known))
		election = append(election, followed.Sub(stands))
		total = append(total, followed.Sub(killed))
		require.NoError(b, s.node(leader.Leader).Start())
		leader = s.agree(s.Nodes(), same(next))
	}
	b.ReportMetric(0, "ns/op") // the loop also restarts the killed node
	b.ReportMetric(median(detection), "detection-ms")
	b.ReportMetric(median(backOff), "back-off-ms")
	b.ReportMetric(median(election), "election-ms")
	b.ReportMetric(median(total), "total-ms")
}

// BenchmarkTransfer hands leadership back and forth among three processes, and tells
// how long nobody leads: from the old leader's last moment until the new one is
// elected. Median, in milliseconds.
func BenchmarkTransfer(b *testing.B) {
	s := play(b, 3, nil)
	leader := s.agree(s.Nodes(), nil)
	var gaps []time.Duration
	for b.Loop() {
		began := time.Now()
		c := s.node(leader.Leader).Client()
		_, err := c.Transfer(b.Context(), admin.TransferRequest{})
		require.NoError(b, err)
		c.Close()
		next := s.agree(s.Nodes(), above(leader.Term))
		gaps = append(gaps, s.moment(began, slices.MaxFunc, becameLeader).Sub(s.moment(began,
			slices.MinFunc, lostLeadership)))
		leader = next
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(gaps), "gap-ms")
}

// moment is when the first or last wanted transition since then happened.
func (s *scene) moment(since time.Time, pick func([]time.Time, func(a, b time.Time) int) time.Time,
	want func(admin.Event) bool) time.Time {
	var at []time.Time
	for _, e := range s.transitions(want) {
		if !e.Time.Before(since) {
			at = append(at, e.Time)
		}
	}
	require.NotEmpty(s.t, at, "transitions since the kill")
	return pick(at, time.Time.Compare)
}

func median(ds []time.Duration) float64 {
	slices.Sort(ds)
	return float64(ds[len(ds)/2]) / float64(time.Millisecond)
}
