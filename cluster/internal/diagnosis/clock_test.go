package diagnosis

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/netmesh"
)

// skewed is a clock that runs at another rate than the time package, and can be set.
type skewed struct {
	mu   sync.Mutex
	from time.Time // when it was
	at   time.Duration
	ppm  int64
}

func (s *skewed) Now() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	real := time.Since(s.from)
	return s.at + (real + real*time.Duration(s.ppm)/1_000_000) + 1
}

// change sets the clock forward, and its rate from then on.
func (s *skewed) change(step time.Duration, ppm int64) {
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.at, s.ppm = time.Now(), now+step, ppm
}

// driftingPair starts a with a right clock, and b with a clock of another rate. Every frame
// takes some time.
func driftingPair(t *testing.T, ppm, limit int64) (a, b *node) {
	a, b = pair(t, func(c *Config, _ *netmesh.Config) { c.MaxDriftPPM = limit })
	b.clock.change(0, ppm)
	a.faults.Delay("*", 2*time.Millisecond, 8*time.Millisecond)
	return a, b
}

func TestClockThatRunsFastIsFoundByBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := driftingPair(t, 30_000, 20_000)
		time.Sleep(35 * time.Second)
		a.mustFind(t, findings.ClockRate, "b", `"b" runs at +`, `that of node "a"`, "at most 20000 ppm")
		b.mustFind(t, findings.ClockRate, "a", `"a" runs at -`, `that of node "b"`, "at most 20000 ppm")
		c := a.Clocks()["b"]
		require.InDelta(t, 30_000, c.Rate, c.Doubt+1)
		require.Less(t, c.Doubt, 1000.0)

		b.clock.change(0, 0) // fixed
		time.Sleep(4 * time.Minute)
		require.Empty(t, append(a.Findings(), b.Findings()...))
		c = a.Clocks()["b"]
		require.InDelta(t, 0, c.Rate, c.Doubt+1)
		require.Less(t, c.Doubt, 200.0, "the longer, the better")
	})
}

func TestClocksWithinTheLimitAreOnlyMeasured(t *testing.T) {
	for _, c := range []struct{ ppm, limit int64 }{{19_000, 20_000}, {-300_000, 0}} {
		synctest.Test(t, func(t *testing.T) {
			a, b := driftingPair(t, c.ppm, c.limit)
			for range 60 {
				time.Sleep(5 * time.Second)
				require.Empty(t, append(a.Findings(), b.Findings()...))
			}
			require.InDelta(t, c.ppm, a.Clocks()["b"].Rate, 200)
		})
	}
}

// TestDoubtIsNoFinding: over a slow link with much jitter a small difference cannot be measured,
// so it is no finding.
func TestDoubtIsNoFinding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := driftingPair(t, 900, 1000)
		a.faults.Delay("*", 200*time.Millisecond, 100*time.Millisecond)
		time.Sleep(35 * time.Second)
		require.Greater(t, a.Clocks()["b"].Doubt, 1000.0)
		for range 100 {
			time.Sleep(time.Second)
			require.Empty(t, append(a.Findings(), b.Findings()...))
		}
		b.clock.change(0, 1500)
		a.faults.Delay("*", time.Millisecond, 0)
		time.Sleep(3 * time.Minute)
		a.mustFind(t, findings.ClockRate, "b")
	})
}

// TestClockThatWasSetDoesNotLookFast, and neither does one that stood still with its machine.
func TestClockThatWasSetDoesNotLookFast(t *testing.T) {
	for whose, step := range []time.Duration{5 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			a, b := driftingPair(t, 0, 5_000)
			for i := range 300 {
				if i%100 == 7 || i == 150 {
					[]*node{a, b}[whose].clock.change(step, 0)
				}
				time.Sleep(time.Second)
				require.Empty(t, append(a.Findings(), b.Findings()...), "after %d s", i)
			}
			require.InDelta(t, 0, a.Clocks()["b"].Rate, 500)
		})
	}
}

// TestPausedProcessDoesNotLookSlow: it answers late, but its clock goes on.
func TestPausedProcessDoesNotLookSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := driftingPair(t, 0, 500)
		for i := range 200 {
			late := time.Duration(0)
			if i%9 < 4 {
				late = 1500 * time.Millisecond
			}
			a.faults.Delay("*", late, 20*time.Millisecond)
			time.Sleep(time.Second)
			require.Empty(t, append(a.Findings(), b.Findings()...), "after %d s", i)
		}
		require.NotZero(t, a.Clocks()["b"].Doubt, "the link stood")
	})
}

// TestBoundsOfTheRateAlwaysHold: as long as the rate of the peer's clock is constant, it is
// between the bounds, whatever the network and the processes do.
func TestBoundsOfTheRateAlwaysHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ppm := rapid.Int64Range(-900_000, 2_000_000).Draw(t, "ppm")
		offset := rapid.Int64Range(0, 1<<50).Draw(t, "offset")
		there := func(here time.Duration) time.Duration {
			return time.Duration(offset + int64(here) + int64(here/1_000_000)*ppm +
				int64(here%1_000_000)*ppm/1_000_000)
		}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var rate clockRate
		now := time.Second
		for range rapid.IntRange(0, 400).Draw(t, "pings") {
			now += time.Duration(random.Int64N(int64(time.Second)))
			sent := now
			got := sent + time.Duration(random.Int64N(int64(3*time.Second)))
			answered := got + time.Duration(random.Int64N(int64(time.Second)))
			now = answered + time.Duration(random.Int64N(int64(3*time.Second)))
			if rate.add(netmesh.Ping{Sent: sent, Back: now, Received: there(got),
				Answered: there(answered)}) {
				require.LessOrEqual(t, rate.low, float64(ppm)+1)
				require.GreaterOrEqual(t, rate.high, float64(ppm)-1)
			}
		}
	})
}

func TestClocksThatStandStillDivideNothing(t *testing.T) {
	var rate clockRate
	for range 10 * rateWindow {
		require.False(t, rate.add(netmesh.Ping{Sent: 5, Back: 5, Received: 9, Answered: 9}))
	}
	require.Zero(t, rate.clock())
}
