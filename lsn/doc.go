// Package lsn is Leader Sequence Numbers: fencing tokens that say which of two
// things a leader issued later, even if the two came from different leaders.
//
// An LSN is a leader's Term and a Counter that starts again with every term. Its
// text ("5.2") is what people, JSON and durable notes see; its 16 bytes sort as
// LSNs do. A Sequencer issues them on the leader's side; a Fence, on the side
// of the resource that leaders write to, refuses those of a leader that has been
// replaced and does not know it yet.
//
// The package does not know who leads: whoever owns a Sequencer must begin and
// end its leaderships. It does no I/O; whoever needs a Fence to survive a
// restart saves its Newest.
//
// Term and LSN are plain values. Sequencer and Fence are safe for concurrent use
// and must not be copied. What always holds: a Sequencer never issues an LSN
// twice or out of order, and a Fence's Newest never goes back.
package lsn
