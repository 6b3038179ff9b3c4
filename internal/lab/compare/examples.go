package compare

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// example is a scenario that breaks an algorithm.
type example struct {
	algorithm, scenario, why string
	cost                     string // the metric of which the page says what it costs
}

const (
	costsDemotions = "demotions_per_hour"
	costsOverlap   = "overlap_s"
	costsLeader    = "recovery_s"
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
	{"raft-lease", "constrained", "an old log is not elected", costsLeader},
	{"store-liveness", "constrained", "an old log is not elected", costsLeader},
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
	v, m, err := e.of(e.algorithm, repository)
	cost := m.Title + " " + report.Brief(v)
	if err == nil && v == 0 {
		err = fmt.Errorf("replay --algorithm %s %s does not show it: %s", e.algorithm, e.scenario, cost)
	}
	if m.per == 0 {
		cost += " " + m.Unit
	}
	return fmt.Sprintf("%-26s %-30s %s: %s", e.algorithm, e.scenario, e.why, cost), err
}

// of is what the scenario costs an algorithm.
func (e example) of(name, repository string) (v float64, m Metric, err error) {
	m = Metrics[slices.IndexFunc(Metrics, func(m Metric) bool { return m.Name == e.cost })]
	algorithms, err := replay.SelectAlgorithms(name)
	if err != nil {
		return 0, m, err
	}
	sc, err := scenario.Load(filepath.Join(repository, "testdata/scenarios", e.scenario+".yaml"))
	if err != nil {
		return 0, m, err
	}
	run, err := replay.Simulate(sc, replay.Options{Seed: sc.Seed, Algorithm: algorithms[0]})
	if err != nil {
		return 0, m, err
	}
	return m.of(Measure(run.History, Fault{From: 0, To: run.History.Duration})), m, nil
}
