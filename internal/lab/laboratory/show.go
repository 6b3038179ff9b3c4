package laboratory

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/compare"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// example is a scenario that breaks an algorithm.
type example struct {
	algorithm, scenario, why string
	cost                     cost
}

// cost is what the page says that an example costs.
type cost int

const (
	demotions cost = iota
	overlap
	leaderless
)

// examples are those of the page.
var examples = []example{
	{"bmqelect-without-scouting", "leader-ping-pong", "any higher term unseats", demotions},
	{"blazingmq", "minority-partition-with-leader", "no lease", overlap},
	{"blazingmq-without-scouting", "leader-ping-pong", "any higher term unseats", demotions},
	{"gmt", "minority-partition-with-leader", "no quorum", overlap},
	{"bully", "flapping-node", "rank unseats", demotions},
	{"bully-strict", "leader-ping-pong", "elections halt all", demotions},
	{"bully-uuid", "quorum-loss-hub", "no quorum", leaderless},
	{"ring", "flapping-node", "lost tokens", leaderless},
	{"ring-list", "quorum-loss-hub", "there is no ring", leaderless},
	{"raft", "chained", "any higher term unseats", demotions},
	{"raft-prevote", "quorum-loss-hub", "the hub hears the leader", leaderless},
	{"raft-checkquorum", "minority-partition-with-leader", "no lease", overlap},
	{"omega-id", "flapping-node", "rank unseats", demotions},
	{"omega-lc", "minority-partition-with-leader", "no quorum", overlap},
	{"omega-l", "leader-ping-pong", "a dead link", overlap},
	{"ble", "voter-crash-keeps-its-vote", "no quorum", overlap},
	{"zookeeper", "quorum-loss-hub", "only the hub sees the store", leaderless},
	{"etcd-lease", "quorum-loss-hub", "only the hub sees the store", leaderless},
	{"kubernetes", "slow-leader-long-pause", "a lease ends unseen", overlap},
}

// show plays the examples with the files' own seeds.
func show(repository string) (shown []report.Example, err error) {
	for _, e := range examples {
		algorithms, err := replay.SelectAlgorithms(e.algorithm)
		if err != nil {
			return nil, err
		}
		file := "testdata/scenarios/" + e.scenario + ".yaml"
		sc, err := scenario.Load(filepath.Join(repository, file))
		if err != nil {
			return nil, err
		}
		run, err := replay.Simulate(sc, replay.Options{Seed: sc.Seed, Algorithm: algorithms[0]})
		if err != nil {
			return nil, err
		}
		whole := compare.Fault{From: 0, To: run.History.Duration}
		f := compare.Measure(run.History, whole, 2*sc.Election.Timing.Inactivity())
		costs, there := e.cost.text(f)
		if !there {
			return nil, fmt.Errorf("replay --algorithm %s %s does not show it: %s",
				e.algorithm, file, costs)
		}
		shown = append(shown, report.Example{Algorithm: e.algorithm, Scenario: e.scenario, Why: e.why,
			Cost: costs})
	}
	return shown, nil
}

// text says what a run cost; there is false if that is nothing.
func (c cost) text(f compare.Figures) (text string, there bool) {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.3g s", d.Seconds()) }
	switch c {
	case demotions:
		return fmt.Sprintf("%d needless demotions", f.Demotions), f.Demotions > 0
	case overlap:
		return "two leaders for " + seconds(f.Overlap), f.Overlap > 0
	}
	return "no leader for " + seconds(f.Leaderless), f.Leaderless > 0
}
