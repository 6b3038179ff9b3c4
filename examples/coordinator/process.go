package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
)

// asker asks a node as its worker, and returns its answer.
type asker func(ctx context.Context, leader cluster.NodeID, q question) (answer, error)

// process is one process of the service: a node, a worker, and while the node leads
// the coordinator.
type process struct {
	node   *cluster.Node
	office *office
	hold   *hold
	ask    asker
	health func() error
	every  time.Duration // between two acts of the work
	log    hclog.Logger
}

// run takes part until ctx ends, and then leaves in good order: first the worker
// ends what it has in force and says so, then the coordinator stops and hands over.
// It returns nil after that, or why the node takes part no longer.
func (p *process) run(ctx context.Context) error {
	leading, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	working, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() {
		defer stop() // no work without the node
		ran <- p.node.Default().Run(leading, cluster.Callbacks{
			OnStartedLeading: p.office.lead,
			OnNewLeader:      func(l cluster.Leader) { p.log.Info("leader", "leader", l.Node, "term", l.Term) },
		})
	}()
	p.work(working)
	p.leave(leading)
	resign()
	if err := <-ran; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// work asks, acts, and minds its health, each at its own pace, until ctx ends.
func (p *process) work(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { each(ctx, p.office.grant/5, func() { p.consult(ctx, false) }) })
	loops.Go(func() { each(ctx, p.every, p.hold.work) })
	loops.Go(func() { each(ctx, p.office.grant/2, p.checkHealth) })
	loops.Wait()
}

// each does something now, and then at every tick until ctx ends.
func each(ctx context.Context, period time.Duration, do func()) {
	ticks := time.NewTicker(period)
	defer ticks.Stop()
	for ctx.Err() == nil {
		do()
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}

// consult asks the leader, once, and follows its answer.
func (p *process) consult(ctx context.Context, leaving bool) {
	ctx, cancel := context.WithTimeout(ctx, p.office.grant)
	defer cancel()
	leader, err := p.node.Default().Leader(ctx)
	if err != nil {
		return // there is none; what is in force expires
	}
	asked := time.Now()
	a, err := p.ask(ctx, leader.Node, p.hold.question(leaving))
	if err == nil {
		err = p.hold.accept(asked, a)
	}
	if err != nil {
		p.log.Warn("not told what to do", "leader", leader.Node, "term", leader.Term, "error", err)
	}
}

// leave ends all work and lets the leader know, so that others need not wait until
// it would have expired.
func (p *process) leave(ctx context.Context) {
	p.hold.drop("leaving")
	p.consult(ctx, true)
}

// checkHealth lets another node lead if this one cannot do its part.
func (p *process) checkHealth() {
	if err := p.node.Default().SetFit(p.health()); err != nil {
		p.log.Debug("health not told", "error", err)
	}
}
