// Package store keeps what a node must not forget, in one bbolt file in the
// node's data directory: the directory's identity, how often it was opened, and
// the terms of every election group. Emergencies, once declared, are recorded for
// good. The addresses of peers are cached in a file beside it, PEERS, whose loss
// costs nothing.
//
// A vote is cast once per term only if the term is reserved on disk before the vote is
// sent, so the package prefers an error to a doubt:
//
//   - What a method reports as written has been fsynced. The first failure to
//     write is final (ErrNotDurable): a failed fsync may have lost pages that
//     the kernel now calls clean, so the store refuses to write again. The next
//     Open rewrites the record whole, and so trusts nothing that only the page
//     cache held. Nor is anything written that the next Open would not find: a state
//     file that was deleted or replaced is a failure to write.
//   - An entered term never goes down.
//   - A file that is damaged, or gone from a directory that had one, is an error
//     (ErrCorrupt) and never a fresh start at term 0.
//   - A directory belongs to one node of one cluster and to one process at a
//     time (ErrLocked).
//
// What it cannot notice: a directory put back whole from an older backup, or
// copied to another machine, and a disk that reports an fsync it did not do. So it keeps
// which directories the other members had: they refuse each other's old ones.
//
// The whole state is one record under one checksum, rewritten at each commit. It is
// small: about 50 bytes a group, and groups that were closed are forgotten. A record
// that can be lost alone, as one key of many can, would be a group silently back at
// term 0.
//
// A Store is safe for concurrent use. Every method may wait for the disk.
package store
