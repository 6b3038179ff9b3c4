// Package regular opens and reads the files that people name: configurations, tokens,
// the state of a node. It never waits for the other end of a FIFO and never reads
// without limit. Its functions are safe for concurrent use.
package regular
