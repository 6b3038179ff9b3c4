package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	case "cut":
		r.faults.setCut(a.Pairs, true)
	case "partition":
		r.faults.partition(a.Groups)
	case "heal":
		pairs := a.Pairs
		if a.All {
			pairs = r.faults.pairs()
		}
		r.faults.setCut(pairs, false)
	case "link":
		for _, p := range a.Pairs {
			r.faults.links[p] = a.Link
		}
	case "reset":
		if err := r.reset(ctx, a.Pairs); err != nil {
			return "", err
		}
	case "transfer":
		return r.transferFromLeader(ctx, a.To), nil
	case "step-down":
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		err := r.each(a.Nodes, func(n *procs.Node) error {
			c := n.Client()
			defer c.Close()
			_, err := c.StepDown(ctx, admin.StepDownRequest{For: a.Rest.String()})
			return err
		})
		if err != nil {
			return err.Error(), nil
		}
		return "", nil
	default:
		return "", r.actOnProcesses(ctx, a)
	}
	return "", r.pushFaults(ctx)
}

// transferFromLeader asks the leader to hand over; it returns why that had no
// effect.
func (r *run) transferFromLeader(ctx context.Context, to cluster.NodeID) string {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for _, n := range r.mesh.Nodes() {
		if !r.answers(n) {
			continue
		}
		st, err := n.Status(ctx)
		if err == nil && st.Groups[0].Leading {
			if err := r.transfer(ctx, st.Node, to); err != nil {
				return err.Error()
			}
			return ""
		}
	}
	return "nobody leads"
}

func (r *run) actOnProcesses(ctx context.Context, a scenario.Action) error {
	switch a.Do {
	case "crash":
		return r.each(a.Nodes, func(n *procs.Node) error {
			r.journal.down(cluster.NodeID(n.Name))
			return n.Kill()
		})
	case "restart":
		return r.each(a.Nodes, func(n *procs.Node) error {
			id := cluster.NodeID(n.Name)
			if a.Wipe {
				if err := os.RemoveAll(filepath.Join(n.Dir, "state")); err != nil {
					return err
				}
				r.journal.wiped(id)
			}
			if _, err := r.launch(id); err != nil || r.faults.none() {
				return err
			}
			return r.sendFaults(ctx, n)
		})
	case "pause":
		return r.each(a.Nodes, func(n *procs.Node) error {
			id := cluster.NodeID(n.Name)
			r.journal.paused(id, r.sc.Election.Timing.Lease)
			r.paused[id] = true
			return n.Signal(syscall.SIGSTOP)
		})
	case "resume":
		return r.each(a.Nodes, func(n *procs.Node) error {
			id := cluster.NodeID(n.Name)
			r.journal.up(id)
			delete(r.paused, id)
			return errors.Join(n.Signal(syscall.SIGCONT), r.sendFaults(ctx, n))
		})
	case "stop":
		return r.each(a.Nodes, func(n *procs.Node) error {
			ctx, cancel := context.WithTimeout(ctx, stopTimeout)
			defer cancel()
			err := n.Stop(ctx)
			r.journal.down(cluster.NodeID(n.Name))
			return err
		})
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
		err := request(ctx, n, r.faults.request(cluster.NodeID(n.Name)))
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(sendAgain)
	}
}

// request asks one process for faults.
func request(ctx context.Context, n *procs.Node, req admin.FaultRequest) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c := n.Client()
	defer c.Close()
	_, err := c.Faults(ctx, req)
	return err
}

// reset breaks connections, and cuts the links.
func (r *run) reset(ctx context.Context, pairs []scenario.Pair) error {
	for _, p := range pairs {
		r.faults.setCut([]scenario.Pair{p, {From: p.To, To: p.From}}, true)
	}
	for _, p := range pairs {
		err := r.each([]cluster.NodeID{p.From}, func(n *procs.Node) error {
			if !r.answers(n) {
				return nil
			}
			return request(ctx, n, admin.FaultRequest{Reset: []cluster.NodeID{p.To}})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
