package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/health"
	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Status is a snapshot of a node for people and programs. In JSON, durations
// are seconds.
type Status struct {
	Cluster    string  `json:"cluster"`
	Node       NodeID  `json:"node"`
	Version    string  `json:"version,omitempty"`
	LogLevel   string  `json:"log_level,omitempty"` // of Config.Logger
	Identity   string  `json:"identity"`            // of the data directory
	Boot       uint64  `json:"boot"`                // starts on that directory, this one included
	Uptime     Seconds `json:"uptime_s"`
	GossipAddr string  `json:"gossip_addr,omitempty"`
	Stalls     uint64  `json:"stalls"` // timers that fired late by half a heartbeat period or more
	MeshAddr   string  `json:"mesh_addr"`
	AdminAddr  string  `json:"admin_addr,omitempty"`
	Failure    string  `json:"failure,omitempty"` // why the node takes no part any more
	// PausedUntil is the end of its pause, by its wall clock; zero if there is none.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	// Groups are the open elections: the default one first, then the others by name. Node.StatusOf
	// has only those that were selected.
	Groups []GroupStatus `json:"groups"`
	// Elections is set if there are too many to list; see Selection.Few.
	Elections *Sums `json:"elections,omitempty"`
	// Next is Selection.After of the next page, "" if this is the last one; see Selection.Limit.
	Next string `json:"next,omitempty"`
	// the others, sorted by name; voters never heard of included
	Members []MemberStatus `json:"members"`
	// Emergencies are recorded in the data directory for good, oldest first.
	Emergencies []EmergencyStatus `json:"emergencies,omitempty"`
	// Findings say what is wrong between this node and others at the moment, and how to fix it.
	Findings []findings.Finding `json:"findings,omitempty"`
	// Anomalies and Refused count what should not happen: odd messages by kind,
	// and connections that the mesh closed by reason.
	Anomalies map[string]int `json:"anomalies,omitempty"`
	// AnomalyAges is how long ago the newest odd message of each kind came.
	AnomalyAges map[string]Seconds `json:"anomaly_ages_s,omitempty"`
	Refused     map[string]uint64  `json:"refused,omitempty"`
	// CertificateEnd is until when the other members accept this node's certificate; zero
	// without TLS.
	CertificateEnd time.Time `json:"certificate_end,omitzero"`
	// DeathProof is on, or off and why: whether the death of a member is proven to the others, which
	// then need not wait for the end of its lease.
	DeathProof string `json:"death_proof"`
	// AcceptsPlain says that members without TLS are accepted, as Credentials.AcceptPlain.
	AcceptsPlain bool `json:"accepts_plain,omitempty"`
	// AcceptsPlainFor is how long that has been so, since the start at most.
	AcceptsPlainFor Seconds `json:"accepts_plain_for_s,omitempty"`
	// GossipEncryption is none, accepted (gossip is sent in plain, and may come encrypted),
	// preferred (sent encrypted, and may come in plain) or required.
	GossipEncryption string `json:"gossip_encryption,omitempty"`
	// Probes are those of Config.Health, in their order.
	Probes []health.Status `json:"probes,omitempty"`
	// Faults are the failures of Config.Faults that are in effect, in words.
	Faults string `json:"faults,omitempty"`
}

// GroupStatus is a node's view of one election.
type GroupStatus struct {
	Group  string   `json:"group"`
	Role   string   `json:"role"`
	Term   lsn.Term `json:"term"` // of the leadership held or followed, otherwise the node's own
	Leader NodeID   `json:"leader,omitempty"`
	// LeaderMeta is Config.Meta of the leader.
	LeaderMeta string  `json:"leader_meta,omitempty"`
	LSN        lsn.LSN `json:"lsn"` // newest issued or heard of
	LeaseLeft  Seconds `json:"lease_left_s,omitempty"`
	// Leading is IsLeader at the moment of the snapshot.
	Leading    bool     `json:"leading"`
	Supporters []NodeID `json:"supporters,omitempty"` // leader: whose acks back the lease
	// Voters are those of the newest record that this node has, or of the configuration if there is
	// none, without those that were declared lost.
	Voters    []NodeID `json:"voters"`
	Quorum    int      `json:"quorum"`
	Candidate bool     `json:"candidate"` // a voter that is to stand
	Priority  int      `json:"priority"`
	// SetNow names those of candidate and priority that were set at run time, and differ from the
	// configuration.
	SetNow []string `json:"set_now,omitempty"`
	Since  Seconds  `json:"since_s"` // time since the newest transition
	// Work is the state of guarded work on this node: "" for none, held, stopping (it was told to
	// stop), overdue (its deadline has passed, and it goes on), or ended (it ended by itself, and
	// this node rests for RestLeft).
	Work      string `json:"work,omitempty"`
	WorkEnds  uint64 `json:"work_ends,omitempty"`  // how often the work of Run ended by itself
	WorkError string `json:"work_error,omitempty"` // the error of the last time
	Unfit     string `json:"unfit,omitempty"`      // why this node is not fit to lead
	// Successor is whom the leader names, as far as this node knows: see Election.Succession.
	Successor  NodeID  `json:"successor,omitempty"`
	Unprepared bool    `json:"unprepared,omitempty"`  // the application is not prepared to lead
	RestLeft   Seconds `json:"rest_left_s,omitempty"` // of a rest, after a step-down or ended work
	// Detector is what detects a silent leader: qos, phi or miss-count, with its figures.
	Detector string `json:"detector,omitempty"`
	// QoS says how far ElectionConfig.QoS is met; nil without it.
	QoS *QoSStatus `json:"qos,omitempty"`
	// Record is the state of the election's record; nil if none was ever written.
	Record *RecordStatus `json:"record,omitempty"`
	// Explanation says in a sentence why things are as they are.
	Explanation string `json:"explanation"`
}

// MemberStatus is what this node knows of another member, and the link to it.
type MemberStatus struct {
	Node       NodeID  `json:"node"`
	Voter      bool    `json:"voter"`  // of the default election
	Gossip     string  `json:"gossip"` // its state in gossip: a hint
	Version    string  `json:"version,omitempty"`
	GossipAddr string  `json:"gossip_addr,omitempty"`
	MeshAddr   string  `json:"mesh_addr,omitempty"`
	AdminAddr  string  `json:"admin_addr,omitempty"`
	Link       string  `json:"link"`            // up, or down with the evidence
	LinkFor    Seconds `json:"link_for_s"`      // time in that state
	RTT        Seconds `json:"rtt_s,omitempty"` // smoothed round-trip time
	LinkError  string  `json:"link_error,omitempty"`
	LinkTLS    bool    `json:"link_tls,omitempty"` // the link is encrypted
	// Beats is how beats go to it: datagrams, stream or none; BeatsWhy why not by datagrams.
	Beats    string `json:"beats,omitempty"`
	BeatsWhy string `json:"beats_why,omitempty"`
	// NotStanding is why it does not want to lead the default election, which it says while the
	// link is up; "" if it does.
	NotStanding string `json:"not_standing,omitempty"`
	// Identity is that of its data directory, if the mesh knows it.
	Identity string `json:"identity,omitempty"`
	// Forgotten says that Forget was called since the last link: the next process of that name is
	// accepted.
	Forgotten bool `json:"forgotten,omitempty"`
}

// Seconds is a duration in seconds, to the microsecond.
type Seconds float64

// Duration returns s as a time.Duration.
func (s Seconds) Duration() time.Duration {
	return time.Duration(float64(s) * float64(time.Second))
}

func seconds(d time.Duration) Seconds {
	return Seconds(float64(d.Round(time.Microsecond)) / float64(time.Second))
}

// Status returns a snapshot. It works on a failed and on a closed node too.
func (n *Node) Status() Status { return n.StatusOf(Selection{}) }

// StatusOf is Status with only some of the elections. With many open it costs as much as there are
// that may be selected; they are looked at in parts, so that no heartbeat waits for it.
func (n *Node) StatusOf(sel Selection) Status {
	st := Status{
		Cluster: n.cfg.Cluster, Node: n.cfg.Node, Version: n.cfg.Version,
		Identity: n.store.Identity().String(), Boot: n.store.Boot(),
		Uptime: seconds(n.measure.Age()), Stalls: n.measure.Stalls.Load(),
		MeshAddr: n.mesh.Addr().String(), AdminAddr: n.cfg.AdminAddr,
		Emergencies: slices.Clone(n.emergencies), DeathProof: cmp.Or(n.cfg.noDeathProof(), "on"),
		Probes:  n.health.Status(),
		Refused: n.refused(), PausedUntil: n.loop.PausedUntil(), Faults: n.faults(),
	}
	if level := n.cfg.Logger.GetLevel(); level != hclog.NoLevel {
		st.LogLevel = level.String()
	}
	if n.gossip != nil {
		st.GossipAddr, st.GossipEncryption = n.gossip.Local().GossipAddr, n.gossip.Keys().Encryption()
	}
	if n.credentials != nil {
		st.CertificateEnd, _ = n.credentials.End()
		yes, since := n.credentials.AcceptsPlain()
		st.AcceptsPlain, st.AcceptsPlainFor = yes, seconds(since)
	}
	if err := n.Err(); err != nil {
		st.Failure = err.Error()
	}
	st.Findings = n.findings()
	first := n.defaultElection()
	st.Members = n.memberStatus(first.Electorate)
	st.Anomalies, st.AnomalyAges = map[string]int{}, map[string]Seconds{}
	for kind, a := range n.loop.Anomalies() {
		st.Anomalies[kind] = a.Count
		if !a.Newest.IsZero() {
			st.AnomalyAges[kind] = seconds(time.Since(a.Newest))
		}
	}
	st.Groups = []GroupStatus{}
	var sums Sums
	sums, st.Next = n.look(sel, func(s *loop.Snapshot) {
		st.Groups = append(st.Groups, n.groupStatus(s, st.Members))
	})
	if sums.Unlisted {
		st.Elections = &sums
	}
	return st
}

// defaultElection is the state of the default election; the zero value once that is closed.
func (n *Node) defaultElection() (first loop.Snapshot) {
	for s := range n.loop.Snapshots([]*loop.Election{n.election.p}) {
		first = *s
	}
	return first
}

// findings returns those that matter: where each election has a record, the configured voters do
// not count, and lists that differ for a while are part of every change of them.
func (n *Node) findings() []findings.Finding {
	all := n.diagnosis.Findings()
	differ := func(f findings.Finding) bool { return f.Kind == findings.VotersDiffer }
	if !slices.ContainsFunc(all, differ) {
		return all
	}
	for s := range n.loop.Glances(n.wanted(Selection{})) {
		if s.Record.Accepted.LSN.IsZero() {
			return all
		}
	}
	return slices.DeleteFunc(all, differ)
}

// memberStatus lists the other members: the voters, those of the configuration, and who else gossip
// or the mesh knows.
func (n *Node) memberStatus(voters []NodeID) []MemberStatus {
	byID := map[NodeID]MemberStatus{}
	at := func(id NodeID) MemberStatus {
		if m, ok := byID[id]; ok {
			return m
		}
		return MemberStatus{Node: id, Voter: slices.Contains(voters, id), Gossip: "unknown",
			Link: "none"}
	}
	for _, id := range slices.Concat(n.cfg.Voters, voters) {
		byID[id] = at(id)
	}
	for _, g := range n.known() {
		m := at(g.Node)
		m.Gossip, m.Version = string(g.State), g.Version
		m.GossipAddr, m.MeshAddr, m.AdminAddr = g.GossipAddr, meshAddrOf(g), g.AdminAddr
		byID[g.Node] = m
	}
	for _, l := range n.mesh.Links() {
		m := at(l.Peer.Node)
		m.link(l)
		byID[m.Node] = m
	}
	for id, why := range n.diagnosis.NotStanding() {
		if m, ok := byID[id]; ok {
			m.NotStanding = why
			byID[id] = m
		}
	}
	delete(byID, n.cfg.Node)
	return slices.SortedFunc(maps.Values(byID), func(a, b MemberStatus) int {
		return strings.Compare(string(a.Node), string(b.Node))
	})
}

func (m *MemberStatus) link(l netmesh.LinkStatus) {
	m.LinkFor, m.RTT, m.LinkError = seconds(time.Since(l.Since)), seconds(l.RTT), l.LastErr
	m.Forgotten, m.LinkTLS = l.Forgotten, l.Encrypted
	if l.Peer.Boot > 0 {
		m.Identity = l.Peer.Identity.String()
	}
	m.Link, m.Beats, m.BeatsWhy = "up", l.Beats, l.BeatsWhy
	if !l.Up {
		m.Link = "down (" + l.LastLoss.String() + ")"
	}
}

// refused is the mesh's count of closed connections by the reason's name.
func (n *Node) refused() map[string]uint64 {
	counts := map[string]uint64{}
	for reason, count := range n.mesh.Counters() {
		counts[reason.String()] = count
	}
	return counts
}

var workNames = map[leadership.Phase]string{
	leadership.Serving: "held", leadership.Stopping: "stopping", leadership.Overdue: "overdue",
}

func (n *Node) groupStatus(s *loop.Snapshot, members []MemberStatus) GroupStatus {
	ended := s.WorkEnded()
	work := workNames[s.Work.Phase]
	if work == "" && s.Now < ended.Rest {
		work = "ended"
	}
	why := s.NotStanding
	if s.StandsAgain != 0 {
		why += " for another " + short(s.StandsAgain.Sub(s.Now)).String()
	}
	if s.Name != DefaultGroup && s.Leader == "" {
		members = slices.Clone(members)
		for i := range members {
			members[i].NotStanding = "" // it is of the default election
		}
	}
	cfg, uncounted := n.cfg, n.uncounted(&s.Record, members)
	cfg.Voters = s.Electorate
	explanation := n.withEmergencies(explain(s.Status, why, cfg, members, uncounted, s.Now))
	if slices.Contains(uncounted, n.cfg.Node) {
		explanation += "; it counts for nothing: the record does not name its data directory"
	}
	return GroupStatus{
		Group: s.Name, Role: s.Role.String(), Term: s.Term, Leader: s.Leader, LSN: s.Newest,
		LeaderMeta: s.LeaderMeta,
		Supporters: s.Supporters, Voters: s.Electorate, Quorum: s.Quorum,
		Since: seconds(time.Since(s.Since)), Leading: s.Now < s.Work.LeaseEnd, LeaseLeft: leaseLeft(s),
		Explanation: explanation,
		Work:        work, WorkEnds: ended.Count, WorkError: ended.Err, Unfit: s.Work.Unfit,
		Successor: s.Successor, Unprepared: s.Cold,
		RestLeft:  seconds(max(s.RestEnd.Sub(s.Now), 0)),
		Candidate: s.Work.MayStand, Priority: s.Work.Priority, QoS: qosStatus(s),
		Detector: detectorName(*s.Config), SetNow: setNow(s),
		Record: recordStatus(s, n.cfg.Voters, uncounted),
	}
}

// setNow returns GroupStatus.SetNow.
func setNow(s *loop.Snapshot) (names []string) {
	if s.IsVoter() && s.Work.MayStand == s.Config.NotCandidate {
		names = append(names, "candidate")
	}
	if s.Work.Priority != s.Election.Priority {
		names = append(names, "priority")
	}
	return names
}

// leaseLeft is what is left of a valid lease; 0 if this node does not lead or needs none.
func leaseLeft(s *loop.Snapshot) Seconds {
	end := s.Work.LeaseEnd
	if end <= s.Now || end == elector.Never {
		return 0
	}
	return seconds(end.Sub(s.Now))
}
