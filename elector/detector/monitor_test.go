package detector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// beats lets a monitor see heartbeats from number first on, each late by one of the delays in
// turn, and returns when the last one came.
func beats(m *Monitor, from Source, first, count int, delays ...time.Duration) (at time.Duration) {
	const period = 100 * ms
	for i := range count {
		sent := time.Duration(first+i) * period
		at = sent + delays[i%len(delays)]
		m.Observe(at, from, Heartbeat{Number: uint64(first + i), Scheduled: sent, Period: period})
	}
	return at
}

// TestAMonitorTellsWhatALinkNeeds, from a new link to one that has become worse.
func TestAMonitorTellsWhatALinkNeeds(t *testing.T) {
	var m Monitor
	ask := QoS{Detect: time.Second, Mistakes: Recurrence(time.Hour), Accuracy: .999}
	limits := Limits{Shortest: 10 * ms, Longest: 400 * ms, Detection: 500 * ms}
	one := Source{Group: "default", Term: 3}

	fresh := m.Tune(Tuning{}, ask, limits)
	require.Equal(t, Tuning{Quality: fresh.Quality, Period: 100 * ms, Detection: time.Second}, fresh)
	_, err := fresh.Promise(ask, limits, 100*ms)
	require.EqualError(t, err, "qos: the link is not known before 128 heartbeats have come")
	_, err = fresh.Promise(ask, limits, 0)
	require.EqualError(t, err, "qos: the leader runs an older version, which says no period")

	m.RoundTrip(2 * ms)
	beats(&m, one, 1, 400, ms, 3*ms)
	quiet := m.Tune(fresh, ask, limits)
	require.True(t, quiet.Known)
	want, err := Configure(ask, quiet.Quality, limits)
	require.NoError(t, err)
	require.Equal(t, want.Period, quiet.Period)
	plan, err := quiet.Promise(ask, limits, quiet.Period)
	require.NoError(t, err)
	require.GreaterOrEqual(t, plan.Recurrence, time.Hour)
	require.Equal(t, quiet, m.Tune(quiet, ask, limits), "nothing has moved")

	beats(&m, one, 401, 400, ms, 150*ms)
	worse := m.Tune(quiet, ask, limits)
	require.Less(t, worse.Period, quiet.Period)
	_, err = worse.Promise(ask, limits, quiet.Period)
	require.ErrorContains(t, err, "qos: the leader sends every ")
	_, err = worse.Promise(ask, limits, 2*time.Second)
	require.ErrorContains(t, err, "so no crash is detected within ")

	strict := QoS{Detect: 200 * ms, Mistakes: Recurrence(365 * 24 * time.Hour), Accuracy: .99999999}
	tight := Limits{Shortest: 50 * ms, Longest: 100 * ms, Detection: 100 * ms}
	hopeless := m.Tune(Tuning{}, strict, tight)
	require.GreaterOrEqual(t, hopeless.Period, tight.Shortest)
	require.LessOrEqual(t, hopeless.Period, tight.Longest)
	_, err = hopeless.Promise(strict, tight, hopeless.Period)
	var none *Infeasible
	require.ErrorAs(t, err, &none)
}

// TestAMonitorMeasuresOneElectionAtATime: each election numbers its heartbeats by itself, and two
// together would look like losses.
func TestAMonitorMeasuresOneElectionAtATime(t *testing.T) {
	var m Monitor
	one, other := Source{Group: "a", Term: 1}, Source{Group: "b", Term: 1}
	for i := range 300 {
		beats(&m, one, i+1, 1, ms)
		m.Observe(time.Duration(i+1)*100*ms+2*ms, other,
			Heartbeat{Number: uint64(7 * i), Scheduled: time.Duration(i+1) * 100 * ms, Period: 100 * ms})
	}
	m.Observe(time.Hour, one, Heartbeat{Number: 9}) // of an older build
	q, known := m.link.Quality()
	require.True(t, known)
	require.Less(t, q.Loss, .01)

	later := beats(&m, other, 1000, 200, 40*ms) // the first has stayed away by then
	require.Equal(t, other, m.source)
	m.LinkUp()
	require.Equal(t, Source{}, m.source)
	beats(&m, one, int(later/(100*ms))+1, 1, ms)
	require.Equal(t, one, m.source, "at once, on a new link")
}

// TestAMonitorSurvivesARestartOfTheLeader: another process counts from 1 on another clock.
func TestAMonitorSurvivesARestartOfTheLeader(t *testing.T) {
	for _, newLink := range []bool{false, true} {
		var m Monitor
		beats(&m, Source{Group: "a", Term: 1}, 1, 400, ms)
		before, _ := m.link.Quality()
		if newLink {
			m.LinkUp()
		}
		for n := range 200 {
			sent := time.Duration(n) * 100 * ms
			m.Observe(time.Hour+sent, Source{Group: "a", Term: 2},
				Heartbeat{Number: uint64(n) + 1, Scheduled: sent, Period: 100 * ms})
		}
		after, _ := m.link.Quality()
		require.Equal(t, before.Deviation, after.Deviation)
		require.Equal(t, 598.0, m.link.variance.n, "all count but the first of each process")
	}
}

// TestAMonitorForgivesTheTimeBetweenLinks: heartbeats that a leader sent while there was no link do
// not count as lost.
func TestAMonitorForgivesTheTimeBetweenLinks(t *testing.T) {
	var m Monitor
	one := Source{Group: "a", Term: 1}
	beats(&m, one, 1, 400, ms)
	m.LinkUp()
	beats(&m, one, 500, 400, ms)
	q, _ := m.link.Quality()
	require.Less(t, q.Loss, .001)
}

// TestADetectionIsNeverShorterThanItsLimit, however long the delay is.
func TestADetectionIsNeverShorterThanItsLimit(t *testing.T) {
	var m Monitor
	m.RoundTrip(300 * ms)
	ask := QoS{Detect: 600 * ms, Mistakes: Recurrence(time.Hour), Accuracy: .999}
	tuning := m.Tune(Tuning{}, ask, Limits{Shortest: 10 * ms, Longest: 200 * ms, Detection: 500 * ms})
	require.Equal(t, 500*ms, tuning.Detection)
}
