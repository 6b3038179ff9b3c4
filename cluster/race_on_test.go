//go:build race

package cluster

// manyElections are fewer under the race detector: its runtime dies of the many
// millions of synchronizations of a long virtual time.
const manyElections = 20
