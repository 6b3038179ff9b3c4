// Package compare plays elections many times and says how they compare. For `bmqnode replay`
// these are scenario files: one or many, once or under many seeds, in one or several variants,
// simulated or on real processes. For `bmqnode lab` it is every algorithm through the same
// faults in the same networks, and what each cost: how long there was no leader, how often a
// good leader was unseated, how long two led at once, what was sent.
//
// Measure gives the [Figures] of one run. Over the seeds they become a [Row], whose figures
// are means with an interval of 95 %. Rows are written to a file and read from it: the page
// docs/laboratory.md and its pictures are made of that file, and of one run of each scenario
// that the page cites.
//
// Runs are independent, and each has a seed of its own, so that the same cells give the same
// rows however many run at a time.
package compare
