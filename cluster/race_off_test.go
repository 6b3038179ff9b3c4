//go:build !race

package cluster

const manyElections = 100
