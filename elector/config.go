package elector

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/scouting"
)

// Config is what a machine needs to know before it starts. The zero value of
// every optional field is safe. New copies it.
type Config struct {
	// Self is this node's ID. A node that is not among Voters is an observer:
	// it follows and never votes. Required.
	Self NodeID
	// Voters are the members that take part in quorums, in any order, the same
	// on every node, at most scouting.MaxVoters. They count in an election without a record;
	// later the record says who votes (§15.12). A node without Voters is an observer that learns
	// them from the record.
	Voters []NodeID
	// Identity is that of this node's data directory. Without it the node cannot lead an election
	// with a record, and does not vote in one.
	Identity Identity
	// Lost are the data directories that an emergency declared lost for ever, each under its name:
	// they are voters of no record. The zero Identity is one that no leader has met.
	Lost []Voter
	// NotCandidate makes a voter that votes but never stands for election.
	NotCandidate bool
	// Priority ranks nodes that stand at the same moment; higher wins, the node
	// ID breaks ties. It unseats a leader only by Takeover. Default 0; any int is legal.
	Priority int
	// Quorum is the number of voters that elects and keeps a leader.
	// 0 means a majority: len(Voters)/2 + 1.
	Quorum int
	// Takeover lets a leader hand over to a voter of higher Priority that has been fit
	// to lead for this long without a break. The leader leads at least as long first, and
	// tries at most once in that time. If the voter does not lead afterwards, the time is
	// doubled for the next attempt of this node. With 0, the default, leadership is sticky:
	// priority never unseats a leader. At least Timing.HeartbeatBroadcast, at most 24h.
	Takeover time.Duration
	// Prepare is how long a handover waits at most until the application of its target is
	// prepared, if that needs it: see Prepared. 0, the default: not at all. At most 24h.
	Prepare time.Duration
	// Rule selects how ElectionScouting is answered.
	Rule scouting.Rule
	// Timing holds the protocol's timers; see Article and BlazingMQ. Required.
	Timing Timing
	// QoS, if set, is how fast and how surely a follower finds out that its leader is dead:
	// the detector NFD-E replaces the miss count, and the leader sends heartbeats as often as
	// its followers need for that, within Timing.Periods. ForQoS has timers that fit.
	QoS detector.QoS
	// Phi replaces the miss count by the phi accrual detector: a follower then learns how
	// regular its leader's heartbeats are. PhiConfig.Least must be at least Timing.Promise.
	// The zero value, the default, selects the miss count.
	Phi detector.PhiConfig

	// Bounds, if set, replaces DefaultBounds. Tests set smaller ones, so that a search reaches
	// what happens at a bound.
	Bounds *Bounds

	// UnsafeQuorum permits a Quorum of half the voters or less: two leaders at
	// once become possible.
	UnsafeQuorum bool
	// UnsafeNoScouting runs the article's algorithm as it was before its
	// ElectionScouting extension: any higher term is honoured, no stickiness, no
	// lease. It exists to show non-sticky leaders and leader ping-pong.
	UnsafeNoScouting bool
}

// Timing holds the timers of the protocol, each on the node's own clock: §10.
type Timing struct {
	InitialWait        time.Duration // after start: discover an existing leader first
	MinRandomWait      time.Duration // least step of waits by rank and round trip; 0: no turns
	MaxRandomWait      time.Duration // the longest wait before a scouting round; uniform by default
	ScoutingResult     time.Duration // a scouting round without a quorum by then has failed
	ElectionResult     time.Duration // likewise a proposal
	HeartbeatBroadcast time.Duration // period of the leader's heartbeats
	HeartbeatMissCount int           // a leader is inactive after this many silent periods
	Lease              time.Duration // how long a quorum's acks keep a leader
	ClockDriftPPM      int64         // most by which two nodes' clock rates may differ, in 10^-6
}

// Article returns the timers of the article, with a lease: the default.
func Article() Timing {
	return Timing{
		InitialWait:        4 * time.Second,
		MaxRandomWait:      3 * time.Second,
		ScoutingResult:     time.Second,
		ElectionResult:     time.Second,
		HeartbeatBroadcast: 500 * time.Millisecond,
		HeartbeatMissCount: 3,
		Lease:              1400 * time.Millisecond,
		ClockDriftPPM:      20_000,
	}
}

// BlazingMQ returns the defaults of the upstream C++ elector, with a lease.
func BlazingMQ() Timing {
	return Timing{
		InitialWait:        8 * time.Second,
		MaxRandomWait:      3 * time.Second,
		ScoutingResult:     4 * time.Second,
		ElectionResult:     4 * time.Second,
		HeartbeatBroadcast: 2 * time.Second,
		HeartbeatMissCount: 10,
		Lease:              5 * time.Second,
		ClockDriftPPM:      20_000,
	}
}

// LAN returns timers for one room: round trips of a millisecond, no loss, and processes
// that are never paused for as long as the lease.
func LAN() Timing {
	return Timing{
		InitialWait:        200 * time.Millisecond,
		MinRandomWait:      2 * time.Millisecond,
		MaxRandomWait:      200 * time.Millisecond,
		ScoutingResult:     100 * time.Millisecond,
		ElectionResult:     250 * time.Millisecond,
		HeartbeatBroadcast: 15 * time.Millisecond,
		HeartbeatMissCount: 4,
		Lease:              56 * time.Millisecond,
		ClockDriftPPM:      20_000,
	}
}

// WAN returns timers for round trips of up to 300 ms with a loss of 2 %.
func WAN() Timing {
	return Timing{
		InitialWait:        6 * time.Second,
		MinRandomWait:      10 * time.Millisecond,
		MaxRandomWait:      6 * time.Second,
		ScoutingResult:     1500 * time.Millisecond,
		ElectionResult:     2 * time.Second,
		HeartbeatBroadcast: 500 * time.Millisecond,
		HeartbeatMissCount: 7,
		Lease:              3250 * time.Millisecond,
		ClockDriftPPM:      20_000,
	}
}

// ForQoS returns timers for a quality of service (§14.6). The lease leaves a fifth of Detect for
// the delay of the network and the drift of clocks. Timers that depend on disks and schedulers do
// not get shorter than those need. For an invalid QoS it returns Article, so that Validate reports
// nothing but the QoS.
func ForQoS(ask detector.QoS) Timing {
	if ask.Validate() != nil {
		return Article()
	}
	d := ask.Detect.Truncate(60 * time.Microsecond) // so that all of these are whole
	return Timing{
		InitialWait:        max(4*d, 500*time.Millisecond),
		MinRandomWait:      max(d/100, 2*time.Millisecond),
		MaxRandomWait:      max(2*d, 200*time.Millisecond),
		ScoutingResult:     max(d, 100*time.Millisecond),
		ElectionResult:     max(2*d, 250*time.Millisecond),
		HeartbeatBroadcast: d / 3,
		HeartbeatMissCount: 3,
		Lease:              d / 5 * 4,
		ClockDriftPPM:      20_000,
	}
}

// ProfileNames are the names that Profile knows.
func ProfileNames() []string { return []string{"article", "blazingmq", "lan", "wan"} }

// Profile returns the timers of the named profile; ok is false if there is none.
func Profile(name string) (t Timing, ok bool) {
	t, ok = map[string]Timing{
		"article": Article(), "blazingmq": BlazingMQ(), "lan": LAN(), "wan": WAN(),
	}[name]
	return t, ok
}

// Inactivity is after how long without a heartbeat a follower takes the leader for inactive, by
// miss count: miss count x broadcast period.
func (t Timing) Inactivity() time.Duration {
	return time.Duration(t.HeartbeatMissCount) * t.HeartbeatBroadcast
}

// Periods are the limits for Config.QoS: a leader sends a heartbeat at least every
// HeartbeatBroadcast and at most 16 times as often, and nobody suspects it before a promise to it
// can have ended.
func (t Timing) Periods() detector.Limits {
	return detector.Limits{
		Shortest:  max((t.HeartbeatBroadcast / 16).Truncate(time.Microsecond), time.Microsecond),
		Longest:   t.HeartbeatBroadcast,
		Detection: t.Promise(),
	}
}

// possible is the period nearest to d that a leader keeps.
func (t *Timing) possible(d time.Duration) time.Duration {
	limits := t.Periods()
	return min(max(d, limits.Shortest), limits.Longest)
}

// Promise is how long a voter's promise binds: lease x (1 + drift), counted on
// the voter's own clock. It outlasts the lease that it backs by the drift.
func (t Timing) Promise() time.Duration { return t.stretch(t.Lease) }

// Majority is the smallest number of n voters that any two quorums share a member of.
func Majority(n int) int { return n/2 + 1 }

// QuorumSize is the number of voters that elects: Quorum, or a majority of Voters.
func (c Config) QuorumSize() int {
	if c.Quorum != 0 {
		return c.Quorum
	}
	return Majority(len(c.Voters))
}

// Observer reports whether Self is a member without a vote.
func (c Config) Observer() bool { return !slices.Contains(c.Voters, c.Self) }

// stretch returns d x (1 + drift): the time on this node's clock after which d
// has passed on every other's. It rounds up: a promise must outlast the lease.
func (t Timing) stretch(d time.Duration) time.Duration {
	return d + time.Duration(((int64(d)+999)/1000*t.ClockDriftPPM+999)/1000)
}
