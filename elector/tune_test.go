package elector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
)

// Whatever the plans are, and whatever followers ask for, a lease never outlasts the detector, and
// two heartbeats fit into it.
func TestNoPlanBreaksTheLease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		anyTime := rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, int64(4*time.Second)))
		draw := func(name string) time.Duration { return time.Duration(anyTime.Draw(t, name)) }
		cfg := valid()
		cfg.QoS = quality
		cfg.QoS.Detect = time.Duration(rapid.Int64Range(1, 1e4).Draw(t, "detect")) * time.Millisecond
		cfg.QoS.Mistakes = detector.Recurrence(24 * time.Hour)
		cfg.Timing = elector.ForQoS(cfg.QoS)
		m, err := elector.New(cfg)
		require.NoError(t, err, "what ForQoS derives is valid")
		lease := cfg.Timing.Lease
		now := elector.Time(time.Second)
		var sequence uint64
		step := func(in elector.Input) {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(lease/4)).Draw(t, "passes")))
			e := m.Step(now, 7, in)
			for _, out := range e.Messages {
				if out.Message.Kind == elector.LeaderHeartbeat {
					require.Less(t, 2*out.Message.Period, lease)
					require.Positive(t, out.Message.Period)
				}
				if out.Message.Kind == elector.HeartbeatAck {
					require.Less(t, 2*out.Message.Period, lease)
				}
			}
			s := m.State()
			if tuned := s.Tuned; tuned != (elector.Tuned{}) {
				require.GreaterOrEqual(t, tuned.Detection, cfg.Timing.Promise())
				require.Less(t, 2*tuned.Period, lease)
			}
		}
		step(elector.Start{Term: 2})
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			sequence++
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				step(elector.Tuned{Peer: "b", Period: draw("period"), Detection: draw("detection")})
			case 1:
				step(elector.Received{From: "b", Message: elector.Message{
					Kind: elector.LeaderHeartbeat, Term: 3, Sequence: sequence, SentAt: now,
					Period: draw("announced"), Late: draw("late"),
				}})
			case 2:
				step(elector.Tick{})
			}
		}
	})
}

// The same holds for a leader, whatever its followers ask for.
func TestALeaderKeepsItsPeriodWithinTheLease(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		anyTime := rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, int64(4*time.Second)))
		d := leader(t, 3)
		limits := elector.Article().Periods()
		for range rapid.IntRange(1, 60).Draw(rt, "acks") {
			d.now = d.now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(rt, "passes")))
			d.step(elector.Tick{})
			s := d.State()
			if s.Role != elector.Leader {
				return
			}
			d.hear("b", elector.Message{
				Kind: elector.HeartbeatAck, Term: 3, Sequence: s.Leader.Sequence, SentAt: d.now,
				Period: time.Duration(anyTime.Draw(rt, "wanted")),
			})
			period := d.Status().Period
			require.GreaterOrEqual(rt, period, limits.Shortest)
			require.LessOrEqual(rt, period, limits.Longest)
			require.LessOrEqual(rt, d.State().Leader.BroadcastAt, d.now.Add(period))
		}
	})
}

// Messages that waited for a node that was held up say nothing about the link. That lasts as long
// as the node was late, at most a heartbeat period.
func TestLinksForgiveWhatWaitedForTheNode(t *testing.T) {
	const period = 300 * millis
	for _, c := range []struct {
		late, after time.Duration
		forgiven    bool
	}{
		{5 * time.Second, 0, true},
		{5 * time.Second, period, true},
		{5 * time.Second, period + 1, false},
		{20 * millis, 20 * millis, true},
		{20 * millis, 20*millis + 1, false},
		{0, 1, false},
	} {
		d := bootWith(t, elector.Config{QoS: quality}, 3, 2)
		links := elector.NewLinks([]elector.NodeID{"a", "b", "c"}, true)
		hb := elector.Message{Kind: elector.LeaderHeartbeat, Term: 3, Period: period}
		beat := func(late time.Duration) {
			hb.Sequence++
			hb.SentAt = d.now.Add(-late)
			links.Received(d.now, "g", "b", &hb)
		}
		for range 200 {
			d.now = d.now.Add(period)
			beat(0)
		}
		links.HeldUp(d.now, c.late)
		d.now = d.now.Add(c.after)
		beat(5 * time.Second)
		d.hear("b", hb)
		d.Tune(links)
		tuning, _, _, ok := d.Quality()
		require.True(t, ok)
		require.True(t, tuning.Known)
		require.Equal(t, c.forgiven, tuning.Quality.Deviation < millis, "%+v", c)
	}
}

// TestQualityIsOfTheLeaderThatIsFollowed, once Tune has looked at its link. The delay is half of a
// round trip.
func TestQualityIsOfTheLeaderThatIsFollowed(t *testing.T) {
	const period = 300 * millis
	d := bootWith(t, elector.Config{QoS: quality}, 3, 2)
	links := elector.NewLinks([]elector.NodeID{"a", "b", "c"}, true)
	known := func() bool { _, _, _, ok := d.Quality(); return ok }
	require.False(t, known(), "there is no leader")
	hb := elector.Message{Kind: elector.LeaderHeartbeat, Term: 3, Period: period}
	for range 200 {
		d.now = d.now.Add(period)
		hb.Sequence, hb.SentAt = hb.Sequence+1, d.now
		links.Received(d.now, "g", "b", &hb)
	}
	links.RoundTrip("b", 40*millis)
	d.hear("b", hb)
	require.False(t, known(), "nobody has looked at the link yet")
	d.Tune(links)
	tuning, _, _, ok := d.Quality()
	require.True(t, ok)
	require.Equal(t, time.Duration(20*millis), tuning.Quality.Delay)
	d.step(elector.LinkDown{Peer: "b"})
	require.False(t, known(), "the leader is lost")
}

// TestTimersOfAShortDetection: timers that depend on disks and schedulers do not get shorter.
func TestTimersOfAShortDetection(t *testing.T) {
	require.Equal(t, elector.Timing{
		InitialWait: 500 * millis, MinRandomWait: 2 * millis, MaxRandomWait: 200 * millis,
		ScoutingResult: 100 * millis, ElectionResult: 250 * millis,
		HeartbeatBroadcast: 10 * millis, HeartbeatMissCount: 3, Lease: 24 * millis,
		ClockDriftPPM: 20_000,
	}, elector.ForQoS(detector.QoS{
		Detect: 30 * millis, Mistakes: detector.Recurrence(time.Hour), Accuracy: 0.999,
	}))
}
