// Package scouting is one round of ElectionScouting, the PreVote of the
// BlazingMQ elector: before a node proposes an election it asks every voter
// whether it would get the vote, and raises no term for the question.
//
// Round is the asker's tally, Rule the answerer's decision. Both are plain
// values without clock, randomness or I/O; they are not safe for concurrent use.
package scouting
