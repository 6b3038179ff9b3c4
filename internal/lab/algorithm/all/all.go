// Package all lists the algorithms of the laboratory.
package all

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/blazingmq"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ble"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/bully"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/etcdlease"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/gmt"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/kubernetes"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/omega"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ring"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/zookeeper"
)

// Algorithms are all there are, this project's own first.
func Algorithms() []algorithm.Algorithm {
	return []algorithm.Algorithm{
		ours.Elector, ours.WithoutScouting, blazingmq.Elector, blazingmq.WithoutScouting,
		gmt.GMT, bully.Bully, bully.Strict, bully.UUID, ring.Ring, ring.List,
		raft.Basic, raft.WithPreVote, raft.WithCheckQuorum, omega.ID, omega.LC, omega.L,
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

// Find returns the algorithm of a name. The error lists the names.
func Find(name string) (algorithm.Algorithm, error) {
	i := slices.Index(Names(), name)
	if i < 0 {
		return algorithm.Algorithm{}, fmt.Errorf("%q is no algorithm, but these are: %s", name,
			strings.Join(Names(), ", "))
	}
	return Algorithms()[i], nil
}
