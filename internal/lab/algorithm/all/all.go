// Package all lists the algorithms of the laboratory.
package all

import (
	"slices"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ble"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/etcdlease"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/kubernetes"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/zookeeper"
)

// Algorithms are all there are, this project's own first.
func Algorithms() []algorithm.Algorithm {
	return []algorithm.Algorithm{
		ours.Elector, ours.WithoutScouting,
		ble.BLE, zookeeper.ZooKeeper, etcdlease.EtcdLease, kubernetes.Kubernetes,
	}
}

// Names are those of all algorithms.
func Names() (names []string) {
	for _, a := range Algorithms() {
		names = append(names, a.Name)
	}
	return names
}

// Find returns the algorithm of a name; ok is false if there is none.
func Find(name string) (a algorithm.Algorithm, ok bool) {
	i := slices.Index(Names(), name)
	if i < 0 {
		return a, false
	}
	return Algorithms()[i], true
}
