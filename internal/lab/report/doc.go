// Package report shows what happened in the runs of a scenario: as text for a
// terminal, as JSON Lines for programs, as a picture (SVG), and as one
// self-contained HTML page to explore. It draws what package history holds and
// judges nothing itself; the same runs give the same bytes.
//
// The lanes of the nodes are drawn once, as SVG: the page holds the same picture
// and its script moves it. The page carries its data as the JSON Lines, compressed with gzip.
// Above the lanes it plays all runs in step: their nodes in a circle, and messages as dots on
// their way.
//
// Two nodes or more that hold themselves for the leader at the same time are the worst that
// can happen. So every form shows that, whatever the algorithm promises, and first.
//
// Several runs given together are variants of one scenario and are shown side
// by side on one axis of time. Names and texts come from files and from the
// network: every form escapes them.
//
// All functions are safe for concurrent use with different writers, as long as
// nobody changes the runs meanwhile.
//
// # JSON Lines
//
// [JSON] writes one object per line. Each has "type" and "run", the run's index
// from 0. Times are seconds since the start of the timeline, negative before it,
// and named with the suffix _s. What is unknown, lost or without end is left
// out, as are empty strings. Per run, in this order:
//
//	{"type":"run", "scenario", "variant", "about", "mode", "seed", "duration_s",
//	 "quorum", "no_lease", "nodes": [{"node", "voter", "candidate"}]}
//
// then, ordered by at_s, what happened:
//
//	{"type":"transition", "at_s", "node", "from", "to", "reason", "term", "leader", "peer"}
//	{"type":"cut", "at_s", "until_s", "from", "to"}
//	{"type":"mark", "at_s", "text", "note"}
//	{"type":"message", "at_s", "received_s", "from", "to", "kind", "text"}
//
// A transition has roles and reasons as the protocol names them. A cut is a time
// in which one direction of a link was silent. A mark is what the timeline did;
// its note says why it had no effect. A message without received_s was lost.
// Last comes how the run ended:
//
//	{"type":"problem", "kind": "invariant" or "run", "text"}
//	{"type":"verdict", "held", "text", "seen", "at_s", "from_s", "to_s"}
//	{"type":"summary", "held", "two_leaders_s", "leader_changes", "needless_demotions",
//	 "leaderless_s", "availability", "max_term", "messages", "failovers_s": []}
//
// Terms are integers below 2^63, availability is a share from 0 to 1, and
// messages counts all, also those that are not listed one by one.
package report
