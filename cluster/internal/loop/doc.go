// Package loop is the goroutine that owns all elections of a node, the driver. It never waits:
// not for a peer, the disk or whoever asks.
//
// A Loop is what others have of it: commands go in, and answers and snapshots come out. Its
// methods are safe for concurrent use, as are those of an Election. A Driver has what only the
// driver's goroutine may touch, so nobody else gets one: it is passed to what runs there.
//
// In order of reading:
//
//   - loop.go: what goes in, and how
//   - driver.go: what the driver does, and in which order
//   - election.go, open.go: one election, how it begins and how it ends
//   - handover.go, pause.go: what an operator asks for
//   - links.go, claims.go: what comes from other nodes
//   - report.go, status.go: what others are told
//   - persister.go: the disk beside the driver
package loop
