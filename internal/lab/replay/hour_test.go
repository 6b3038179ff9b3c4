package replay

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// BenchmarkAnHour plays an hour without faults as bmqnode replay does, its history included, with
// every algorithm. On a quiet core five nodes may cost 0.1 s of ours, and 1 s of any other.
func BenchmarkAnHour(b *testing.B) {
	for _, a := range Algorithms() {
		for _, nodes := range []int{5, 32} {
			b.Run(fmt.Sprintf("%s/nodes=%d", a.Name, nodes), func(b *testing.B) {
				sc := quiet(nodes)
				b.ReportAllocs()
				for b.Loop() {
					run, err := Simulate(sc, Options{Seed: 1, Algorithm: a})
					require.NoError(b, err)
					require.Empty(b, append(run.History.Broken, run.History.Problems...))
				}
			})
		}
	}
}

// quiet is an hour of a cluster in which nothing happens.
func quiet(nodes int) *scenario.Scenario {
	sc := &scenario.Scenario{
		Name: "an-hour", Duration: time.Hour,
		Network:  scenario.Link{Delay: time.Millisecond, Jitter: 500 * time.Microsecond},
		Election: elector.Config{Timing: elector.Article()},
	}
	for i := range nodes {
		id := elector.NodeID(fmt.Sprintf("n%02d", i))
		sc.Nodes = append(sc.Nodes, scenario.Node{ID: id})
		sc.Election.Voters = append(sc.Election.Voters, id)
	}
	return sc
}
