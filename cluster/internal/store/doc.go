// Package store keeps what a node must not forget, in one bbolt file in the
// node's data directory: the directory's identity, how often it was opened, and
// the terms and the record of every election group. An emergency that was declared is kept for
// ever. The addresses of peers are cached in a file beside it, PEERS, whose loss
// costs nothing.
//
// A node votes at most once in a term only if the term is reserved on disk before the vote
// is sent. So the package returns an error where it is not certain:
//
//   - What a method reports as written has been fsynced. The first failure to
//     write is final (ErrNotDurable): a failed fsync may have lost pages that
//     the kernel now calls clean, so the store refuses to write again. The next
//     Open rewrites the whole state, so it does not depend on the page cache.
//   - A state file that was deleted or replaced is a failure to write: the next Open
//     would not find what is written to it.
//   - An entered term never goes down, nor does a record.
//   - A file that is damaged, or gone from a directory that had one, is an error
//     (ErrCorrupt) and never a fresh start at term 0.
//   - A directory belongs to one node of one cluster and to one process at a
//     time (ErrLocked).
//
// The store cannot notice a directory that was restored from a backup or copied to
// another machine, nor a disk that reports an fsync that it did not do. So it records the
// identities of the other members' directories: members refuse each other's old ones.
//
// The whole state is one text with one checksum, rewritten at each commit. It is
// small: about 50 bytes a group, and groups that were closed are forgotten. With a key
// for each group, a damaged file could lose one key, and that group would silently be
// back at term 0. The values of records have a key each; the state has their hashes.
//
// A commit costs two fsyncs, and the time to write all groups. In a directory with records, what
// changes of groups is appended to a journal instead, for one fsync; a full one, any other change
// and the next start write the state. A power failure may leave the newest batch torn, if nobody
// was told of it. Damage to a batch is noticed if that of the newest did not come together with the
// loss of the seal after it, which is written without an fsync. Groups with a record are not
// forgotten, and a directory without records has no journal.
//
// A Store is safe for concurrent use. Every method may wait for the disk.
package store
