//go:build race

package nodes

// Raced reports whether tests and nodes have the race detector.
const Raced = true
