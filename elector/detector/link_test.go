package detector

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLinkEstimates(t *testing.T) {
	for _, q := range []Quality{
		{Loss: 0.01, Delay: ms}, {Loss: 0.1, Delay: 10 * ms}, {Loss: 0.1, Delay: 100 * ms},
		{Loss: 0.3, Delay: 30 * ms}, {Loss: 0.01, Delay: 100 * ms, Ordered: true},
	} {
		link := Link{Ordered: q.Ordered}
		for arrived := range newWire(3, q).deliveries(50*ms, 100_000*50*ms) {
			// The clocks are 5 years apart, and drift by 20 ms in 1000 s.
			arrived.at += arrived.at / 50_000
			arrived.hb.Scheduled += 5 * 365 * day
			link.Observe(arrived.at, arrived.hb)
		}
		got, isKnown := link.Quality()
		require.True(t, isKnown)
		require.InEpsilon(t, q.Loss, got.Loss, 0.1, "%+v", q)
		if !q.Ordered { // there, the queue behind a late one adds to delays
			require.InEpsilon(t, q.Delay, got.Deviation, 0.05, "%+v", q)
			q.Deviation, got.Delay = q.Delay, q.Delay
			want, err := Configure(dailyMistake, q, anyPeriod)
			require.NoError(t, err)
			plan, err := Configure(dailyMistake, got, anyPeriod)
			require.NoError(t, err)
			require.InEpsilon(t, want.Period, plan.Period, 0.05, "%+v", q)
		}
		require.Equal(t, q.Ordered, got.Ordered)
	}
}

// A regular is a sender whose heartbeats take 10 ms, with the Link of its receiver. Numbers that
// are skipped do not arrive.
type regular struct {
	link Link
	hb   Heartbeat
}

func (r *regular) send(n int, late time.Duration) {
	for range n {
		r.hb.Number++
		r.hb.Scheduled += 100 * ms
		r.hb.Period = 100 * ms
		r.link.Observe(r.hb.Scheduled+10*ms+late, r.hb)
	}
}

func (r *regular) skip(n int) (first Heartbeat) {
	first = Heartbeat{Number: r.hb.Number + 1, Scheduled: r.hb.Scheduled + 100*ms, Period: 100 * ms}
	r.hb.Number += uint64(n)
	r.hb.Scheduled += time.Duration(n) * 100 * ms
	return first
}

func (r *regular) losses() float64 { return r.link.lost.value * r.link.lost.n }

func TestLinkIsNotKnownAtOnce(t *testing.T) {
	var r regular
	r.send(known, 0)
	q, isKnown := r.link.Quality()
	require.False(t, isKnown)
	require.Equal(t, Quality{Loss: startLoss, Deviation: 100 * time.Microsecond}, q)
	r.send(1, 0)
	q, isKnown = r.link.Quality()
	require.True(t, isKnown)
	require.InDelta(t, 0.5/128, q.Loss, 1e-9, "no loss is not a loss of zero")
}

// A gap counts as lost heartbeats once Cantelli's wait has passed, and not before. If a lost
// heartbeat arrives after all, it counts as lost no more.
func TestLinkJudgesGapsLate(t *testing.T) {
	var r regular
	r.send(200, 0)
	for range 100 {
		r.send(1, 20*ms) // a deviation of about 6 ms: the wait is 60 ms
		r.send(9, 0)
	}
	missing := r.skip(1)
	r.send(1, 0)
	r.link.judge(missing.Scheduled+10*ms+50*ms, r.hb.Number)
	require.Zero(t, r.losses(), "it may still come")
	r.send(2, 0)
	require.InDelta(t, 1, r.losses(), 1e-9)
	r.link.Observe(r.hb.Scheduled+20*ms, missing)
	require.InDelta(t, 0, r.losses(), 1e-9)
	for range 3 {
		r.link.Observe(r.hb.Scheduled+30*ms, missing)
	}
	r.send(20, 0)
	require.InDelta(t, 0, r.losses(), 1e-9, "a duplicate is no news")
}

func TestLinkTakesAnOutageForNoLoss(t *testing.T) {
	var r regular
	r.send(500, 0)
	r.skip(numbersKept - 2)
	r.send(3, 0)
	require.InDelta(t, numbersKept-2, r.losses(), 1e-6, "a long gap")
	var s regular
	s.send(500, 0)
	s.skip(numbersKept)
	s.send(500, 0)
	require.Zero(t, s.losses())
}

func TestLinkSurvivesARestartOfTheSender(t *testing.T) {
	var r regular
	r.send(500, 0)
	r.skip(5)
	r.send(500, 0)
	before, _ := r.link.Quality()
	r.link.Restart()
	r.hb = Heartbeat{Scheduled: -time.Hour}
	r.send(1, 0)
	after, isKnown := r.link.Quality()
	require.True(t, isKnown)
	require.Equal(t, before, after)
}

// Rare stalls make the variance: one of 400 ms in an hour still shows after a day without another.
func TestLinkRemembersStalls(t *testing.T) {
	var r regular
	r.send(36_000, 0)
	r.send(1, 400*ms)
	r.send(24*36_000, 0)
	q, _ := r.link.Quality()
	require.InDelta(t, 0.42, float64(q.Deviation)/float64(ms), 0.05) // 400 ms / sqrt(900,000)
}

// A stall of the receiver says nothing about the link: the heartbeats that waited have arrived.
func TestLinkForgivesStallsOfTheReceiver(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		r := regular{link: Link{Ordered: ordered}}
		stall := func() {
			r.hb.Held = true
			for waits := 5 * time.Second; waits > 0; waits -= 100 * ms {
				r.send(1, waits)
			}
			r.skip(3)
			r.send(1, 50*ms)
			r.hb.Held = false
		}
		stall() // nothing is known yet
		r.send(1000, 0)
		before, isKnown := r.link.Quality()
		require.True(t, isKnown)
		require.Equal(t, granularity, before.Deviation)
		stall()
		r.send(1000, 0)
		after, _ := r.link.Quality()
		require.Equal(t, before.Deviation, after.Deviation)
		require.InDelta(t, 6, r.losses(), 1e-9, "what did not arrive was lost")
	}
}

// A receiver that is late for every heartbeat is slow, as its link may be.
func TestLinkLearnsThatItsNodeIsSlow(t *testing.T) {
	var r regular
	r.send(1000, 0)
	r.hb.Held = true
	r.send(numbersKept, 30*ms)
	q, _ := r.link.Quality()
	require.Equal(t, granularity, q.Deviation)
	r.send(1, 30*ms)
	q, _ = r.link.Quality()
	require.InDelta(t, 30/math.Sqrt(1000), float64(q.Deviation)/float64(ms), 0.1)
}

// New losses show within minutes, and fade in hours.
func TestLinkForgetsLosses(t *testing.T) {
	var r regular
	r.send(lossMemory, 0)
	for range 10 * lossMemory / 100 {
		r.skip(10)
		r.send(90, 0)
	}
	q, _ := r.link.Quality()
	require.InDelta(t, 0.1, q.Loss, 0.002)
	r.send(5*lossMemory, 0)
	q, _ = r.link.Quality()
	require.Less(t, q.Loss, 0.001)
	require.Greater(t, q.Loss, 0.25/lossMemory)
}

func TestLinkRoundTrips(t *testing.T) {
	var l Link
	l.RoundTrip(10 * ms)
	l.RoundTrip(30 * ms)
	q, _ := l.Quality()
	require.Equal(t, 10*ms, q.Delay)
}
