// Package clustertest runs a whole cluster within one test, in virtual time, so
// that a program's own failover code can be tested without sleeping:
//
//	func TestFailOver(t *testing.T) {
//		clustertest.Run(t, []cluster.NodeID{"a", "b", "c"}, func(t *testing.T, c *clustertest.Cluster) {
//			old := c.AwaitLeader()
//			c.Crash(old)
//			next := c.AwaitLeader() // seconds of virtual time, milliseconds of the test's
//			...
//		})
//	}
//
// The nodes are real ones, with real disks under t.TempDir; the network between
// them is in memory, and membership is given: there is no gossip. The test runs in
// a bubble of testing/synctest, whose rules hold: time moves only when every
// goroutine of the bubble waits, what the test starts must end with it, t.Run
// cannot be called, and a goroutine that waits for something real, such as a
// socket or a child process, stops the clock.
//
// Time is exact, but chance is not fixed: how long a node waits before it stands
// for election, and so which one wins, differs from run to run. Ask the Cluster
// which node leads, and write a test that holds whichever it is.
//
// # Crash, Stop, Pause, and cuts
//
// Crash ends a process as SIGKILL does, with the proof of death that lets the
// others elect again at once. Stop is SIGTERM: the node hands over and says
// goodbye. Pause is SIGSTOP: the node's connections stay, and nobody can tell it
// from a slow one. Isolate, Partition and Cut lose what is sent, silently, as a
// broken switch does.
//
// A crashed node is one that is closed, as seen from within: the goroutines of a
// test that stand for its application see what they see after Node.Close, and
// end by it. A real crash would end them without a word.
//
// # What is not simulated
//
// The network is without delay, unless Cluster.Faults sets one. All clocks run at the
// same rate. Disks lose nothing in a crash. All nodes are in one process: a
// global variable is shared by all.
package clustertest
