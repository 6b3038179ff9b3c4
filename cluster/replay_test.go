package cluster_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// playSeeds plays a random schedule in virtual time for each of several seeds, or for the
// one of BMQELECT_SEED. It plays each seed twice and compares what happened: a seed that a
// failed test prints is to show the failure again. The runtime alone draws what comes first
// of two things at one moment, so most histories are equal; if anything drew from another
// source, hardly any would be.
func playSeeds(
	t *testing.T, count int, play func(c *seededCluster), options ...clustertest.Option,
) {
	if !raceDetector { // it lets goroutines run in random order in any case
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	seeds, err := testhook.Seeds(count)
	require.NoError(t, err)
	equal := 0
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("run it again: %s=%d go test -run '%s' ./cluster", testhook.SeedVariable, seed,
						t.Name())
				}
			}()
			one := playSeed(t, seed, play, options)
			if raceDetector {
				return
			}
			two := playSeed(t, seed, play, options)
			at := 0
			for at < min(len(one), len(two)) && one[at] == two[at] {
				at++
			}
			if at == len(one) && at == len(two) {
				equal++
			} else {
				t.Logf("the histories differ:\n%q\n%q", one[at:min(at+1, len(one))],
					two[at:min(at+1, len(two))])
			}
		})
	}
	if len(seeds) == count && !raceDetector {
		require.GreaterOrEqual(t, 2*equal, count, "two runs of one seed differ too often")
	}
}

// playSeed plays a schedule once, and returns what happened.
func playSeed(
	t *testing.T, seed uint64, play func(c *seededCluster), options []clustertest.Option,
) (history []string) {
	t.Setenv(testhook.SeedVariable, strconv.FormatUint(seed, 10)) // of what the nodes draw
	s := &seededCluster{dice: testhook.NewDice(seed, "schedule"), seed: seed}
	clocks, useClocks := leapingClocks(three)
	s.clocks = clocks
	// Packets of different nodes do not meet at one moment.
	delays := clustertest.Network(func(net *memnet.Network) {
		if !raceDetector { // for which they are to meet
			net.Delay(testhook.Delays(seed))
		}
	})
	withCluster(t, three, func(_ *testing.T, c *testCluster) {
		s.testCluster = c
		play(s)
	}, append(options, useClocks, delays)...)
	return s.history
}

// seededCluster is a cluster in which all that is random follows from the seed.
type seededCluster struct {
	*testCluster
	seed    uint64
	dice    *testhook.Dice
	clocks  map[cluster.NodeID]*leaping
	subs    []*cluster.Subscription // by voter
	history []string                // what the nodes did, one node after the other
}

// record keeps the events of the nodes for the history.
func (c *seededCluster) record() {
	for _, id := range three {
		c.subs = append(c.subs, c.Node(id).Subscribe(10_000))
	}
}

// endRecord ends the history: what follows is not to be compared.
func (c *seededCluster) endRecord() {
	for i, sub := range c.subs {
		sub.Close()
		for e := range sub.Events() {
			c.history = append(c.history, fmt.Sprintf("%s %s %s", three[i], e.Time.Format(time.StampMicro),
				e.Transition))
		}
	}
}
