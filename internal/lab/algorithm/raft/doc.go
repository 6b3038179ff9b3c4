// Package raft is Raft's leader election: the basic rules of D. Ongaro's dissertation
// (Consensus: Bridging Theory and Practice, 2014, chapter 3), and the two that etcd-io/raft
// adds, PreVote and CheckQuorum. Messages have the dissertation's names. The differential
// test in tests/raft plays etcd-io/raft itself beside these machines.
//
// Election. A follower that hears no leader for a timeout R campaigns: it enters the next
// term, votes for itself and asks the other voters. Who gets the votes of a quorum leads in
// that term. A message of a higher term makes a follower of everyone. R is uniform from E to
// 2E, and is drawn anew at each change of role or term.
//
// PreVote. Before it campaigns a node asks whether it would win, as a pre-candidate, for the
// next term and without entering it. The answer binds nobody.
//
// CheckQuorum. A leader that no quorum answered for E becomes a follower; answers to
// AppendEntries count, as in etcd, and nothing else does. A node that heard a leader less than
// E ago drops requests for votes of a higher term: it is in lease. Transfers are exempt. etcd
// makes its PreVote hang on this: with PreVote alone, a node that has lost no link except the one
// to its leader wins, and deposes it. The dissertation's PreVote (section 9.6) has the lease
// built in.
//
// Transfer. The leader brings the target up to date and sends TimeoutNow; the target
// campaigns at once, without PreVote. The leader gives up after E.
//
// Timers. E is Timing.Inactivity, the period of AppendEntries is HeartbeatBroadcast. No other
// timer is used, InitialWait neither.
//
// The log. There are no commands. The only entry of a term is the one that its leader appends
// at its election, as in etcd; so a log is known by the term of its last entry. AppendEntries
// brings its receiver up to date, and is the heartbeat as well. A node whose log misses the
// newest leader's entry is elected by nobody who has it. That makes Omni-Paxos' constrained
// election possible: the one node that reaches a quorum was away when the leader was elected.
// An entry with each heartbeat would make it more likely, and would hide what PreVote alone is
// for and what it is not: a node that misses a heartbeat could never win.
//
// The disk. Term, vote and log are durable before an answer leaves. Requests leave at once, but
// a candidate leads only when its own vote is durable, whoever else voted for it: otherwise it
// could lead the same term again after a crash, with another log.
//
// The basic variant answers a message of a lower term with its own, as the dissertation says,
// and so deposes old leaders and candidates. etcd ignores it there, and its old leaders go on
// until somebody asks them for a vote; with PreVote or CheckQuorum it answers AppendEntries
// and PreVotes. All variants give up a campaign that enough voters reject, as etcd does; the
// dissertation's candidate waits for its timeout.
//
// Raft promises one leader in a term. It promises no single leader at a time: an old one
// leads on until it hears of a higher term, with CheckQuorum at most for 2E without a quorum.
// What breaks its liveness: a voter with an old log that alone reaches a quorum; in the basic
// variant and with PreVote alone, a voter without a link to the leader, which deposes it again
// and again. In all variants a node with a higher term deposes a healthy leader once.
package raft
