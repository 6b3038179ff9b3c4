// Package recovery lets a cluster that has lost a quorum of its voters for good go on.
// It works on the data directories of nodes that are stopped:
//
//  1. Make sure that the lost voters never run again on their data directories.
//  2. Stop the voters that are left.
//  3. Call DeclareLost for the data directory of each of them, with the same Emergency.
//  4. Start them. They elect among themselves, with terms above all that the lost can
//     have used.
//  5. Replace the lost one at a time: call Readmit for each voter that is left, start
//     these, then start the replacement on an empty directory, and see it follow.
//
// It is the last resort. If some of the lost still run, and are a quorum of what the
// cluster was, they lead too wherever they do not hear those that are left, and there
// are two leaders. Only fences (package lsn) tell these apart.
//
// What was declared stays on record in the directory, and in the Status of its node.
// The functions may be called concurrently for different directories.
package recovery
