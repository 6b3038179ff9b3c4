package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/peers/node"
	"github.com/bmqelect/bmqelect/internal/peers/ours"
)

func TestMain(m *testing.M) {
	if isNode() {
		node.Main(os.Args[2], ours.Start)
		return
	}
	os.Exit(m.Run())
}

// Three processes with timers that a busy machine keeps go through every kind of trial.
func TestEachTrialOnce(t *testing.T) {
	ours := system{own, "", "article", 100 * time.Millisecond, 3, 1, 100 * time.Millisecond, 0}
	p := plan{trials: 1, rest: 100 * time.Millisecond, load: 100 * time.Millisecond}
	o := outcome{system: ours}
	require.NoError(t, p.one(t.Context(), &o, t.TempDir()))
	require.Empty(t, o.failed)
	for _, f := range faults {
		require.Len(t, o.trials[f.name], 1)
		tried := o.trials[f.name][0]
		require.Positive(t, tried.first, f.name)
		require.GreaterOrEqual(t, tried.last, tried.first, f.name)
		require.Zero(t, tried.overlap, f.name)
		require.False(t, tried.claimed, f.name)
	}
	require.Positive(t, o.costs.cpu)
	require.Positive(t, o.costs.memory)
	require.Positive(t, o.costs.packets)
}

// A library that writes to the standard output of its node ends the node's reports.
func TestWhatIsNoReportIsTheEnd(t *testing.T) {
	events := make(chan event, 3)
	said := `{"Kind":"saw","From":5,"Text":"n1"}` + "\npanic: a library spoke\n"
	p := &process{}
	p.read(1, json.NewDecoder(strings.NewReader(said)), events)
	require.Equal(t, event{1, p, node.Report{Kind: node.Saw, From: 5, Text: "n1"}, false}, <-events)
	require.Equal(t, event{1, p, node.Report{}, true}, <-events)
	require.Empty(t, events)
}
