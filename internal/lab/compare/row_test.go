package compare

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rowOf is a row of runs that were without a leader for so long, of 100 s each.
func rowOf(topology, algorithm string, leaderless ...time.Duration) Row {
	var runs []Figures
	for _, d := range leaderless {
		runs = append(runs, Figures{Measured: 100 * s, Leaderless: d, Recovery: d / 2, Elections: 2,
			Demotions: int(d / (10 * s)), Messages: 300})
	}
	r := Row{Topology: topology, Network: "1 ms", Algorithm: algorithm}
	r.Fill(runs, 10)
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
	require.InDelta(t, 91.5, losses[0].Figures[0].Ours.Mean, 1e-9)
	require.InDelta(t, 98.5, losses[0].Figures[0].Best, 1e-9)
}

// What chance may explain is no loss.
func TestALossIsBeyondChance(t *testing.T) {
	for _, c := range []struct {
		ours, rival Estimate
		most, lost  bool
	}{
		{Estimate{5, 4, 6}, Estimate{4, 3, 5}, false, false},
		{Estimate{5, 4, 6}, Estimate{3, 2, 4}, false, true},
		{Estimate{5, 4, 6}, Estimate{3, 2, 5}, false, false},
		{Estimate{3, 2, 4}, Estimate{5, 4, 6}, false, false},
		{Estimate{3, 2, 4}, Estimate{5, 4, 6}, true, true},
		{Estimate{3, 2, 5}, Estimate{5, 4, 6}, true, false},
		{Estimate{1, 1, 1}, Estimate{1, 1, 1}, false, false},
	} {
		m := Metric{Name: "m", Held: true, Most: c.most}
		row := func(e Estimate) Row { return Row{Values: map[string]Estimate{"m": e}} }
		_, lost := row(c.ours).beaten([]Row{row(c.ours), row(c.rival)}, m)
		require.Equal(t, c.lost, lost, c)
		m.Held = false
		_, lost = row(c.ours).beaten([]Row{row(c.rival)}, m)
		require.False(t, lost)
	}
}

// A rival with the best mean whose interval is wide does not hide another who is better by more
// than chance; of those that are, the best counts.
func TestALossIsToTheBestBeyondChance(t *testing.T) {
	m := Metric{Name: "m", Held: true}
	row := func(name string, e Estimate) Row {
		return Row{Algorithm: name, Values: map[string]Estimate{"m": e}}
	}
	best, lost := row("ours", Estimate{5, 4.9, 5.1}).beaten([]Row{
		row("good", Estimate{4.5, 4.4, 4.6}), row("lucky", Estimate{2, 0, 9}),
		row("best", Estimate{3, 2.9, 3.1}), row("better", Estimate{4, 3.9, 4.1}),
	}, m)
	require.True(t, lost)
	require.Equal(t, "best", best.Algorithm)
}

// What ours promises never to do is a loss if it happened once, whatever the others do.
func TestALossOfAPromiseMayBeChance(t *testing.T) {
	row := func(name string, e Estimate) Row {
		return Row{Algorithm: name, Values: map[string]Estimate{"m": e}}
	}
	once, none := row("ours", Estimate{1, 0, 3}), row("none", Estimate{0, 0, 3})
	for name, c := range map[string]struct {
		own   Row
		never bool
		rival string
		lost  bool
	}{
		"chance":          {once, false, "", false},
		"a promise":       {once, true, "none", true},
		"a promise, kept": {none, true, "", false},
	} {
		m := Metric{Name: "m", Held: true, Never: c.never}
		best, lost := c.own.beaten([]Row{once, none, row("more", Estimate{2, 1, 3})}, m)
		require.Equal(t, c.lost, lost, name)
		require.Equal(t, c.rival, best.Algorithm, name)
		_, lost = c.own.beaten([]Row{row("more", Estimate{2, 1, 3})}, m)
		require.Equal(t, c.lost, lost, name)
	}
}
