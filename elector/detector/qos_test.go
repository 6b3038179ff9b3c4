package detector

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRecurrenceText(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1/30d": 30 * day, "10/1h": 6 * time.Minute, "1/90m": 90 * time.Minute, "3/1d": 8 * time.Hour,
		"1/1h30m": 90 * time.Minute, "2/1s": 500 * ms, "100/36500d": 365 * day,
	} {
		var r Recurrence
		require.NoError(t, r.UnmarshalText([]byte(text)))
		require.Equal(t, want, time.Duration(r), text)
		var again Recurrence
		require.NoError(t, again.UnmarshalText([]byte(r.String())), r.String())
		require.Equal(t, r, again)
	}
	require.Equal(t, "1/30d", Recurrence(30*day).String())
	require.Equal(t, "1/36h0m0s", Recurrence(36*time.Hour).String())
	for text, why := range map[string]string{
		"":          "the count is a whole number",
		"30d":       "the count is a whole number",
		"0/30d":     "the count is a whole number",
		"-1/30d":    "the count is a whole number",
		"1.5/30d":   "the count is a whole number",
		"1":         "the time is days (30d), or a duration",
		"1/d":       "the time is days (30d), or a duration",
		"1/30":      "the time is days (30d), or a duration",
		"1/30days":  "the time is days (30d), or a duration",
		"1/70000d":  "the time is days (30d), or a duration",
		"1/0d":      "the time is positive",
		"1/-3h":     "the time is positive",
		"2/1ns":     "at least 1ns for each mistake",
		"1/30d/2":   "the time is days (30d), or a duration",
		"1 / 30d":   "the count is a whole number",
		"one/month": "the count is a whole number",
	} {
		r := Recurrence(7)
		err := r.UnmarshalText([]byte(text))
		require.ErrorContains(t, err, why, text)
		require.ErrorContains(t, err, "for example 1/30d")
		require.Equal(t, Recurrence(7), r, "unchanged")
	}
}

func FuzzRecurrence(f *testing.F) {
	f.Add("1/30d")
	f.Add("5/1h30m")
	f.Fuzz(func(t *testing.T, text string) {
		var r, again Recurrence
		if r.UnmarshalText([]byte(text)) != nil {
			return
		}
		require.Positive(t, r)
		require.NoError(t, again.UnmarshalText([]byte(r.String())))
		require.Equal(t, r, again)
	})
}

func TestQoSIsChecked(t *testing.T) {
	good := QoS{Detect: 200 * ms, Mistakes: Recurrence(30 * day), Accuracy: 0.99999}
	require.NoError(t, good.Validate())
	for want, change := range map[string]func(*QoS){
		"detect is 0s, but must be between 1ms and 1h0m0s": func(q *QoS) { q.Detect = 0 },
		"detect is 2h0m0s, but must be":                    func(q *QoS) { q.Detect = 2 * time.Hour },
		"mistakes is 1/100ms, but must be a rate of at most one in detect, 1/200ms": func(q *QoS) {
			q.Mistakes = Recurrence(100 * ms)
		},
		"accuracy is 0, but must be at least 0.5 and below 1":   func(q *QoS) { q.Accuracy = 0 },
		"accuracy is 1, but must be at least 0.5 and below 1":   func(q *QoS) { q.Accuracy = 1 },
		"accuracy is NaN, but must be at least 0.5 and below 1": func(q *QoS) { q.Accuracy = math.NaN() },
		"duration is 1s, but must be left out: accuracy, 0.99999, says it already": func(q *QoS) {
			q.Duration = time.Second
		},
		"duration is -1ns, but must be positive, and shorter than the time between mistakes, 720h": func(q *QoS) {
			q.Accuracy, q.Duration = 0, -1
		},
	} {
		bad := good
		change(&bad)
		require.ErrorContains(t, bad.Validate(), want)
		_, err := Configure(bad, Quality{Loss: 0.01, Deviation: ms}, anyPeriod)
		require.ErrorContains(t, err, want)
		require.False(t, errors.As(err, new(*Infeasible)))
	}
	both := QoS{Detect: -1, Accuracy: 2}
	require.ErrorContains(t, both.Validate(), "detect is -1ns")
	require.ErrorContains(t, both.Validate(), "accuracy is 2")
}

func TestConfigureChecksTheLink(t *testing.T) {
	for name, c := range map[string]struct {
		link   Quality
		limits Limits
	}{
		"no loss at all": {Quality{Deviation: ms}, anyPeriod},
		"all lost":       {Quality{Loss: 1, Deviation: ms}, anyPeriod},
		"not a number":   {Quality{Loss: math.NaN(), Deviation: ms}, anyPeriod},
		"no deviation":   {Quality{Loss: 0.1}, anyPeriod},
		"delay":          {Quality{Loss: 0.1, Deviation: ms, Delay: -1}, anyPeriod},
		"no period":      {Quality{Loss: 0.1, Deviation: ms}, Limits{Longest: time.Second}},
		"no range":       {Quality{Loss: 0.1, Deviation: ms}, Limits{Shortest: time.Second, Longest: ms}},
	} {
		_, err := Configure(dailyMistake, c.link, c.limits)
		require.ErrorContains(t, err, "must be", name)
		require.False(t, errors.As(err, new(*Infeasible)))
	}
}

// T_M^U and P_A^L say the same.
func TestDurationStandsForAccuracy(t *testing.T) {
	link := Quality{Loss: 0.1, Delay: 10 * ms, Deviation: 100 * ms}
	accurate := QoS{Detect: time.Second, Mistakes: Recurrence(100 * day), Accuracy: 0.99999988}
	brief := accurate
	brief.Accuracy, brief.Duration = 0, duration(1.0368)
	one, err := Configure(accurate, link, anyPeriod)
	require.NoError(t, err)
	other, err := Configure(brief, link, anyPeriod)
	require.NoError(t, err)
	require.InDelta(t, one.Period, other.Period, float64(2*time.Microsecond))
}

// By its own figures every plan keeps what was asked, within the limits. What an Infeasible
// suggests is feasible.
func TestConfigureAgreesWithItself(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	between := func(low, high float64) float64 { return low * math.Pow(high/low, rng.Float64()) }
	feasible, advice := 0, 0
	for range 400 {
		q := QoS{Detect: duration(between(0.02, 10)), Accuracy: 1 - between(1e-7, 0.1)}
		q.Mistakes = Recurrence(float64(q.Detect) * between(10, 1e7))
		link := Quality{Loss: between(1e-4, 0.5), Delay: duration(between(1e-4, 0.2)),
			Deviation: duration(between(1e-4, 0.2)), Ordered: rng.IntN(4) == 0}
		limits := Limits{Shortest: duration(between(1e-3, 0.05)), Longest: duration(between(0.1, 2))}
		if rng.IntN(2) == 0 {
			limits.Detection = duration(between(0.01, 5))
		}
		plan, err := Configure(q, link, limits)
		var missed *Infeasible
		if errors.As(err, &missed) {
			require.Equal(t, missed.Best, plan)
			require.NotEmpty(t, missed.Error())
			if missed.Detect != 0 && missed.Detect <= time.Hour {
				q.Detect = missed.Detect + time.Microsecond
				q.Mistakes = max(q.Mistakes, Recurrence(q.Detect))
				plan, err = Configure(q, link, limits)
				advice++
			}
		}
		if errors.As(err, &missed) {
			continue
		}
		require.NoError(t, err, "%+v %+v", q, link)
		feasible++
		require.Equal(t, q.Detect-link.Delay, plan.Detection())
		require.GreaterOrEqual(t, plan.Detection(), limits.Detection)
		require.True(t, plan.Period >= limits.Shortest && plan.Period <= limits.Longest, plan.Period)
		require.GreaterOrEqual(t, float64(plan.Recurrence)*(1+1e-9), float64(q.Mistakes))
		require.GreaterOrEqual(t, plan.Accuracy+1e-9, q.Accuracy)
	}
	require.Greater(t, feasible, 200)
	require.Greater(t, advice, 20)
}

// TestQoSText reads and writes what a user writes.
func TestQoSText(t *testing.T) {
	asked := QoS{Detect: 200 * ms, Mistakes: Recurrence(30 * 24 * time.Hour), Accuracy: .99999}
	for _, text := range []string{
		"detect: 200ms, mistakes: 1/30d, accuracy: 0.99999",
		"{mistakes: 1/30d; accuracy: 0.99999; detect: 200ms}",
	} {
		var q QoS
		require.NoError(t, q.UnmarshalText([]byte(text)))
		require.Equal(t, asked, q)
	}
	for _, q := range []QoS{asked, {}, {Detect: time.Second, Mistakes: asked.Mistakes, Duration: ms}} {
		text, err := q.MarshalText()
		require.NoError(t, err)
		var again QoS
		require.NoError(t, again.UnmarshalText(text))
		require.Equal(t, q, again, string(text))
	}
	for text, want := range map[string]string{
		"detect: soon":           "detect",
		"detect: 1s, speed: 3":   "speed",
		"mistakes: often":        "mistakes",
		"accuracy: high":         "accuracy",
		"detect 1s":              "detect 1s",
		"duration: 1":            "duration",
		"detect: 1s, detect: 2s": "detect",
	} {
		var q QoS
		require.ErrorContains(t, q.UnmarshalText([]byte(text)), want, text)
		require.Zero(t, q, text)
	}
}

// TestNFDEAdjustsAndForgets: another detection time moves the deadline of the newest heartbeat.
// After a suspicion the delays before it count no more.
func TestNFDEAdjustsAndForgets(t *testing.T) {
	d := NewNFDE(300 * ms)
	hb := Heartbeat{Number: 1, Scheduled: 0, Period: 100 * ms}
	require.Equal(t, 400*ms, d.Observe(100*ms, hb), "delay 100 ms, and 300 ms after the next is due")
	require.Equal(t, 600*ms, d.Adjust(500*ms))
	d.Forget()
	hb = Heartbeat{Number: 2, Scheduled: 100 * ms, Period: 100 * ms}
	require.Equal(t, 1600*ms, d.Observe(1100*ms, hb), "the delay of 1 s alone counts")
}
