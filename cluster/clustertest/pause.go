package clustertest

import (
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

// PauseLimit is for how long a node may be paused, in virtual time. It keeps a
// test that waits for a paused node from waiting for ever.
const PauseLimit = time.Hour

// Pause stops a node as SIGSTOP stops its process, as far as that can be within
// one process. From now on it decides nothing, notices nothing and sends nothing;
// its connections stay, and what is sent to it waits, until Resume. Of a node that
// is paused for longer than PauseLimit the test fails.
//
// The goroutines of a test that stand for the node's application go on. IsLeader
// and NextLSN answer them by the clock, as they do to code that runs on while the
// node's own goroutine is held up: no longer with yes or a token once the lease
// has run out. Timers run as well. What has to ask the node itself waits for
// Resume: Status, Transfer, Close, and what they are behind. To test an
// application that sleeps with its node and then writes what it meant to write
// before, take the token before Pause and use it after Resume.
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

// Resume lets a paused node go on, as SIGCONT does. It finds out how late it is.
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
