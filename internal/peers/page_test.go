package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tries are trials in which the last survivor learns of the new leader 1 ms after the first.
func tries(ms ...int) (all []trial) {
	for _, n := range ms {
		took := time.Duration(n) * time.Millisecond
		all = append(all, trial{first: took, last: took + time.Millisecond})
	}
	return all
}

func TestPageSaysWhereOursIsWorse(t *testing.T) {
	raft := tries(100, 100, 300)
	raft[0].claimed, raft[1].overlap = true, 2*time.Millisecond
	r := result{
		plan: plan{trials: 3, load: time.Minute},
		values: values{
			flush: 90 * time.Microsecond,
			grown: []time.Duration{20 * time.Millisecond, 30 * time.Millisecond},
			written: []written{
				{system: system{name: own}, one: speed{times(tries(1, 1, 2), first), 900},
					many: speed{times(tries(5, 5, 9), first), 20_000}},
				{system: system{name: "etcd"}, one: speed{times(tries(2, 2, 2), first), 450},
					many: speed{times(tries(4, 4, 9), first), 25_000}},
			},
			rest: costs{cpu: 1, wakes: 300, memory: 20}, had: costs{cpu: 1, wakes: 310, memory: 22},
		},
		outcomes: []outcome{
			{system: system{name: own}, trials: map[string][]trial{"crash": tries(5, 10, 20),
				"hang": tries(50, 60, 70), "handover": tries(2, 2, 2), "cold start": tries(500)},
				changes: 2},
			{system: system{name: "raft", nodes: 5, heartbeat: 150 * time.Millisecond},
				trials: map[string][]trial{"crash": raft, "hang": raft, "handover": raft,
					"cold start": tries(100)},
				failed:  map[string]int{"handover": 4},
				costs:   costs{cpu: 0.5, wakes: 30, memory: 30, traffic: true, bytes: 1024, packets: 4},
				equal:   costs{cpu: 0.25, wakes: 10, memory: 20, traffic: true, bytes: 2048, packets: 2},
				changes: 1},
			{system: system{name: "etcd"}, err: errors.New("no disk")},
		},
		profiles: []profile{{system{kind: "lan", heartbeat: 15 * time.Millisecond},
			costs{cpu: 1, most: 2, wakes: 300, memory: 20, traffic: true, bytes: 2048, packets: 3}}},
	}
	page := r.page()
	for _, row := range []string{
		"| | bmqelect| raft| etcd|",
		"|crash, first| 10/20/20 ms| 10/15/15| -|",
		"|hang, last| 61/71/71 ms| 1.7/4.2/4.2| -|",
		"|cold start, first| 500/500/500 ms| **0.2/0.2/0.2**| -|",
		"|woken claims| 0/3| 1/3| -|",
		"|overlap| 0/3| 1/3, 2.0 ms| -|",
		"|load| 2| **1**| -|",
		"|raft| 5| 150ms| 0.25% x2.0| **2.0 x0.5**| 2.0 x2.0| 10 x3.0| 20MiB x1.5|",
		"|lan| 15ms| 2.0%| 1.0%| 2.0| 3.0| 300| 20MiB|",
		"- raft: cold start, load, KiB/s",
		"|one after the other| 1.0/2.0/2.0 ms| 2.0/1.0/1.0|", "|one after the other, in a second| 900| x0.5|",
		"|100 at a time| 5.0/9.0/9.0 ms| **0.8/1.0/1.0**|",
		"|100 at a time, in a second| 20000| **x1.2**|",
		"takes 0.09 ms.", "|lan| 1.0% x1.0| -| -| 300 x1.0| 20MiB x1.1|",
		"raft: handover failed 4 times.", "etcd is incomplete: no disk",
	} {
		require.Contains(t, page, row+"\n")
	}
	require.NotContains(t, page, "{")
}

func TestOnePercentileIsEnoughToLose(t *testing.T) {
	ours, theirs := times(tries(10, 20, 40), first), times(tries(5, 40, 400), first)
	require.Equal(t, cell{"2.0/10/10", false}, ratios(theirs, ours))
	theirs[1] = 8 * time.Millisecond
	require.Equal(t, cell{"0.4/10/10", true}, ratios(theirs, ours))
}

func TestPageIsShort(t *testing.T) {
	r := result{plan: plan{load: time.Minute}}
	for _, s := range profiles() {
		r.profiles = append(r.profiles, profile{s, costs{1, 1, 1, 1, true, 1, 1}})
	}
	for i, s := range systems { // ours is worse than each in all
		n := 1000 - 100*i
		all := map[string][]trial{}
		for _, f := range faults {
			all[f.name] = tries(n, n, n)
		}
		all["handover"][0].overlap = time.Duration(n)
		r.outcomes = append(r.outcomes, outcome{system: s, trials: all, changes: n,
			costs: costs{1, 1, 1, 1, true, 1, 1}, equal: costs{2, 2, 2, 2, true, 2, 2}})
	}
	require.LessOrEqual(t, len(strings.Fields(r.page())), 550)
}

func TestChoose(t *testing.T) {
	all, err := choose(nil)
	require.NoError(t, err)
	require.Equal(t, systems, all)
	require.True(t, plan{systems: all, trials: enough}.full())
	some, err := choose([]string{"etcd"})
	require.NoError(t, err)
	require.Equal(t, []system{systems[0], systems[4]}, some, "ours is what others are compared to")
	require.False(t, plan{systems: some, trials: enough}.full())
	_, err = choose([]string{"etcd", "zookeeper"})
	require.EqualError(t, err, `no system "zookeeper"; there are bmqelect, raft, raft-50ms, `+
		"raft-5ms, etcd, etcd-session")
}

// Whatever is measured, the sections that somebody wrote stay.
func TestARenewedPageKeepsItsOtherSections(t *testing.T) {
	const old = "# All\n\n" + valuesTitle + "\n\n1\n\n## Many\n\n2\n"
	require.Equal(t, "# New\n\n## Many\n\n2\n", renew(old, "# New\n", false))
	require.Equal(t, "# All\n\n"+valuesTitle+"\n\n3\n\n## Many\n\n2\n",
		renew(old, valuesTitle+"\n\n3\n", true))
}
