package embedding

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/lsn"
)

// disk keeps what an archive saves.
type disk struct {
	mu     sync.Mutex
	newest lsn.LSN
	count  int
}

func (d *disk) save(newest lsn.LSN, _ string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest = newest
	d.count++
	return nil
}

func (d *disk) read() (newest lsn.LSN, count int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.newest, d.count
}

// reporterTo writes to an archive.
func reporterTo(a *Archive) *reporter {
	return &reporter{every: time.Second, put: func(_ context.Context, token lsn.LSN,
		text string) error {
		return a.Put(token, text)
	}}
}

var three = []cluster.NodeID{"a", "b", "c"}

// awaiting is what our configuration has set for all tests.
var awaiting = clustertest.Configure(
	func(c *cluster.Config) { c.Election = configuration().Election })

func TestReportsGoOnAfterAPause(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		var d disk
		archive := OpenArchive(lsn.LSN{}, d.save)
		for _, id := range three {
			go reporterTo(archive).lead(t.Context(), c.Node(id).Default())
		}
		old := c.AwaitLeader()
		c.Await("a report", func() bool { _, count := d.read(); return count > 0 })
		late, err := c.Node(old).NextLSN() // the process means to write, and
		require.NoError(t, err)
		c.Pause(old) // is stopped before it does

		next := c.AwaitLeader()
		c.Await("its report", func() bool { newest, _ := d.read(); return newest.Term > late.Term })
		c.Resume(old)
		require.ErrorAs(t, archive.Put(late, "from yesterday"), new(*lsn.StaleError))
		time.Sleep(5 * time.Minute) // of virtual time
		require.Equal(t, next, c.Leader())
	}, awaiting)
}
