// Package loop is the driver: the goroutine that owns all elections of a node. It never waits for
// a peer, for the disk or for a caller.
//
// Other goroutines use a Loop: they send it commands, and get answers and snapshots. The methods
// of a Loop and of an Election are safe for concurrent use. A Driver holds what only the driver's
// goroutine may touch. Only functions that run on that goroutine get one.
//
// In order of reading:
//
//   - loop.go: how commands reach the driver
//   - driver.go: what the driver does, and in which order
//   - election.go, open.go: one election, its begin and its end
//   - handover.go, pause.go: requests of an operator
//   - links.go, claims.go: messages and links of other nodes
//   - publish.go, electorate.go: values and changes of voters that the leader writes
//   - values.go, call.go: values on their way, and requests to the leader of another node
//   - report.go, status.go: logs, events and snapshots
//   - persister.go: writes to the disk, on a goroutine of their own
package loop
