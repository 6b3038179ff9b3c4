package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// act does one step of the timeline to real processes. The note says why it had
// no effect.
func (r *run) act(ctx context.Context, a scenario.Action) (note string, err error) {
	switch a.Do {
	case "cut", "reset", "heal", "partition", "link":
		r.faults.add(a)
		return "", errors.Join(r.reset(ctx, a.Reset), r.pushFaults(ctx))
	case "transfer":
		return r.transferFromLeader(ctx, a.To), nil
	case "publish", "add-voter", "remove-voter", "replace-voter":
		r.ask(ctx, a)
		return "", nil
	case "step-down":
		err := r.each(a.Nodes, func(n *procs.Node) error {
			return tell(ctx, n, stopTimeout, admin.StepDownRequest{For: a.Rest.String()})
		})
		if err != nil {
			note = err.Error()
		}
		return note, nil
	}
	return "", r.each(a.Nodes, func(n *procs.Node) error { return r.actOnProcess(ctx, a, n) })
}

// tell tells a process something by its admin API.
func tell(ctx context.Context, n *procs.Node, timeout time.Duration, what admin.Request) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := n.Client().Tell(ctx, what)
	return err
}

// transferFromLeader asks the leader to hand over; it returns why that had no
// effect.
func (r *run) transferFromLeader(ctx context.Context, to cluster.NodeID) string {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	leader := r.leader(ctx)
	if leader == nil {
		return "nobody leads"
	}
	if err := r.transfer(ctx, cluster.NodeID(leader.Name), to); err != nil {
		return err.Error()
	}
	return ""
}

// leader is the process that leads; nil if none does.
func (r *run) leader(ctx context.Context) *procs.Node {
	for _, n := range r.mesh.Nodes() {
		if !r.answers(n) {
			continue
		}
		if st, err := n.Status(ctx); err == nil && st.Groups[0].Leading {
			return n
		}
	}
	return nil
}

func (r *run) actOnProcess(ctx context.Context, a scenario.Action, n *procs.Node) error {
	id := cluster.NodeID(n.Name)
	switch a.Do {
	case "crash":
		r.journal.down(id, r.step)
		return n.Kill()
	case "restart":
		if a.Wipe {
			if err := os.RemoveAll(filepath.Join(n.Dir, "state")); err != nil {
				return err
			}
			r.journal.wiped(id)
		}
		if err := r.rejoin(ctx, a, n); err != nil {
			return err
		}
		if _, err := r.launch(id); err != nil || r.faults.none() {
			return err
		}
		return r.sendFaults(ctx, n)
	case "pause":
		r.journal.paused(id, r.sc.Election.Timing.Lease)
		r.paused[id] = true
		return n.Signal(syscall.SIGSTOP)
	case "resume":
		r.journal.up(id)
		delete(r.paused, id)
		return errors.Join(n.Signal(syscall.SIGCONT), r.sendFaults(ctx, n))
	case "stop":
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		err := n.Stop(ctx)
		r.journal.down(id, r.step)
		return err
	}
	return fmt.Errorf("real processes cannot %s", a.Do)
}

// pushFaults sends the faults to all processes that answer; a paused one gets
// them when it resumes.
func (r *run) pushFaults(ctx context.Context) error {
	r.journal.cuts(sortedPairs(r.faults.cut))
	for _, n := range r.mesh.Nodes() {
		if !r.answers(n) {
			continue
		}
		if err := r.sendFaults(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// sendAgain is the pause before the faults are sent again to a process that does
// not listen yet.
const sendAgain = 5 * time.Millisecond

// sendFaults sends a process all that is wrong with the network, as soon as it
// listens.
func (r *run) sendFaults(ctx context.Context, n *procs.Node) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for {
		err := tell(ctx, n, askTimeout, r.faults.request(cluster.NodeID(n.Name)))
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(sendAgain)
	}
}

// reset breaks connections.
func (r *run) reset(ctx context.Context, pairs []scenario.Pair) error {
	for _, p := range pairs {
		err := r.each([]cluster.NodeID{p.From}, func(n *procs.Node) error {
			if !r.answers(n) {
				return nil
			}
			return tell(ctx, n, askTimeout, admin.FaultRequest{Reset: []cluster.NodeID{p.To}})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// faultPlan is everything that is wrong with the network now. A process that starts again
// gets all of it.
type faultPlan struct {
	cut   map[scenario.Pair]bool
	links map[scenario.Pair]scenario.Link // other than perfect
}

func newFaultPlan(sc *scenario.Scenario) *faultPlan {
	f := &faultPlan{cut: map[scenario.Pair]bool{}, links: map[scenario.Pair]scenario.Link{}}
	if sc.Network != (scenario.Link{}) {
		for _, p := range sc.AllPairs() {
			f.links[p] = sc.Network
		}
	}
	return f
}

// add adds what an action does to the network.
func (f *faultPlan) add(a scenario.Action) {
	for _, p := range a.Cut {
		f.cut[p] = true
	}
	for _, p := range a.Heal {
		delete(f.cut, p)
	}
	for _, p := range a.Linked {
		f.links[p] = a.Link
	}
}

// request is what one node is sent. Both ends of a cut direction drop it, so that
// it is cut also while one of them starts again.
func (f *faultPlan) request(id cluster.NodeID) admin.FaultRequest {
	r := admin.FaultRequest{HealAll: true}
	for _, p := range sortedPairs(f.cut) {
		switch id {
		case p.From:
			r.CutOut = append(r.CutOut, p.To)
		case p.To:
			r.CutIn = append(r.CutIn, p.From)
		}
	}
	for _, p := range sortedPairs(f.links) {
		if l := f.links[p]; p.From == id {
			r.Links = append(r.Links, admin.LinkFault{
				To: p.To, Loss: float64(l.Loss) / 1e6,
				Delay: cluster.Seconds(l.Delay.Seconds()), Jitter: cluster.Seconds(l.Jitter.Seconds()),
			})
		}
	}
	return r
}

func sortedPairs[V any](m map[scenario.Pair]V) []scenario.Pair {
	return slices.SortedFunc(maps.Keys(m), func(a, b scenario.Pair) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
}

// none reports whether the network is perfect.
func (f *faultPlan) none() bool { return len(f.cut) == 0 && len(f.links) == 0 }
