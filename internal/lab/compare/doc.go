// Package compare says what an election algorithm cost in runs that were disturbed: how
// long there was no leader, how often a good leader was unseated, how long two led at once,
// what was sent.
//
// Measure gives the [Figures] of one run. Over the seeds they become a [Row], whose figures
// are means with an interval of 95 %. Rows are written to a file and read from it: package
// report makes plots and pages from that file only. Package trial plays the runs.
package compare
