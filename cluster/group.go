package cluster

import (
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// group is one election of this node. The driver owns it; what others read
// without asking the driver is atomic.
type group struct {
	name      string
	machine   *elector.Machine
	wake      elector.Time // when the machine wants a tick
	place     int          // on the agenda
	leads     lsn.Term     // the term that the sequencer issues for; 0 if this node does not lead
	told      lsn.LSN      // newest issued LSN that the machine knows of
	sequencer lsn.Sequencer
	since     time.Time    // of the newest transition, by the wall clock
	leaseEnd  atomic.Int64 // elector.Time before which this node may say that it leads; 0 if it does not
	lastLease atomic.Int64 // what leaseEnd was before it became 0

	measure groupMeasure

	lease        time.Duration // of the configuration
	promise      time.Duration // how long a promise to a leader binds
	margin       time.Duration // how long before the end of its lease guarded work must stop
	notCandidate bool          // never stands
	able         bool          // what the machine was told: whether it is to stand
	unfit        string        // why the application is not fit to lead; "" if it is
	campaigns    bool          // stands only while somebody campaigns or holds a leadership
	campaign     *campaign     // that waits; nil for none
	held         *Leadership   // whose work has not been released; nil for none
	calm         *calm         // when no handover is under way; nil while nobody waits
	closing      bool          // is to be dropped
	gone         chan struct{} // closed when this node takes no part in it any more
}

// leading reports whether the lease is valid at now. It is safe for concurrent use.
func (g *group) leading(now elector.Time) bool { return now < elector.Time(g.leaseEnd.Load()) }

// publish lets other goroutines see the lease as the last step left it. It runs
// before anything that the step sends: nobody may learn that this node gave up
// while it still says that it leads.
func (g *group) publish() error {
	lease := g.machine.Lease()
	if last := g.leaseEnd.Load(); last != 0 {
		g.lastLease.Store(last)
	}
	g.leaseEnd.Store(int64(lease.End))
	if lease.Term == g.leads {
		return nil
	}
	g.leads = lease.Term
	if lease.Term == 0 {
		g.sequencer.End()
		return nil
	}
	g.told = lsn.LSN{Term: lease.Term}
	return g.sequencer.Begin(lease.Term)
}
