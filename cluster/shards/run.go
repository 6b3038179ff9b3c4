package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
)

const (
	// look is how often the loads are compared.
	look = time.Second
	// maxMoves is how many shards a node hands over at a time. None is handed over while those before
	// are still on their way.
	maxMoves = 10
)

// Run works on the shards that this node leads, until ctx ends: then Work is told to stop and
// waited for, the shards are handed over, and Run returns nil. Otherwise its error says why the
// node or an election has ended, wraps cluster.ErrCampaigning if another Run has the same shards,
// or is a *cluster.PanicError of Work or Open, after all other Work has ended.
//
// The elections stay open afterwards, so that this node still votes for the shards of others, until
// the node is closed. Run may be called again. A Work that never returns keeps Run from returning,
// but not its shard from moving when the lease ends.
func Run(ctx context.Context, node *cluster.Node, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &runner{
		cfg: cfg, node: node, self: node.Status().Node, ctx: work,
		all: make([]shard, cfg.N), byGroup: make(map[string]int, cfg.N),
		starts: make(chan struct{}, cfg.MaxStarts), results: make(chan func() error, cfg.MaxStarts),
		shunned: map[cluster.NodeID]time.Time{},
		balance: hysteresis{hold: cfg.Hold},
	}
	// The reader is fast, so the events of one fail-over fit; refresh follows what did not.
	events := node.Subscribe(cfg.N + 64)
	defer events.Close()
	if err = r.open(); err == nil {
		err = r.watch(events)
	}
	cancel(err)
	for r.running > 0 || r.moving > 0 {
		err = cmp.Or(err, (<-r.results)())
	}
	if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Cause(ctx))) {
		return fmt.Errorf("shards of node %s: %w", r.self, err)
	}
	return nil
}

// runner is one Run. The goroutine that calls Run owns it, except for the channels.
type runner struct {
	cfg  Config
	node *cluster.Node
	self cluster.NodeID
	ctx  context.Context // ends when Work is to stop for good

	all     []shard
	byGroup map[string]int    // the index in all, by the election's name
	running int               // elections in which this node campaigns or works
	results chan func() error // of campaigns and transfers, for the owner to call
	starts  chan struct{}     // holds an element for each Open that runs
	opened  atomic.Int64      // how many have ended

	balance hysteresis
	moving  int                          // transfers that are under way
	shunned map[cluster.NodeID]time.Time // nodes that get nothing, until when
}

type shard struct {
	election *cluster.Election
	stands   time.Time      // from then on this node campaigns
	running  bool           // it does
	leader   cluster.NodeID // as this node sees it; "" for none
	owner    cluster.NodeID // the newest leader
	since    time.Time      // when it became that
	given    cluster.NodeID // to whom this node handed it over last
}

// open opens all elections. A node that is not the first in rank stands when those before it had
// time to be elected, or at once where it hears of a leader.
func (r *runner) open() error {
	voters := r.node.Default().Status().Voters
	t := cmp.Or(r.cfg.Election.Timing, elector.Article())
	step := t.InitialWait + t.MaxRandomWait + t.ScoutingResult + t.ElectionResult
	for i := range r.all {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		group, cfg := r.cfg.Prefix+strconv.Itoa(i), r.cfg.Election
		cfg.Priority = cluster.Rendezvous(group, r.self)
		e, err := r.node.Election(group, cfg)
		if errors.Is(err, cluster.ErrOpen) {
			e, err = r.node.Open(group) // an earlier Run opened it, or a message: it is to stay open
		}
		if err != nil {
			return err
		}
		e.SetPrepared(true) // so that a leader names who follows it: the next in rank
		wait := time.Duration(rank(group, r.self, voters)) * step
		r.all[i] = shard{election: e, stands: time.Now().Add(wait)}
		r.byGroup[group] = i
	}
	r.refresh()
	return nil
}

// rank is how many of the nodes come before one of them for a shard. As in elections, the higher ID
// comes first if scores are equal.
func rank(group string, self cluster.NodeID, nodes []cluster.NodeID) (before int) {
	own := cluster.Rendezvous(group, self)
	for _, id := range nodes {
		if score := cluster.Rendezvous(group, id); score > own || score == own && id > self {
			before++
		}
	}
	return before
}

// refresh finds out who leads each shard.
func (r *runner) refresh() {
	for i := range r.all {
		r.see(i, r.all[i].election.Status().Leader)
	}
}

// watch follows who leads, until ctx ends or something fails.
func (r *runner) watch(events *cluster.Subscription) error {
	// Nodes look one after the other, so that each knows what those before it hand over: they may shun
	// different nodes, and plan differently then.
	turn := time.Duration(uint64(cluster.Rendezvous(r.cfg.Prefix, r.self)) % uint64(look))
	tick := time.NewTimer(turn)
	defer tick.Stop()
	r.lookAround()
	for {
		select {
		case e, open := <-events.Events():
			i, ours := r.byGroup[e.Group]
			switch {
			case !open:
				return cmp.Or(r.node.Err(), cluster.ErrClosed)
			case ours:
				r.see(i, e.Leader)
			}
			if e.Missed > 0 {
				r.refresh()
			}
		case result := <-r.results:
			if err := result(); err != nil {
				return err
			}
		case <-tick.C:
			r.lookAround()
			tick.Reset(look)
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
}

// distrust is how many times Hold a node gets nothing from this one that lost a shard soon after it
// got it from here: Work fails there, or the node does. Otherwise shards would go back and forth.
const distrust = 10

// see notes who leads a shard.
func (r *runner) see(i int, leader cluster.NodeID) {
	s, now := &r.all[i], time.Now()
	s.leader = leader
	if leader == "" {
		return
	}
	if s.owner != leader {
		if s.owner == s.given && now.Sub(s.since) < r.cfg.Hold {
			r.shunned[s.owner] = now.Add(distrust * r.cfg.Hold)
		}
		s.owner, s.since = leader, now
	}
	r.campaign(s)
}

// campaign works on a shard whenever this node leads it, from now on.
func (r *runner) campaign(s *shard) {
	if s.running {
		return
	}
	s.running = true
	r.running++
	i := r.byGroup[s.election.Group()]
	s.election.RunFunc(r.ctx, func(ctx context.Context, l *cluster.Leadership) error {
		return r.work(ctx, Shard{Number: i, Leadership: l})
	}, func(err error) { r.results <- func() error { return r.end(s, err) } })
}

// work opens a shard, and then works on it.
func (r *runner) work(ctx context.Context, s Shard) error {
	if r.cfg.Open != nil {
		if err := r.load(ctx, s); err != nil {
			return err
		}
	}
	return r.cfg.Work(ctx, s)
}

// load calls Open when fewer than MaxStarts others run. It fails if none of them ends for half of
// Hold: whoever handed the shard over is to see it leave within Hold, and to distrust this node.
func (r *runner) load(ctx context.Context, s Shard) error {
	for ended := r.opened.Load(); ; ended = r.opened.Load() {
		select {
		case r.starts <- struct{}{}:
			defer func() { <-r.starts; r.opened.Add(1) }() // also if Open ends its goroutine
			return r.cfg.Open(ctx, s)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(r.cfg.Hold / 2):
			if r.opened.Load() == ended {
				return fmt.Errorf("%d calls of Open go on, and none has ended for %s: there is no place for "+
					"another", r.cfg.MaxStarts, r.cfg.Hold/2)
			}
		}
	}
}

// end notes that this node does not campaign in a shard any more. The error ends Run.
func (r *runner) end(s *shard, err error) error {
	r.running--
	switch {
	case errors.Is(err, cluster.ErrNotCandidate): // it may become one
		s.running, s.stands = false, time.Now().Add(10*look)
	case errors.Is(err, cluster.ErrResigned): // it was told to stay out
	default:
		return err
	}
	return nil
}

// lookAround campaigns where it is time to, and hands shards over.
func (r *runner) lookAround() {
	now := time.Now()
	var mine []int // may move
	for i := range r.all {
		s := &r.all[i]
		if !now.Before(s.stands) {
			r.campaign(s)
		}
		if s.leader == r.self && now.Sub(s.since) >= r.cfg.Hold {
			mine = append(mine, i)
		}
	}
	if len(mine) == 0 || r.moving > 0 {
		return
	}
	room := min(maxMoves, 1+len(mine)/8) // few of few: to take many at a time may fail
	for _, h := range r.surplus(now, r.all[mine[0]].election.Status().Supporters) {
		suits := func(i int) int { return cluster.Rendezvous(r.all[i].election.Group(), h.to) }
		slices.SortStableFunc(mine, func(a, b int) int { return cmp.Compare(suits(b), suits(a)) })
		count := min(h.count, room, len(mine))
		for _, i := range mine[:count] {
			r.all[i].given = h.to
			r.transfer(i, h.to)
		}
		mine, room = mine[count:], room-count
	}
}

// surplus is what this node is to hand over now, to the nodes that follow it.
func (r *runner) surplus(now time.Time, followers []cluster.NodeID) []handing {
	loads := map[cluster.NodeID]int{r.self: 0}
	for _, id := range followers {
		if id == r.self || !now.Before(r.shunned[id]) {
			loads[id] = 0
		}
	}
	for i := range r.all { // one that moves is still its old owner's: that move is part of the plan
		if _, counts := loads[r.all[i].owner]; counts {
			loads[r.all[i].owner]++
		}
	}
	return r.balance.step(now, loads, r.self)
}

// moveTime is how long a transfer may take. One that takes longer goes on, and others begin.
const moveTime = time.Minute

func (r *runner) transfer(i int, to cluster.NodeID) {
	e := r.all[i].election
	r.moving++
	go func() {
		ctx, cancel := context.WithTimeout(r.ctx, moveTime)
		defer cancel()
		err := e.Transfer(ctx, to)
		r.results <- func() error {
			r.see(i, e.Status().Leader) // its event may come later, and the next look before that
			if r.moving--; err != nil && !errors.Is(err, cluster.ErrNotLeader) {
				r.shunned[to] = time.Now().Add(r.cfg.Hold)
			}
			return nil
		}
	}()
}
