package detector

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	_ Detector = MissCount(3)
	_ Detector = (*Phi)(nil)
	_ Detector = (*NFDE)(nil)
)

func TestMissCount(t *testing.T) {
	var d Detector = MissCount(3)
	require.Equal(t, 1600*ms, d.Observe(100*ms, Heartbeat{Number: 1, Period: 500 * ms}))
	require.Equal(t, 1500*ms, d.Observe(900*ms, Heartbeat{Number: 2, Period: 200 * ms}))
}

// A miss count of m forgives m - 1 losses in a row, and half of the m-th: what is sent m
// periods after a heartbeat is late if it takes a microsecond longer.
func TestMissCountQuality(t *testing.T) {
	const eta, loss = 100 * ms, 0.1
	for m := range 3 {
		inARow := math.Pow(loss, float64(m)) * (1 - loss) / eta.Seconds()
		want := 1 / (inARow * (loss + (1-loss)/2))
		var r record
		r.watch(MissCount(m+1), newWire(1, Quality{Loss: loss, Delay: 10 * time.Microsecond}), eta,
			duration(1500*want))
		require.InEpsilon(t, want, r.recurrence(), 0.1, "%+v", r)
	}
}

// A step is a heartbeat that arrives, in ms: its number, when it was scheduled, what period
// it announces; and the freshness point that follows.
type step struct {
	name                              string
	at                                time.Duration
	number                            uint64
	scheduled, period, freshnessPoint time.Duration
	held                              bool
}

// observed lets a detector see steps, by another clock than the sender's.
func observed(t *testing.T, d *NFDE, steps []step) {
	const zero = 77 * time.Hour
	for _, s := range steps {
		hb := Heartbeat{Number: s.number, Scheduled: zero + s.scheduled*ms, Period: s.period * ms,
			Held: s.held}
		require.InDelta(t, s.freshnessPoint*ms, d.Observe(s.at*ms, hb), float64(ms), s.name)
	}
}

func TestNFDESteps(t *testing.T) {
	observed(t, NewNFDE(250*ms), []step{
		{"10 ms late: expected again at 110", 10, 1, 0, 100, 260, false},
		{"30 ms late: the mean is 20 ms", 130, 2, 100, 100, 370, false},
		{"4 comes before 3", 320, 4, 300, 100, 570, false},
		{"3 is old: it counts in the mean only", 340, 3, 200, 100, 570, false},
		{"a duplicate counts in nothing", 350, 4, 300, 100, 570, false},
		{"the next one: the mean of 10, 30, 20, 140, 50", 450, 5, 400, 100, 700, false},
		{"the period is halved, and the time to detect stays", 550, 6, 500, 50, 800, false},
		{"too old to restore trust", 5050, 7, 550, 50, 550 + 250 + (300+4500)/7, false},
	})
}

// A heartbeat that waited for a node that was held up moves the freshness point, but not the
// expected arrival.
func TestNFDELearnsNothingFromItsOwnStalls(t *testing.T) {
	observed(t, NewNFDE(250*ms), []step{
		{"10 ms late", 10, 1, 0, 100, 260, false},
		{"the oldest that waited", 5000, 2, 100, 100, 360, true},
		{"the newest that waited", 5000, 50, 4900, 100, 5160, true},
		{"the mean is 20 ms", 5030, 51, 5000, 100, 5270, false},
	})
	observed(t, NewNFDE(250*ms), []step{
		{"nothing else is known", 5000, 1, 100, 100, 5250, true},
		{"the newest is the nearest to the truth", 5000, 50, 4900, 100, 5250, true},
		{"it stands in", 5030, 51, 5000, 100, 5280, false},
		{"for this one", 5110, 52, 5100, 100, 5370, false},
	})
}

// A node that is late for every heartbeat is slow, and learns how slow.
func TestNFDELearnsThatItsNodeIsSlow(t *testing.T) {
	d := NewNFDE(time.Second)
	d.Observe(0, Heartbeat{Number: 1, Period: ms})
	hb := Heartbeat{Number: 1, Period: ms, Held: true}
	for range 2 * numbersKept {
		hb.Number++
		hb.Scheduled += ms
		d.Observe(hb.Scheduled+400*ms, hb)
	}
	require.Equal(t, hb.Scheduled+1400*ms, d.tau)
}

// Clocks whose rates differ by 10^-4 for hours: the window forgets, and the expected arrival
// stays within what ten seconds of drift make.
func TestNFDEOutlivesDrift(t *testing.T) {
	d := NewNFDE(time.Second)
	hb := Heartbeat{Period: time.Second}
	for hb.Scheduled < 3*time.Hour {
		hb.Number++
		hb.Scheduled += hb.Period
		now := hb.Scheduled + hb.Scheduled/10_000
		require.InDelta(t, now+time.Second, d.Observe(now, hb), float64(ms))
	}
}

// A peer may send any numbers and times. Nothing panics or loops, and a heartbeat that is not newer
// than the newest moves no deadline.
func FuzzHeartbeats(f *testing.F) {
	f.Add(uint64(1), int64(0), int64(500*ms), uint64(2), int64(500*ms), int64(500*ms))
	f.Add(uint64(7), int64(9), int64(-1), uint64(math.MaxUint64), int64(math.MinInt64), int64(1))
	f.Add(uint64(0), int64(0), int64(0), uint64(1<<63), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add(uint64(0), int64(0), int64(500*ms), uint64(0), int64(500*ms), int64(500*ms))
	f.Add(uint64(math.MaxUint64-500), int64(0), int64(500*ms), uint64(701), int64(500*ms),
		int64(500*ms)) // the sum with the kept numbers wraps
	f.Fuzz(func(t *testing.T, number uint64, at, period int64, number2 uint64, at2, period2 int64) {
		phi, err := NewPhi(PhiConfig{Threshold: 8, Window: 3, MinDeviation: ms})
		require.NoError(t, err)
		nfde, link := NewNFDE(time.Second), Link{}
		heartbeats := []Heartbeat{
			{Number: number, Scheduled: time.Duration(at), Period: time.Duration(period)},
			{number2, time.Duration(at2), time.Duration(period2), true},
		}
		now, highest := time.Duration(0), uint64(0)
		var deadlines [2]time.Duration
		for i := range 12 {
			hb := heartbeats[i%2]
			hb.Number += uint64(i) * (number2 % 700)
			now += time.Duration(period2 & math.MaxInt32)
			for d, detector := range []Detector{phi, nfde} {
				deadline := detector.Observe(now, hb)
				if i > 0 && hb.Number <= highest {
					require.Equal(t, deadlines[d], deadline)
				}
				deadlines[d] = deadline
			}
			highest = max(highest, hb.Number)
			link.Observe(now, hb)
			q, _ := link.Quality()
			require.True(t, q.Loss > 0 && q.Loss <= mostLoss, q.Loss)
		}
	})
}

func TestObserveAllocatesNothing(t *testing.T) {
	for name, observe := range observers(t) {
		require.Zero(t, testing.AllocsPerRun(1000, observe), name)
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, observe := range observers(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				observe()
			}
		})
	}
}

// observers are the work for one heartbeat at steady state: its deadline, or the estimates.
func observers(t testing.TB) map[string]func() {
	phi, err := NewPhi(PhiConfig{Threshold: 8, Window: 1000, MinDeviation: 10 * ms, Pause: 300 * ms})
	require.NoError(t, err)
	var link Link
	steps := map[string]func(now time.Duration, hb Heartbeat){
		"link": func(now time.Duration, hb Heartbeat) { link.Observe(now, hb); link.Quality() },
	}
	for name, d := range map[string]Detector{
		"misscount": MissCount(3), "phi": phi, "nfde": NewNFDE(time.Second),
	} {
		steps[name] = func(now time.Duration, hb Heartbeat) { d.Observe(now, hb) }
	}
	observers := map[string]func(){}
	for name, step := range steps {
		hb := Heartbeat{Period: 50 * ms}
		next := func() {
			hb.Number += 1 + hb.Number%10/9 // one in ten is lost
			hb.Scheduled = time.Duration(hb.Number) * hb.Period
			step(hb.Scheduled+time.Duration(hb.Number%7)*ms, hb)
		}
		for range 2000 {
			next()
		}
		observers[name] = next
	}
	return observers
}
