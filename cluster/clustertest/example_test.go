package clustertest_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/lsn"
)

// ledger simulates a database or a service to which the workers write. It refuses writes of a
// worker that has been replaced.
type ledger struct {
	mu      sync.Mutex
	fence   lsn.Fence
	writers []cluster.NodeID // of the writes that it accepted, in order
}

func (l *ledger) write(who cluster.NodeID, token lsn.LSN) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.fence.AdmitNew(token); err != nil {
		return err
	}
	l.writers = append(l.writers, who)
	return nil
}

// newest returns who wrote last.
func (l *ledger) newest() (who cluster.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.writers); n > 0 {
		who = l.writers[n-1]
	}
	return who
}

// work is the code under test: it runs beside every node, and writes to the ledger
// twice a second on the one that leads.
func work(node *cluster.Node, id cluster.NodeID, to *ledger) {
	for {
		if token, err := node.NextLSN(); err == nil {
			_ = to.write(id, token) // refused: somebody else leads by now
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-node.Done():
			return
		}
	}
}

// failOver is the test. It takes milliseconds of real time.
func failOver(t *testing.T, c *clustertest.Cluster) {
	var l ledger
	for _, id := range []cluster.NodeID{"a", "b", "c"} {
		go work(c.Node(id), id, &l)
	}
	first := c.AwaitLeader()
	c.Await("the leader's worker to write", func() bool { return l.newest() == first })

	// The worker means to write, and the process is stopped before it does.
	late, err := c.Node(first).NextLSN()
	require.NoError(t, err)
	c.Pause(first)
	second := c.AwaitLeader()
	c.Await("the next one's worker to write", func() bool { return l.newest() == second })
	c.Resume(first)
	var stale *lsn.StaleError
	require.ErrorAs(t, l.write(first, late), &stale, "the ledger is fenced")

	c.Crash(second)
	third := c.AwaitLeader()
	c.Await("the work to go on", func() bool { return l.newest() == third })
	time.Sleep(time.Minute)
	require.Equal(t, third, l.newest(), "nobody else works")
}

// A worker that must run on one node at a time, and a test that kills and stops
// the node that it runs on.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestFailOver(t *testing.T)
		clustertest.Run(t, []cluster.NodeID{"a", "b", "c"}, failOver)
	}
}
