// Package raft is Raft's leader election in six variants. Read were D. Ongaro's dissertation
// (Consensus: Bridging Theory and Practice, 2014; ongardie/dissertation 42841d1: chapter 3, 6.4.1
// and 9.4), LogCabin for what it leaves open (Server/RaftConsensus.cc, 0104048), etcd-io/raft
// v3.7.0, TiKV for leases (tikv/tikv, components/raftstore/src/store: util.rs of 01c0478,
// config.rs of 000f506, and send_raft_message), and CockroachDB for those of store-liveness (see
// Fortified). Messages have the dissertation's names.
//
// Election. A follower that hears no leader for a timeout R campaigns: it enters the next
// term, votes for itself and asks the other voters. A candidate with the votes of a quorum leads
// in that term. A node that gets a message of a higher term becomes a follower in it; one of a
// lower term is answered with the node's own. R is uniform from E to 2E. Only a vote that is
// granted, AppendEntries of the current leader, and a campaign of its own restart it, each with a
// new draw, as in LogCabin: a refused vote does not. A candidate waits for R whatever the answers
// are.
//
// raft-etcd is etcd's basic variant. Every change of role or term restarts and draws R; votes and
// AppendEntries only restart it. A candidate that enough voters reject gives up. Messages of lower
// terms get no answer, so that an old leader goes on until somebody asks it for a vote. The
// differential test in tests/raft plays etcd-io/raft itself beside this row and the next two.
//
// raft-prevote adds PreVote: before it campaigns a node asks whether it would win, as a
// pre-candidate, for the next term and without entering it. The answer binds nobody.
// AppendEntries and PreVotes of lower terms are answered here.
//
// raft-checkquorum adds CheckQuorum: a leader that no quorum answered for E becomes a follower;
// answers to AppendEntries count, and nothing else does. A node that heard a leader less than E ago
// drops requests for votes of a higher term: it is in lease. Transfers are exempt. etcd makes its
// PreVote hang on this: with PreVote alone, a node that has lost no link except the one to its
// leader wins, and deposes it. The dissertation's PreVote (section 9.6) has the lease built in.
//
// raft-lease adds TiKV's lease: a leader leads for 0.9 E from when the newest AppendEntries left
// that a quorum has answered. (TiKV renews by writes and reads; their sending counts.) From
// TimeoutNow until the end of the transfer nothing renews it. Clocks may show any time, but their
// rates must not differ by more than 0.9 to 1. store-liveness has CockroachDB's: see Fortified.
//
// Transfer (section 3.10). The leader brings the target up to date and sends TimeoutNow; the
// target campaigns at once, without PreVote. The leader gives up after E.
//
// Timers. E is Timing.Inactivity, the period of AppendEntries is HeartbeatBroadcast. TiKV's are
// 10 s and 2 s, and the lease is 9 s.
//
// The log. There are no commands. The only entry of a term is the one that its leader appends
// at its election, as in etcd and LogCabin; so a log is known by the term of its last entry.
// AppendEntries brings its receiver up to date at once and whole, and is the heartbeat as well. A
// node whose log misses the newest leader's entry is elected by nobody who has it. That makes
// Omni-Paxos' constrained election possible: the one node that reaches a quorum was away when the
// leader was elected. With more entries a node that misses a heartbeat could never win.
//
// The disk. Term, vote and log are durable before an answer leaves. Requests leave at once, but
// a candidate leads only when its own vote is durable, whoever else voted for it: otherwise it
// could lead the same term again after a crash, with another log.
//
// Raft promises one leader in a term. It promises no single leader at a time: an old one
// leads on until it hears of a higher term, with CheckQuorum at most for 2E without a quorum. With
// leases no two lead, unless a voter restarts, which forgets that it heard a leader, or a
// TimeoutNow is on its way for E or more.
// What breaks its liveness: a voter with an old log that alone reaches a quorum; in the basic
// variants and with PreVote alone, a voter without a link to the leader, which deposes it again
// and again. In all variants a node with a higher term deposes a healthy leader once.
package raft
