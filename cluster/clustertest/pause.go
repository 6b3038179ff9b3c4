package clustertest

import (
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

// PauseLimit is for how long a node may be paused, in virtual time. It keeps a
// test that waits for a paused node from waiting for ever.
const PauseLimit = time.Hour

// Pause stops a node as SIGSTOP stops its process, as far as that is possible within
// one process. Until Resume the node decides nothing, notices nothing and sends nothing;
// its connections stay, and data for it waits. The test fails if a node is paused for longer
// than PauseLimit.
//
// The goroutines that simulate the node's application go on, and so do timers. IsLeader and
// NextLSN answer them by the clock: when the lease has run out, with no and with an error.
// Methods that need the node's own goroutine wait for Resume: Status, Transfer, Close and
// those that call them. To test an application that is paused together with its node and
// then writes late, take the token before Pause and use it after Resume.
func (c *Cluster) Pause(id cluster.NodeID) {
	c.t.Helper()
	m := c.member(id)
	c.demand(m, "pause", running)
	synctest.Wait()
	m.process.Pause()
	m.limit = time.AfterFunc(PauseLimit, func() {
		c.t.Errorf("clustertest: node %s was paused for %s, the limit; "+
			"did the test call one of its methods that wait for Resume?", id, PauseLimit)
		m.process.Resume()
	})
	c.become(m, paused)
}

// Resume lets a paused node go on, as SIGCONT does.
func (c *Cluster) Resume(id cluster.NodeID) {
	c.t.Helper()
	m := c.member(id)
	c.demand(m, "resume", paused)
	m.resume()
	c.become(m, running)
}

// resume ends a pause, if there is one.
func (m *member) resume() {
	if m.limit != nil {
		m.limit.Stop()
		m.limit = nil
	}
	m.process.Resume()
}
