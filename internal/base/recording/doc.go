// Package recording keeps what happened to a node in bounded logs on disk, and reads them:
// the flight recorder, and the history of leaderships. Both are the same kind of log.
//
// A log is two files of at most half its size each: the newer one is appended to; when it is
// full it replaces the older one. A record is a line: the checksum of its JSON text, a space,
// the JSON text. So a reader finds the next record after any damage, and people can read the
// file. A file begins with copies of the records that still say how things are, such as the
// settings of the node: they outlive any number of later records.
//
// Nothing is synced: the page cache outlives the process, also one that is killed, and a loss
// of power may cost the end. Nothing that decides may depend on a log.
package recording
