// Package ours is a node of this repository's elector, embedded as users embed it.
package ours

import (
	"context"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/health"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/peers/node"
)

type member struct {
	*cluster.Node
	places []*cluster.Election
	opened time.Duration // opening them took
}

// Start starts a voter. The spec's kind is a profile, and its period, if any, the
// heartbeat period to which all timers of the profile are scaled.
func Start(spec node.Spec, saw func(leader string)) (node.Member, error) {
	timing, ok := elector.Profile(spec.Kind)
	if !ok {
		return nil, fmt.Errorf("no profile %q", spec.Kind)
	}
	cfg := cluster.Config{
		Node: cluster.NodeID(spec.ID()), DataDir: spec.Dir,
		GossipAddr: spec.Addr(spec.Self, 0), MeshAddr: spec.Addr(spec.Self, 1),
		Election: cluster.ElectionConfig{Timing: scaled(timing, spec.Period)},
	}
	if spec.TLSDir != "" {
		cfg.TLS = cluster.TLSDir(spec.TLSDir)
	} else {
		cfg.Insecure = spec.Hosts != nil // in a network of the nodes' own
	}
	if spec.Probes {
		cfg.Health.Probes = []health.Probe{
			health.Disk(spec.Dir), health.URL("http://" + spec.Work.Health),
		}
	}
	for i := range spec.Nodes {
		cfg.Voters = append(cfg.Voters, cluster.NodeID(node.Name(i)))
		cfg.Join = append(cfg.Join, spec.Addr(i, 0))
	}
	cfg.Election.NotCandidate = spec.Values > 0 && spec.Self > 0
	n, err := cluster.Start(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	m, began := member{Node: n, places: []*cluster.Election{n.Default()}}, time.Now()
	for len(m.places) < max(spec.Values, spec.Elections) {
		e, err := n.Election(fmt.Sprintf("place-%d", len(m.places)), cfg.Election)
		if err != nil {
			return nil, err
		}
		m.places = append(m.places, e)
	}
	m.opened = time.Since(began)
	go func() {
		for leader := range n.Default().Observe(context.Background()) {
			saw(string(leader.Node))
		}
	}()
	return m, nil
}

// scaled returns the same timers for another heartbeat period; 0 leaves them.
func scaled(t elector.Timing, period time.Duration) elector.Timing {
	if period == 0 {
		return t
	}
	scale := float64(period) / float64(t.HeartbeatBroadcast)
	for _, d := range []*time.Duration{&t.InitialWait, &t.MinRandomWait, &t.MaxRandomWait,
		&t.ScoutingResult, &t.ElectionResult, &t.HeartbeatBroadcast, &t.Lease} {
		*d = time.Duration(float64(*d) * scale)
	}
	return t
}

func (m member) Leads() bool { return m.IsLeader() }

func (m member) Sum() node.Sums {
	stats := m.StatsOf(cluster.Selection{Few: 1})
	return node.Sums{
		Led: stats.Sums.Leading, Leaderless: stats.Sums.WithoutLeader, Opened: m.opened,
		Bounds: stats.Leaderless.Bounds, Gaps: stats.Leaderless.Counts,
	}
}

func (m member) Write(ctx context.Context, place int, value []byte) error {
	_, err := m.places[place].Publish(ctx, value, cluster.PublishOptions{})
	return err
}

func (m member) Grow(ctx context.Context, index int) error {
	return m.AddVoter(ctx, cluster.NodeID(node.Name(index)), cluster.VoterOptions{})
}

func (m member) HandOver() error {
	return m.Default().Transfer(context.Background(), "")
}
