package netmesh

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/memnet"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// skewed is a clock on the time package that runs at another rate, and can be set.
type skewed struct {
	mu   sync.Mutex
	from time.Time // when it was
	at   time.Duration
	ppm  int64
}

func newSkewed(ppm int64) *skewed {
	return &skewed{from: time.Now(), at: time.Duration(time.Hour), ppm: ppm}
}

func (s *skewed) Now() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	real := time.Since(s.from)
	return s.at + (real + real*time.Duration(s.ppm)/1_000_000)
}

// change sets the clock forward, and its rate from then on.
func (s *skewed) change(step time.Duration, ppm int64) {
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.at, s.ppm = time.Now(), now+step, ppm
}

func onClock(c Clock, limit int64) func(*Config) {
	return func(cfg *Config) { cfg.Clock, cfg.MaxDriftPPM = c, limit }
}

// driftingPair starts a, whose clock is right, and b, whose clock runs at another
// rate, on a network on which every frame takes some time.
func driftingPair(t *testing.T, ppm, limit int64) (a, b *node, clocks [2]*skewed, faults *Faults) {
	clocks = [2]*skewed{newSkewed(0), newSkewed(ppm)}
	faults = NewFaults()
	faults.Delay("*", 2*time.Millisecond, 8*time.Millisecond)
	second := func(c *Config) { c.PingInterval = time.Second }
	a, b = pairOn(t, memnet.New(),
		[]func(*Config){onClock(clocks[0], limit), second, func(c *Config) { c.Faults = faults }},
		[]func(*Config){onClock(clocks[1], limit), second})
	return a, b, clocks, faults
}

func TestClockThatRunsFastIsFoundByBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, clocks, _ := driftingPair(t, 30_000, 20_000)
		time.Sleep(30 * time.Second)
		a.mustFind(t, FindingClockRate, "b", `"b" runs at +`, `against that of node "a"`, "at most 20000 ppm")
		b.mustFind(t, FindingClockRate, "a", `"a" runs at -`, `against that of node "b"`, "at most 20000 ppm")
		link := a.Links()[0]
		require.InDelta(t, 30_000, link.ClockRate, link.ClockDoubt+1)
		require.Less(t, link.ClockDoubt, 1000.0)

		clocks[1].change(0, 0) // mended
		time.Sleep(4 * time.Minute)
		require.Empty(t, append(a.Findings(), b.Findings()...))
		require.InDelta(t, 0, a.Links()[0].ClockRate, a.Links()[0].ClockDoubt+1)
		require.Less(t, a.Links()[0].ClockDoubt, 200.0, "the longer, the better")
	})
}

func TestClockWithinTheBoundIsNoFinding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _, _ := driftingPair(t, 19_000, 20_000)
		for range 60 {
			time.Sleep(5 * time.Second)
			require.Empty(t, append(a.Findings(), b.Findings()...))
		}
		require.InDelta(t, 19_000, a.Links()[0].ClockRate, 200)
	})
}

// TestDoubtIsNoFinding: over a link that is slow and uneven, little is known of a
// small difference, and nothing is claimed until enough is.
func TestDoubtIsNoFinding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, clocks, faults := driftingPair(t, 900, 1000)
		faults.Delay("*", 200*time.Millisecond, 100*time.Millisecond)
		time.Sleep(30 * time.Second)
		require.Greater(t, a.Links()[0].ClockDoubt, 1000.0)
		for range 100 {
			time.Sleep(time.Second)
			require.Empty(t, append(a.Findings(), b.Findings()...))
		}
		clocks[1].change(0, 1500)
		faults.Delay("*", time.Millisecond, 0)
		time.Sleep(3 * time.Minute)
		a.mustFind(t, FindingClockRate, "b")
	})
}

func TestUnlimitedDriftIsOnlyMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _, _ := driftingPair(t, -300_000, 0)
		time.Sleep(time.Minute)
		require.InDelta(t, -300_000, a.Links()[0].ClockRate, 1000)
		require.Empty(t, a.Findings())
	})
}

// TestClockThatWasSetDoesNotLookFast: nor one that stood still with its machine.
func TestClockThatWasSetDoesNotLookFast(t *testing.T) {
	for whose, step := range []time.Duration{5 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			a, b, clocks, _ := driftingPair(t, 0, 5_000)
			for i := range 300 {
				if i%100 == 7 || i == 150 {
					clocks[whose].change(step, 0)
				}
				time.Sleep(time.Second)
				require.Empty(t, append(a.Findings(), b.Findings()...), "after %d s", i)
			}
			require.InDelta(t, 0, a.Links()[0].ClockRate, 500)
		})
	}
}

// TestPausedProcessDoesNotLookSlow: its answers come late, its clock goes on.
func TestPausedProcessDoesNotLookSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _, faults := driftingPair(t, 0, 500)
		for i := range 200 {
			late := time.Duration(0)
			if i%9 < 4 {
				late = 1500 * time.Millisecond
			}
			faults.Delay("b", late, 20*time.Millisecond)
			time.Sleep(time.Second)
			require.Empty(t, append(a.Findings(), b.Findings()...), "after %d s", i)
		}
		require.Equal(t, 1, a.count("b", "up 1"), "the link stood")
		require.NotZero(t, a.Links()[0].ClockDoubt)
	})
}

// TestBoundsOfTheRateAlwaysHold: whatever the network and the processes do, as
// long as the clock of the peer is steady, the truth lies between the bounds.
func TestBoundsOfTheRateAlwaysHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ppm := rapid.Int64Range(-900_000, 2_000_000).Draw(t, "ppm")
		offset := rapid.Int64Range(0, 1<<50).Draw(t, "offset")
		there := func(here time.Duration) time.Duration {
			return time.Duration(offset + int64(here) + int64(here/1_000_000)*ppm + int64(here%1_000_000)*ppm/1_000_000)
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
			r, ok := rate.add(clockSample{time.Duration(sent), time.Duration(now), there(got), there(answered)})
			if ok {
				require.LessOrEqual(t, r.low, float64(ppm)+1)
				require.GreaterOrEqual(t, r.high, float64(ppm)-1)
			}
		}
	})
}

func TestClocksThatStandStillDivideNothing(t *testing.T) {
	var rate clockRate
	for range 10 * rateWindow {
		_, ok := rate.add(clockSample{5, 5, 9, 9})
		require.False(t, ok)
	}
	_, known, _ := rate.read()
	require.False(t, known)
}

func TestWallClocksAreCompared(t *testing.T) {
	var rate clockRate
	l := &link{m: &Mesh{}}
	ahead := time.Now().Add(time.Hour)
	require.NoError(t, l.timed(0, time.Duration(2*time.Second), &ping{Wall: ahead.UnixNano()}))
	_, _, wall := l.rate.read()
	require.InDelta(t, (time.Hour + time.Second).Seconds(), wall.Seconds(), 1)
	_, known, none := rate.read()
	require.False(t, known)
	require.Zero(t, none)
}

func TestAnswersBeforeTheirPingsAreGarbage(t *testing.T) {
	l := &link{m: &Mesh{}}
	require.Equal(t, ReasonGarbage, reasonOf(l.timed(1, 2, &ping{Received: 5, Sent: 4})))
	require.Equal(t, ReasonGarbage, reasonOf(l.timed(1, 2, &ping{Received: -5, Sent: 4})))
}
