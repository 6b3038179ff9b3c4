package cluster

import (
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/cluster/internal/measure"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
	"github.com/bmqelect/bmqelect/scouting"
)

// Stats are the figures of a node: its counts since the start, and values at the moment. Together
// with Status they are all that a metrics library needs; this package uses none.
type Stats struct {
	Elections []ElectionStats           // sorted by name
	Sums      Sums                      // of all elections
	Links     []netmesh.LinkStatus      // to the other members, sorted by node
	Findings  []findings.Finding        // what is wrong between members now
	Clocks    map[NodeID]findings.Clock // of the members that are linked

	PauseLeft Seconds // for how long elections are paused; 0 if they are not

	Voters          int // those of the configuration that are not lost
	VotersReachable int // of these, with a link that is up, and that count; this node included

	// LeaderChanges counts, over all elections, how often the leader that the node is or follows
	// changed, or was lost, by the reason. Every reason is there.
	LeaderChanges map[elector.Reason]uint64
	// Answers to ElectionScouting and to ElectionProposal, over all elections.
	ScoutingGiven, ScoutingReceived Answers
	VotesGiven, VotesReceived       Answers

	Phases     map[string]Histogram // seconds that each phase of an election took, by its name
	Leaderless Histogram            // seconds from the loss of a leader to the next one
	// LeaseLeft is how much of the lease was left when it was renewed, as a share
	// of its whole length, 0 to 1, over all elections that this node leads.
	LeaseLeft Histogram
	// InboxWait is the seconds for which events and due ticks waited for the driver. A long wait
	// means that the process or its machine was held up.
	InboxWait    Histogram
	InboxLength  int       // events that wait now
	Stalls       uint64    // see Status
	StoreWrite   Histogram // seconds that terms took to be on disk
	StoreWriting Seconds   // how long the write under way has taken so far; 0 if there is none
	// RecordsLost counts events that were not recorded because the disk was full, failed or slow.
	RecordsLost  uint64
	LogLinesLost uint64 // because the logger was too slow
	// MissedEvents counts events that were dropped for slow subscribers, except for those with room
	// for only one.
	MissedEvents  uint64
	Subscriptions int // that are open
	// Uninvited counts the messages of elections that are not open here and that they did not open,
	// by why: no-prefix (see Config.Prefixes), observer (the sender is no voter), shut (the election
	// was closed on this node within a minute) or full (Config.PrefixLimit).
	Uninvited map[string]uint64
	// DatagramsDropped counts the datagrams at the mesh's port that did not count, by why: malformed,
	// unknown-session (it may be over), forged, or old (a copy).
	DatagramsDropped map[string]uint64
}

// ElectionStats are the figures of one election on a node.
type ElectionStats struct {
	Group       string
	Role        elector.Role
	Leader      NodeID        // that the node is or follows; "" for none
	Term        lsn.Term      // of that leadership, or otherwise the node's own
	LSN         lsn.LSN       // newest issued or heard of
	Leading     bool          // IsLeader
	LeaseLeft   Seconds       // of a valid lease; 0 if this node does not lead or needs none
	Quorum      int           // voters needed
	Leaderships uint64        // how often this node came to lead or to follow a leader
	WorkOverdue bool          // guarded work goes on although its leadership is over
	WorkEnds    uint64        // how often the work of Run ended by itself
	QoS         *QoSStatus    // nil without ElectionConfig.QoS
	Record      *RecordStatus // nil if none was ever written
}

// Answers counts the answers to a question of the protocol.
type Answers struct {
	Yes uint64
	No  map[scouting.Cause]uint64 // by cause; every cause is there
}

// Histogram is the distribution of values over buckets.
type Histogram struct {
	Bounds []float64 // upper bounds of the buckets, inclusive, rising
	Counts []uint64  // by bucket; one more than Bounds: the last is above all bounds
	Sum    float64   // of all values
}

// Stats returns a snapshot. Like Status it works on a failed and on a closed node
// too, and waits for the driver otherwise.
func (n *Node) Stats() Stats { return n.StatsOf(Selection{}) }

// StatsOf is Stats with only some of the elections. Sums has those that may be selected.
func (n *Node) StatsOf(sel Selection) Stats {
	m := n.measure
	st := Stats{
		Links:  n.mesh.Links(),
		Clocks: n.diagnosis.Clocks(), PauseLeft: seconds(n.loop.PauseLeft()),
		LeaderChanges: m.Changes(), Phases: map[string]Histogram{},
		ScoutingGiven: answers(&m.ScoutingGiven), ScoutingReceived: answers(&m.ScoutingReceived),
		VotesGiven: answers(&m.VotesGiven), VotesReceived: answers(&m.VotesReceived),
		Leaderless: Histogram(m.Gaps.Snapshot()), LeaseLeft: Histogram(m.Renewals.Snapshot()),
		InboxWait: Histogram(m.Waits.Snapshot()), InboxLength: n.loop.InboxLength(),
		Stalls: m.Stalls.Load(), StoreWrite: Histogram(m.Writes.Snapshot()),
		StoreWriting: seconds(m.Writing()), RecordsLost: n.recorder.Lost(),
		LogLinesLost: n.lines.lost.Load(), Uninvited: map[string]uint64{},
		DatagramsDropped: n.mesh.DroppedDatagrams(),
	}
	for why, count := range n.loop.Uninvited {
		st.Uninvited[why] = count.Load()
	}
	st.MissedEvents, st.Subscriptions = n.hub.counts()
	for name, times := range m.Phases() {
		st.Phases[name] = Histogram(times)
	}
	st.Findings = n.findings()
	cfg, first := n.cfg, n.defaultElection()
	cfg.Voters = first.Electorate
	members := n.memberStatus(cfg.Voters)
	st.Voters = len(cfg.Voters)
	st.VotersReachable, _ = reach(cfg, members, n.uncounted(&first.Record, members))
	st.Sums, _ = n.look(sel, func(s *loop.Snapshot) {
		st.Elections = append(st.Elections, ElectionStats{
			Group: s.Name, Role: s.Role, Leader: s.Leader, Term: s.Term, LSN: s.Newest,
			Quorum: s.Quorum, Leading: s.Now < s.Work.LeaseEnd, LeaseLeft: leaseLeft(s),
			Leaderships: s.Leaderships, WorkOverdue: s.Work.Phase == leadership.Overdue,
			WorkEnds: s.WorkEnded().Count, QoS: qosStatus(s),
			Record: recordStatus(s, n.cfg.Voters, n.uncounted(&s.Record, members)),
		})
	})
	return st
}

func answers(a *measure.Answers) Answers {
	yes, no := a.Counts()
	return Answers{yes, no}
}
