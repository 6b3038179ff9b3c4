package compare

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// rowOf makes a row of runs of 100 s; each had no leader for the given time.
func rowOf(topology, algorithm string, leaderless ...time.Duration) Row {
	var runs []Figures
	for _, d := range leaderless {
		runs = append(runs, Figures{Measured: 100 * s, Recovery: d / 2, Bytes: 3000,
			Summary: history.Summary{
				Leaderless: d, Elections: 2, Demotions: int(d / (10 * s)), Messages: 300,
			}})
	}
	r := Row{Topology: topology, Network: "1 ms", Algorithm: algorithm}
	r.Fill(runs)
	return r
}

func TestARowIsOfAllRuns(t *testing.T) {
	r := rowOf("chain", "raft", 0, 10*s)
	require.Equal(t, 2, r.Seeds)
	mean := func(metric string) float64 { return r.Values[metric].Mean }
	require.InDelta(t, 95, mean("availability"), 1e-9)
	require.InDelta(t, 90, r.Values["availability"].Low, 1e-9)
	require.InDelta(t, 100, r.Values["availability"].High, 1e-9)
	require.InDelta(t, 2.5, mean("recovery_s"), 1e-9)
	require.InDelta(t, 18, mean("demotions_per_hour"), 1e-9)
	require.InDelta(t, 2, mean("elections"), 1e-9)
	require.InDelta(t, 3, mean("messages_per_s"), 1e-9)
	require.InDelta(t, 30, mean("bytes_per_s"), 1e-9)
}

func TestTheFileSaysWhatTheRowsSay(t *testing.T) {
	rows := []Row{rowOf("chain", "raft", 0, 10*s), rowOf("whole", "raft", 0, 0)}
	var file bytes.Buffer
	require.NoError(t, Write(&file, rows))
	text := file.String()
	read, err := Read(&file)
	require.NoError(t, err)
	require.Equal(t, rows, read)
	for wrong, want := range map[string]string{
		"topology,network\n":                       "these are not the columns",
		strings.Replace(text, "95.0000", "x", 1):   "line 2: ",
		strings.Replace(text, ",95.0000", "", 1):   "wrong number of fields",
		strings.Replace(text, "elections", "x", 1): "these are not the columns",
	} {
		_, err := Read(strings.NewReader(wrong))
		require.ErrorContains(t, err, want)
	}
}

func TestALossNeedsAReason(t *testing.T) {
	defer func(was map[string]string) { reasons = was }(reasons)
	good, bad := []time.Duration{s, 2 * s, s, 2 * s}, []time.Duration{8 * s, 9 * s, 8 * s, 9 * s}
	lost := []Row{rowOf("chain", "bmqelect", bad...), rowOf("chain", "raft", good...),
		rowOf("chain", "gmt", bad...), rowOf("whole", "raft", s)}
	won := []Row{rowOf("chain", "bmqelect", good...), rowOf("chain", "raft", bad...)}

	reasons = map[string]string{}
	losses, err := Losses(won)
	require.NoError(t, err)
	require.Empty(t, losses)
	_, err = Losses(lost)
	require.ErrorContains(t, err, "say among reasons why others are better in chain")

	reasons = map[string]string{"chain": "so it is"}
	_, err = Losses(won)
	require.ErrorContains(t, err, "nobody is better there")
	losses, err = Losses(lost)
	require.NoError(t, err)
	require.Len(t, losses, 1)
	require.Equal(t, "so it is", losses[0].Why)
	require.Len(t, losses[0].Figures, 2, "availability and recovery")
	require.Equal(t, "raft", losses[0].Figures[0].Rival)
	require.Equal(t, "availability", losses[0].Figures[1].Metric.Name)
	require.InDelta(t, 91.5, losses[0].Figures[1].Ours.Mean, 1e-9)
	require.InDelta(t, 98.5, losses[0].Figures[1].Best, 1e-9)

	for _, r := range lost {
		e := r.Values["demotions_per_hour"]
		if r.Algorithm == "bmqelect" {
			e.Mean = 1
		}
		r.Values["demotions_per_hour"] = e
	}
	reasons = map[string]string{"chain": "so it is", "demotions_per_hour": "by loss"}
	losses, err = Losses(lost)
	require.NoError(t, err)
	require.Equal(t, "by loss. so it is", losses[0].Why, "that of a metric goes for all topologies")
	_, err = Losses(won[1:])
	require.ErrorContains(t, err, "take chain from reasons")
}

func withOwn(r Row) Row {
	r.Own = true
	return r
}

// A difference that chance may explain is no loss. A broken promise is: what ours must never do is
// a loss if it happened once, whatever the others do. The rival of a loss is the best of those
// that are better by more than chance, even if another has a better mean and a wide interval.
func TestALossIsBeyondChance(t *testing.T) {
	row := func(name string, e Estimate) Row {
		return Row{Algorithm: name, Values: map[string]Estimate{"m": e}}
	}
	low, high, wide := Estimate{3, 2, 4}, Estimate{5, 4, 6}, Estimate{3, 2, 5}
	none, once := Estimate{0, 0, 3}, Estimate{1, 0, 3}
	keeps, more := row("keeps", none), row("more", Estimate{2, 1, 3})
	for name, c := range map[string]struct {
		ours   Estimate
		rivals []Row
		metric Metric // Most and Never
		lost   bool
		best   string
	}{
		"by chance":        {ours: high, rivals: []Row{row("r", Estimate{4, 3, 5})}},
		"beyond chance":    {ours: high, rivals: []Row{row("r", low)}, lost: true, best: "r"},
		"a wide interval":  {ours: high, rivals: []Row{row("r", wide)}},
		"other timers":     {ours: high, rivals: []Row{withOwn(row("r", low))}},
		"ours is better":   {ours: low, rivals: []Row{row("r", high)}},
		"the most is best": {low, []Row{row("r", high)}, Metric{Most: true}, true, "r"},
		"ours is wide":     {wide, []Row{row("r", high)}, Metric{Most: true}, false, ""},
		"both are equal":   {ours: Estimate{1, 1, 1}, rivals: []Row{row("r", Estimate{1, 1, 1})}},
		"to the best of many": {ours: Estimate{5, 4.9, 5.1}, lost: true, best: "best", rivals: []Row{
			row("good", Estimate{4.5, 4.4, 4.6}), row("lucky", Estimate{2, 0, 9}),
			row("best", Estimate{3, 2.9, 3.1}), row("better", Estimate{4, 3.9, 4.1}),
		}},
		"once":                      {ours: once, rivals: []Row{keeps, more}},
		"a broken promise":          {once, []Row{keeps, more}, Metric{Never: true}, true, "keeps"},
		"nobody keeps the promise":  {once, []Row{more}, Metric{Never: true}, true, ""},
		"a promise that ours keeps": {none, []Row{more}, Metric{Never: true}, false, ""},
	} {
		own := row("ours", c.ours)
		c.metric.Name, c.metric.Held = "m", true
		best, lost := own.beaten(append(c.rivals, own), c.metric)
		require.Equal(t, c.lost, lost, name)
		require.Equal(t, c.best, best.Algorithm, name)
		c.metric.Held = false
		_, lost = own.beaten(c.rivals, c.metric)
		require.False(t, lost, name)
	}
}
