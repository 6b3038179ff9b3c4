package compare

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/replay"
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
	costsDemotions cost = iota
	costsOverlap
	costsLeader
)

// examples are those of the page.
var examples = []example{
	{"bmqelect-without-scouting", "leader-ping-pong", "any higher term unseats", costsDemotions},
	{"blazingmq", "minority-partition-with-leader", "no lease", costsOverlap},
	{"blazingmq-without-scouting", "leader-ping-pong", "any higher term unseats", costsDemotions},
	{"gmt", "minority-partition-with-leader", "no quorum", costsOverlap},
	{"bully", "flapping-node", "rank unseats", costsDemotions},
	{"bully-strict", "leader-ping-pong", "elections halt all", costsDemotions},
	{"bully-uuid", "leader-crash", "nobody succeeds the highest", costsLeader},
	{"ring", "flapping-node", "lost tokens", costsLeader},
	{"ring-list", "quorum-loss-hub", "there is no ring", costsLeader},
	{"raft", "chained", "any higher term unseats", costsDemotions},
	{"raft-etcd", "chained", "nobody tells the old leader", costsOverlap},
	{"raft-prevote", "quorum-loss-hub", "the hub hears the leader", costsLeader},
	{"raft-checkquorum", "minority-partition-with-leader", "no lease", costsOverlap},
	{"raft-lease", "graceful-stop", "nobody is told of a stop", costsLeader},
	{"store-liveness", "delay-beyond-the-timeouts", "support expires on its way", costsLeader},
	{"hashicorp-raft", "slow-leader-long-pause", "a lease ends unseen", costsOverlap},
	{"kraft", "old-leader-keeps-one-link", "it resigns after 1.5 time-outs", costsOverlap},
	{"mongodb", "takeover", "priority unseats", costsDemotions},
	{"omega-id", "flapping-node", "rank unseats", costsDemotions},
	{"omega-lc", "minority-partition-with-leader", "no quorum", costsOverlap},
	{"omega-l", "leader-ping-pong", "a dead link", costsOverlap},
	{"ble", "voter-crash-keeps-its-vote", "no quorum", costsOverlap},
	{"vr", "full-restart", "all have forgotten", costsLeader},
	{"multipaxos", "chained", "hearsay unseats", costsDemotions},
	{"zookeeper", "constrained", "the store has no leader", costsLeader},
	{"etcd-lease", "constrained", "the store has no leader", costsLeader},
	{"kubernetes", "slow-leader-long-pause", "a lease ends unseen", costsOverlap},
	{"kubernetes-release", "minority-partition-with-leader", "a release gets no answer", costsOverlap},
}

// play plays the example with the file's own seed, and returns its line of the page.
func (e example) play(repository string) (line string, err error) {
	algorithms, err := replay.SelectAlgorithms(e.algorithm)
	if err != nil {
		return "", err
	}
	file := "testdata/scenarios/" + e.scenario + ".yaml"
	sc, err := scenario.Load(filepath.Join(repository, file))
	if err != nil {
		return "", err
	}
	run, err := replay.Simulate(sc, replay.Options{Seed: sc.Seed, Algorithm: algorithms[0]})
	if err != nil {
		return "", err
	}
	whole := Fault{From: 0, To: run.History.Duration}
	costs, there := e.cost.text(Measure(run.History, whole))
	if !there {
		return "", fmt.Errorf("replay --algorithm %s %s does not show it: %s", e.algorithm, file, costs)
	}
	return fmt.Sprintf("%-26s %-30s %s: %s", e.algorithm, e.scenario, e.why, costs), nil
}

// text says what a run cost; there is false if that is nothing.
func (c cost) text(f Figures) (text string, there bool) {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.3g s", d.Seconds()) }
	switch c {
	case costsDemotions:
		return fmt.Sprintf("%d needless demotions", f.Demotions), f.Demotions > 0
	case costsOverlap:
		return "two leaders for " + seconds(f.Overlap), f.Overlap > 0
	}
	return "no leader for " + seconds(f.Leaderless), f.Leaderless > 0
}
