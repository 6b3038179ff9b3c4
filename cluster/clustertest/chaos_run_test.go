package clustertest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// byRun reports whether the processes of this world work by Run instead of Campaign.
func (w *world) byRun() bool { return w.schedule.seed%2 == 1 }

// workByRun works until the node is closed. Its callbacks come in pairs, and it is told of each
// leadership once, in the order of terms.
func (p *process) workByRun() {
	var started, stopped atomic.Int32
	var newest lsn.Term
	pairs := func(balance int32) {
		if started.Load()-stopped.Load() != balance && !p.Killed() {
			p.w.judge.breaks("callbacks come in pairs", "%s was told to start %d times, and to stop %d",
				p.name, started.Load(), stopped.Load())
		}
	}
	for {
		err := p.node.Default().Run(p.Life(), cluster.Callbacks{
			OnStartedLeading: func(_ context.Context, l *cluster.Leadership) error {
				started.Add(1)
				pairs(1)
				p.Wait()
				p.lead(l)
				return nil
			},
			OnStoppedLeading: func(*cluster.Leadership) {
				stopped.Add(1)
				pairs(0)
			},
			OnNewLeader: func(l cluster.Leader) {
				if l.Term <= newest && !p.Killed() {
					p.w.judge.breaks("a leadership is new once", "%s is told of term %d after %d",
						p.name, l.Term, newest)
				}
				newest = l.Term
			},
		})
		pairs(0)
		p.Wait()
		if err == nil || p.node.Err() != nil || !p.isUp() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
