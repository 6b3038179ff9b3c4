package replay

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
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/hashicorp"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/kraft"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/kubernetes"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/mongodb"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/multipaxos"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/omega"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ring"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/vr"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/zookeeper"
)

// Algorithms are all that can play, this project's own first.
func Algorithms() []algorithm.Algorithm {
	return []algorithm.Algorithm{
		ours.Elector, ours.WithoutScouting, blazingmq.Elector, blazingmq.WithoutScouting,
		gmt.GMT, bully.Bully, bully.Strict, bully.UUID, ring.Ring, ring.List,
		raft.Basic, raft.Etcd, raft.WithPreVote, raft.WithCheckQuorum, raft.WithLease, raft.Fortified,
		hashicorp.Raft, kraft.KRaft, mongodb.ReplicaSet,
		omega.ID, omega.LC, omega.L, ble.BLE, vr.VR, multipaxos.MultiPaxos,
		zookeeper.ZooKeeper, etcdlease.EtcdLease, kubernetes.Kubernetes, kubernetes.Release,
	}
}

// AlgorithmNames are those of all algorithms.
func AlgorithmNames() (names []string) {
	for _, a := range Algorithms() {
		names = append(names, a.Name)
	}
	return names
}

// SelectAlgorithms returns the algorithms of those names, in their order. The error is about the
// first that there is not, and lists the names.
func SelectAlgorithms(names ...string) (chosen []algorithm.Algorithm, err error) {
	known := AlgorithmNames()
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, fmt.Errorf("%q is no algorithm, but these are: %s", name,
				strings.Join(known, ", "))
		}
		chosen = append(chosen, Algorithms()[i])
	}
	return chosen, nil
}
