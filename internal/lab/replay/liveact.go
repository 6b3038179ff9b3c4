package replay

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
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// act does one step of the timeline to real processes. The note says why it had
// no effect.
func (l *live) act(ctx context.Context, a scenario.Action) (note string, err error) {
	switch a.Do {
	case "cut":
		l.faults.setCut(a.Pairs, true)
	case "reset":
		return "", l.reset(ctx, a.Pairs)
	case "partition":
		l.faults.partition(a.Groups)
	case "heal":
		pairs := a.Pairs
		if a.All {
			pairs = l.faults.pairs()
		}
		l.faults.setCut(pairs, false)
	case "link":
		for _, p := range a.Pairs {
			l.faults.links[p] = a.Link
		}
	case "transfer":
		return l.handOver(ctx, a.To), nil
	case "step-down":
		return l.stepDown(ctx, a), nil
	default:
		return "", l.each(a.Nodes, func(n *procs.Node) error { return l.actOnProcess(ctx, a, n) })
	}
	return "", l.pushFaults(ctx)
}

// pushFaults tells those that can hear; a paused process hears when it resumes.
func (l *live) pushFaults(ctx context.Context) error {
	l.journal.cuts(l.faults.cut)
	for _, n := range l.mesh.Nodes() {
		if n.Pid() == 0 || l.isPaused(n) {
			continue
		}
		if err := l.tell(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// tell tells a process what is wrong with the network, as soon as it listens.
func (l *live) tell(ctx context.Context, n *procs.Node) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for {
		err := l.faults.push(ctx, n, l.faults.request(cluster.NodeID(n.Name)))
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(tellAgain)
	}
}

// tellAgain is the pause before a process that does not listen yet is told again.
const tellAgain = 5 * time.Millisecond

func (l *live) isPaused(n *procs.Node) bool { return l.frozen[cluster.NodeID(n.Name)] }

// reset breaks connections, and cuts the links.
func (l *live) reset(ctx context.Context, pairs []scenario.Pair) error {
	for _, p := range pairs {
		l.faults.setCut([]scenario.Pair{p, {From: p.To, To: p.From}}, true)
	}
	for _, p := range pairs {
		n, err := l.mesh.Node(string(p.From))
		if err != nil {
			return err
		}
		if n.Pid() == 0 || l.isPaused(n) {
			continue
		}
		if err := l.faults.push(ctx, n, admin.FaultRequest{Reset: []cluster.NodeID{p.To}}); err != nil {
			return err
		}
	}
	return l.pushFaults(ctx)
}

// handOver asks the leader to transfer; it returns why that had no effect.
func (l *live) handOver(ctx context.Context, to cluster.NodeID) string {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for _, n := range l.mesh.Nodes() {
		if n.Pid() == 0 || l.isPaused(n) {
			continue
		}
		st, err := n.Status(ctx)
		if err == nil && st.Groups[0].Leading {
			if err := l.transfer(ctx, st.Node, to); err != nil {
				return err.Error()
			}
			return ""
		}
	}
	return "nobody leads"
}

// stepDown tells nodes to step down; it returns why that had no effect.
func (l *live) stepDown(ctx context.Context, a scenario.Action) string {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err := l.each(a.Nodes, func(n *procs.Node) error {
		c := n.Client()
		defer c.Close()
		_, err := c.StepDown(ctx, admin.StepDownRequest{For: a.Rest.String()})
		return err
	})
	if err != nil {
		return err.Error()
	}
	return ""
}

func (l *live) actOnProcess(ctx context.Context, a scenario.Action, n *procs.Node) error {
	id := cluster.NodeID(n.Name)
	switch a.Do {
	case "crash":
		l.journal.process(id, history.Down)
		return n.Kill()
	case "restart":
		return l.restart(ctx, n, a.Wipe)
	case "pause":
		l.journal.paused(id, l.sc.Election.Timing.Lease)
		l.frozen[id] = true
		return n.Signal(syscall.SIGSTOP)
	case "resume":
		l.journal.process(id, history.Up)
		delete(l.frozen, id)
		return errors.Join(n.Signal(syscall.SIGCONT), l.tell(ctx, n))
	case "stop":
		return l.stop(ctx, n)
	}
	return fmt.Errorf("real processes cannot be made %s", a.Do)
}

func (l *live) each(ids []cluster.NodeID, f func(*procs.Node) error) error {
	for _, id := range ids {
		n, err := l.mesh.Node(string(id))
		if err == nil {
			err = f(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restart starts a process, on an empty disk if wiped, and tells it what is wrong
// with the network as soon as it listens.
func (l *live) restart(ctx context.Context, n *procs.Node, wipe bool) error {
	id := cluster.NodeID(n.Name)
	if wipe {
		if err := os.RemoveAll(filepath.Join(n.Dir, "state")); err != nil {
			return err
		}
		l.journal.wiped(id)
	}
	if err := l.launch(id); err != nil {
		return err
	}
	if l.faults.none() {
		return nil
	}
	return l.tell(ctx, n)
}

func (l *live) stop(ctx context.Context, n *procs.Node) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err := n.Stop(ctx)
	l.journal.process(cluster.NodeID(n.Name), history.Down)
	return err
}
