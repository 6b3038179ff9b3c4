// Package store keeps what a node must not forget, in one bbolt file in the
// node's data directory: the directory's identity, how often it was opened, and
// the terms of every election group. An emergency that was declared is recorded for
// ever. The addresses of peers are cached in a file beside it, PEERS, whose loss
// costs nothing.
//
// A node votes at most once in a term only if the term is reserved on disk before the vote
// is sent. So the package returns an error where it is not certain:
//
//   - What a method reports as written has been fsynced. The first failure to
//     write is final (ErrNotDurable): a failed fsync may have lost pages that
//     the kernel now calls clean, so the store refuses to write again. The next
//     Open rewrites the whole record, so it does not depend on the page cache.
//   - A state file that was deleted or replaced is a failure to write: the next Open
//     would not find what is written to it.
//   - An entered term never goes down.
//   - A file that is damaged, or gone from a directory that had one, is an error
//     (ErrCorrupt) and never a fresh start at term 0.
//   - A directory belongs to one node of one cluster and to one process at a
//     time (ErrLocked).
//
// The store cannot notice a directory that was restored from a backup or copied to
// another machine, nor a disk that reports an fsync that it did not do. So it records the
// identities of the other members' directories: members refuse each other's old ones.
//
// The whole state is one record with one checksum, rewritten at each commit. It is
// small: about 50 bytes a group, and groups that were closed are forgotten. With a key
// for each group, a damaged file could lose one key, and that group would silently be
// back at term 0.
//
// A Store is safe for concurrent use. Every method may wait for the disk.
package store
