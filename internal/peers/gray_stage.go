package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/internal/peers/node"
)

// stage is where one system meets one failure: hosts with a node on each. One goroutine uses it.
type stage struct {
	ctx     context.Context
	cluster *cluster
	hosts   []*host
	bridge  string // "" without a network of their own
	ca      *authority
	probes  bool
	first   int // the leader when the failure began
}

// played is what happened.
type played struct {
	lasts time.Duration
	gap   time.Duration // the longest time without an item of work that was done
	never bool          // and it was not over at the end
	share float64       // of the work, that was done
	twice time.Duration // in which two nodes worked
	moves int           // how often a node came to lead
	ended int           // processes that have ended
	// flushes are the median times of a flush in items of work, before and during the failure.
	flushes [2]time.Duration
}

const (
	// warmUp is how many items of work are done before a failure begins.
	warmUp = 30
	// brief is a time without work that nobody notices.
	brief = 5 * node.WorkPeriod
)

// play lets a column's system meet a failure for some time, on a lane of its own.
func (f failure) play(ctx context.Context, c column, dir string, lane int, lasts time.Duration) (
	p played, err error) {
	s := &stage{ctx: ctx, cluster: prepare(c.system, dir, lane), probes: c.probes}
	defer s.leave()
	if err := s.build(f.needs); err != nil {
		return p, err
	}
	if err := s.start(ctx); err != nil {
		return p, err
	}
	before := s.cluster.worked
	s.first = s.cluster.leader(s.cluster.running())
	if s.first < 0 {
		return p, fmt.Errorf("%s lost its leader before the failure %q", c.title, f.name)
	}
	s.cluster.mortal = true
	end, err := f.begin(s)
	if end != nil {
		defer end()
	}
	if err != nil {
		return p, err
	}
	s.cluster.worked, s.cluster.changes, s.cluster.ended = nil, 0, 0
	began := node.Now()
	if err := s.cluster.pause(ctx, lasts); err != nil {
		return p, err
	}
	p = judge(s.cluster.worked, began, node.Now())
	p.moves, p.ended = s.cluster.changes, s.cluster.ended
	p.flushes = [2]time.Duration{flushOf(before), flushOf(s.cluster.worked)}
	return p, nil
}

// start starts the nodes, and waits until one leads and its application works.
func (s *stage) start(ctx context.Context) error {
	c := s.cluster
	c.equip = s.equip
	err := c.startAll()
	if err == nil {
		err = c.settle(ctx)
	}
	if err == nil {
		err = c.await(ctx, "work", func() bool { return len(c.worked) >= warmUp })
	}
	if err == nil {
		err = c.settle(ctx)
	}
	return err
}

// judge says what work was done between two times.
func judge(worked []node.Report, began, ended int64) (p played) {
	last := began
	ends := []int64{}
	for _, r := range worked {
		if r.To > began && r.To <= ended {
			ends = append(ends, r.To)
		}
	}
	slices.Sort(ends)
	for _, at := range ends {
		p.gap, last = max(p.gap, time.Duration(at-last)), at
	}
	lasts, rest := time.Duration(ended-began), time.Duration(ended-last)
	p.lasts, p.gap = lasts, max(p.gap, rest)
	p.never = rest > min(lasts/4, 10*time.Second)
	p.share = float64(len(ends)) * float64(node.WorkPeriod) / float64(lasts)
	p.twice = overlap(spells(worked))
	return p
}

// spells are the times in which each node worked without a pause.
func spells(worked []node.Report) (nodes [][]span) {
	places := map[string]int{}
	for _, r := range worked { // those of a node are in order
		place, known := places[r.Text]
		if !known {
			place, nodes = len(nodes), append(nodes, nil)
			places[r.Text] = place
		}
		all := nodes[place]
		if n := len(all); n > 0 && r.From-all[n-1].to < int64(2*node.WorkPeriod) {
			all[n-1].to = r.To
		} else {
			nodes[place] = append(all, span{r.From, r.To})
		}
	}
	return nodes
}

func flushOf(worked []node.Report) time.Duration {
	var took []time.Duration
	for _, r := range worked {
		took = append(took, r.Took...)
	}
	return quantile(took, 0.5)
}

func (s *stage) leader() *host { return s.hosts[s.first] }

// followers are the others.
func (s *stage) followers() []*host {
	return slices.Delete(slices.Clone(s.hosts), s.first, s.first+1)
}

// build makes the hosts.
func (s *stage) build(needs need) error {
	if err := os.MkdirAll(s.cluster.dir, 0o700); err != nil {
		return err
	}
	if privileged {
		if err := s.network(); err != nil {
			return err
		}
	}
	if needs&needsTLS != 0 {
		var err error
		if s.ca, err = newAuthority(); err != nil {
			return err
		}
	}
	for i := range s.cluster.nodes {
		h := &host{index: i, dir: filepath.Join(s.cluster.dir, node.Name(i))}
		s.hosts = append(s.hosts, h)
		if err := h.build(s, needs); err != nil {
			return err
		}
	}
	return nil
}

// leave ends all processes and takes everything away.
func (s *stage) leave() {
	s.cluster.close()
	for _, h := range s.hosts {
		h.leave()
	}
	if s.bridge != "" {
		_ = run("ip", "link", "del", s.bridge)
	}
	_ = os.RemoveAll(s.cluster.dir)
}

// equip completes the spec of a node for its host.
func (s *stage) equip(spec *node.Spec) (within []string, err error) {
	h := s.hosts[spec.Self]
	spec.Dir, spec.Probes = h.dir, s.probes
	if s.ca != nil {
		spec.TLSDir = h.tlsDir()
	}
	if s.bridge != "" {
		for _, h := range s.hosts {
			spec.Hosts = append(spec.Hosts, h.ip)
		}
		within = []string{"nsenter", "--net=/run/netns/" + h.ns}
	} else {
		h.ip = spec.Host
	}
	if h.group != nil {
		within = append(within, h.group.enter(h.dir+"-program")...)
	}
	// Beside the ports of the electors.
	spec.Work = &node.Work{Dependency: h.dependency, Health: spec.Addr(spec.Self, 2*spec.Nodes)}
	return within, nil
}
