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
// The nodes are real ones, with real disks under t.TempDir. The network between
// them is in memory, and they know each other's addresses: there is no gossip. The test runs
// in a bubble of testing/synctest and must keep its rules: time moves only when every
// goroutine of the bubble waits, all goroutines of the test must end with it, t.Run
// cannot be called, and a goroutine that waits for something real, such as a
// socket or a child process, stops the clock.
//
// Time is exact, but random waits differ from run to run: how long a node waits before it
// stands for election, and so which one wins. Ask the Cluster which node leads, and write a
// test that passes whichever it is.
//
// # Crash, Stop, Pause, and cuts
//
// Crash ends a process as SIGKILL does: its death is proven, so the others elect again at
// once. Stop is SIGTERM: the node hands over and says goodbye. Pause is SIGSTOP: the node's
// connections stay, and the others cannot tell it from a slow one. Isolate, Partition and
// Cut silently drop what is sent, as a broken switch does.
//
// Goroutines that simulate the application of a crashed node see a node that was closed, as
// after Node.Close, and should end. A real crash would end them at once.
//
// # What is not simulated
//
// The network has no delay, unless Cluster.Faults sets one. All clocks run at the same rate.
// Disks lose nothing in a crash. All nodes are in one process and share its global variables.
package clustertest
