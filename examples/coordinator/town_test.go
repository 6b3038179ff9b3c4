package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/examples/coordinator/audit"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

var three = []cluster.NodeID{"a", "b", "c"}

const (
	partitions = 12
	grant      = time.Second
)

// town is the service as a whole, in virtual time: the processes' own code on the
// nodes of a clustertest.Cluster, with calls in the place of HTTP.
type town struct {
	t    *testing.T
	c    *clustertest.Cluster
	dirs map[cluster.NodeID]string

	mu        sync.Mutex
	processes map[cluster.NodeID]*citizen // of the newest start
}

// at is a node's process.
func (w *town) at(id cluster.NodeID) *citizen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.processes[id]
}

// all are the processes, in the order of their names.
func (w *town) all() (list []*citizen) {
	for _, id := range three {
		list = append(list, w.at(id))
	}
	return list
}

// citizen is a process that runs.
type citizen struct {
	*process
	faults *fault.Faults   // of its node's network
	killed context.Context // ends when it is
	kill   context.CancelFunc
	stop   context.CancelFunc // lets it leave
	ended  chan struct{}
	err    error // why, once it has ended
}

// inTown runs a test of the service.
func inTown(t *testing.T, f func(t *testing.T, w *town)) {
	t.Helper()
	wait := clustertest.Configure(func(c *cluster.Config) { c.Election.AwaitCampaign = true })
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		w := &town{t: t, c: c, dirs: map[cluster.NodeID]string{}, processes: map[cluster.NodeID]*citizen{}}
		t.Cleanup(w.end)
		for _, id := range three {
			w.dirs[id] = t.TempDir()
			w.open(id)
		}
		f(t, w)
	}, wait)
}

// open starts the service's part of a process whose node runs.
func (w *town) open(id cluster.NodeID) {
	w.t.Helper()
	p := &process{node: w.c.Node(id), every: grant / 10, log: hclog.NewNullLogger()}
	c := config{partitions: partitions, grant: grant, every: p.every}
	c.cluster.Node, c.cluster.DataDir = id, w.dirs[id]
	require.NoError(w.t, p.furnish(c, nil))
	who := &citizen{process: p, faults: w.c.Faults(id), ended: make(chan struct{})}
	who.killed, who.kill = context.WithCancel(context.Background())
	p.ask = func(ctx context.Context, leader cluster.NodeID, q question) (answer, error) {
		return w.carry(ctx, who, leader, q)
	}
	w.mu.Lock()
	w.processes[id] = who
	w.mu.Unlock()
	var ctx context.Context
	ctx, who.stop = context.WithCancel(who.killed)
	go func() {
		defer close(who.ended)
		who.err = p.run(ctx)
	}()
}

// carry takes a question to a node as the network does: what is cut loses it.
func (w *town) carry(ctx context.Context, from *citizen, to cluster.NodeID, q question) (answer, error) {
	if from.killed.Err() != nil {
		return answer{}, errors.New("the dead ask nothing")
	}
	if from.faults.Blocks(to) {
		<-ctx.Done()
		return answer{}, context.Cause(ctx)
	}
	return w.at(to).office.answer(q)
}

// crash kills a process: from now on it says and does nothing.
func (w *town) crash(id cluster.NodeID) {
	p := w.at(id)
	_ = p.hold.journal.Close()
	w.c.Crash(id)
	p.kill()
	<-p.ended
}

// restart starts a process that was killed.
func (w *town) restart(id cluster.NodeID) {
	w.c.Start(id)
	w.open(id)
}

// leave ends a process as SIGTERM does.
func (w *town) leave(id cluster.NodeID) {
	p := w.at(id)
	p.stop()
	<-p.ended
	require.NoError(w.t, p.err)
	w.c.Stop(id)
	require.NoError(w.t, p.hold.journal.Close())
}

// end ends all that still run.
func (w *town) end() {
	for _, p := range w.all() {
		p.stop()
	}
	for _, p := range w.all() {
		<-p.ended
		if p.err != nil && p.killed.Err() == nil {
			w.t.Errorf("process %s: %v", p.hold.node, p.err)
		}
		_ = p.hold.journal.Close()
	}
}

// settled waits until every partition is in force somewhere.
func (w *town) settled() {
	w.t.Helper()
	w.c.Await("every partition to be in force", func() bool { return w.loads() == partitions })
}

func (w *town) loads() (sum int) {
	for _, p := range w.all() {
		sum += len(p.hold.inForce())
	}
	return sum
}

// audit checks the journals as they are.
func (w *town) audit() audit.Report {
	w.t.Helper()
	var journals [][]audit.Line
	for _, id := range three {
		lines, err := audit.Read(filepath.Join(w.dirs[id], "journal"))
		require.NoError(w.t, err)
		journals = append(journals, lines)
	}
	return audit.Check(journals...)
}

// sound demands that nothing was wrong, and returns what there was.
func (w *town) sound() audit.Report {
	w.t.Helper()
	report := w.audit()
	require.Empty(w.t, report.Problems)
	return report
}

// drain makes the file that lets a node not lead, or removes it.
func (w *town) drain(id cluster.NodeID, on bool) {
	file := filepath.Join(w.dirs[id], "drain")
	if on {
		require.NoError(w.t, os.WriteFile(file, nil, 0o600))
		return
	}
	require.NoError(w.t, os.Remove(file))
}
