package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/examples/coordinator/audit"
)

// errNotLeading is what a worker is told who asks the wrong node.
var errNotLeading = errors.New("this node does not lead")

// office is the coordinator's part of a process. It has a desk while its node leads.
type office struct {
	journal    *audit.Journal
	partitions int
	grant      time.Duration
	log        hclog.Logger

	mu   sync.RWMutex
	desk *desk
}

// lead is the guarded work: it answers until ctx ends. When it has returned no
// answer is being made any more.
func (o *office) lead(ctx context.Context, l *cluster.Leadership) {
	o.log.Info("leads", "term", l.Term())
	o.seat(newDesk(l, o.journal, o.partitions, o.grant))
	<-ctx.Done()
	o.seat(nil)
	o.log.Info("leads no more", "cause", context.Cause(ctx))
}

func (o *office) seat(d *desk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.desk = d
}

// answer answers a worker if this node leads.
func (o *office) answer(q question) (answer, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if o.desk == nil {
		return answer{}, errNotLeading
	}
	return o.desk.answer(q)
}

// leads reports whether this node has a desk.
func (o *office) leads() bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.desk != nil
}
