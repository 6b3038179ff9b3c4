package elector

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/scouting"
)

// Problem is one rule that a configuration violates.
type Problem struct {
	Field string // the field's name in Config, for example "Timing.Lease"
	Value string // what it is
	Want  string // what would be right
}

// String returns the problem as one sentence.
func (p Problem) String() string {
	return fmt.Sprintf("%s is %s, but must be %s", p.Field, p.Value, p.Want)
}

// ConfigError names every rule that a configuration violates, not only the first.
type ConfigError struct{ Problems []Problem }

// Error joins the problems.
func (e *ConfigError) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.String()
	}
	return "elector config: " + strings.Join(parts, "; ")
}

// maxTimer keeps sums and products of timers far from overflow.
const maxTimer = 24 * time.Hour

// problems collects violations.
type problems []Problem

func (ps *problems) want(ok bool, field string, value any, want string, args ...any) {
	if !ok {
		*ps = append(*ps, Problem{field, fmt.Sprint(value), fmt.Sprintf(want, args...)})
	}
}

// Validate returns a *ConfigError that names every violated rule, or nil. It
// changes nothing.
func (c Config) Validate() error {
	var ps problems
	ps.nodes(c)
	ps.quorum(c)
	ps.timers(c.Timing)
	ps.phi(c.Phi, c.Timing.Promise())
	ps.qos(c)
	ps.bounds(c.Bounds)
	beat := c.Timing.HeartbeatBroadcast
	ps.want(c.Prepare >= 0 && c.Prepare <= maxTimer, "Prepare", c.Prepare,
		"must be between 0 and 24h")
	ps.want(c.Takeover == 0 || c.Takeover >= beat && c.Takeover <= maxTimer, "Takeover", c.Takeover,
		"0, or between HeartbeatBroadcast, %s, and %s", beat, maxTimer)
	if len(ps) == 0 {
		return nil
	}
	return &ConfigError{ps}
}

func (ps *problems) nodes(c Config) {
	ps.want(NameProblem(c.Self) == "", "Self", quote(c.Self), "a node name %s", wantName)
	ps.want(len(c.Voters) <= scouting.MaxVoters, "Voters", fmt.Sprintf("%d names", len(c.Voters)),
		"at most %d names", scouting.MaxVoters)
	sorted := slices.Sorted(slices.Values(c.Voters))
	for i, v := range sorted {
		ps.want(NameProblem(v) == "", "Voters", "a list with "+quote(v), "node names %s", wantName)
		ps.want(i == 0 || sorted[i-1] != v, "Voters", "a list with "+quote(v)+" twice",
			"a list of distinct names")
	}
	ps.want(c.Rule == scouting.RuleDefault || c.Rule == scouting.RuleNodeOrder, "Rule", c.Rule,
		"default or node-order")
}

func (ps *problems) quorum(c Config) {
	n, q := len(c.Voters), c.QuorumSize()
	if n == 0 && c.Quorum == 0 {
		return // an observer learns the voters
	}
	ps.want(q >= 1 && q <= n, "Quorum", q, "between 1 and the number of voters, %d", n)
	ps.want(q > n/2 || c.UnsafeQuorum, "Quorum", q,
		"more than half of %d voters, so at least %d (UnsafeQuorum lifts this and permits two leaders)",
		n, Majority(n))
}

func (ps *problems) timers(t Timing) {
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"Timing.InitialWait", t.InitialWait},
		{"Timing.MaxRandomWait", t.MaxRandomWait},
		{"Timing.ScoutingResult", t.ScoutingResult},
		{"Timing.ElectionResult", t.ElectionResult},
		{"Timing.HeartbeatBroadcast", t.HeartbeatBroadcast},
		{"Timing.Lease", t.Lease},
	} {
		ps.want(d.value > 0 && d.value <= maxTimer, d.field, d.value, "positive and at most %s", maxTimer)
	}
	ps.want(t.HeartbeatMissCount >= 1 && t.HeartbeatMissCount <= 1000, "Timing.HeartbeatMissCount",
		t.HeartbeatMissCount, "between 1 and 1000")
	ps.want(t.ClockDriftPPM >= 0 && t.ClockDriftPPM <= 500_000, "Timing.ClockDriftPPM",
		t.ClockDriftPPM, "between 0 and 500000 (50 %%)")
	ps.want(t.Lease > t.HeartbeatBroadcast, "Timing.Lease", t.Lease,
		"longer than HeartbeatBroadcast, %s: a heartbeat must renew it in time", t.HeartbeatBroadcast)
	ps.want(t.Lease <= t.Inactivity(), "Timing.Lease", t.Lease,
		"at most HeartbeatMissCount x HeartbeatBroadcast, %s", t.Inactivity())
	ps.want(t.InitialWait >= t.Promise(), "Timing.InitialWait", t.InitialWait,
		"at least Lease x (1 + drift), %s", t.Promise())
	ps.want(t.MinRandomWait == 0 || t.MinRandomWait > 0 && t.MinRandomWait <= t.MaxRandomWait,
		"Timing.MinRandomWait", t.MinRandomWait, "0, or positive and at most MaxRandomWait, %s",
		t.MaxRandomWait)
	// A follower that finds its leader silent must be free to stand and to vote. If promises
	// lasted longer, all would wait for them, and the order of their turns would be lost.
	ps.want(t.MinRandomWait == 0 || t.Promise() <= t.Inactivity(), "Timing.Lease", t.Lease,
		"with drift at most HeartbeatMissCount x HeartbeatBroadcast, %s, since MinRandomWait is set",
		t.Inactivity())
	ps.want(t.InitialWait >= t.MaxRandomWait, "Timing.InitialWait", t.InitialWait,
		"at least MaxRandomWait, %s", t.MaxRandomWait)
}

// phi checks that a follower suspects its leader only when it is free to vote.
func (ps *problems) phi(c detector.PhiConfig, promise time.Duration) {
	if c == (detector.PhiConfig{}) {
		return
	}
	if field, value, want := c.Check(); field != "" {
		ps.want(false, "Phi."+field, value, "%s", want)
		return
	}
	ps.want(c.Least() >= promise, "Phi", fmt.Sprintf("one that may suspect after %s", c.Least()),
		"one that waits for at least Lease with drift, %s: a longer pause", promise)
}

// qos checks that the lease ends before the detector suspects, and that two heartbeats fit into
// the lease: §14.5.
func (ps *problems) qos(c Config) {
	t := c.Timing
	if c.QoS == (detector.QoS{}) {
		return
	}
	before := len(*ps)
	c.QoS.Check(func(field string, value any, want string) {
		ps.want(false, "QoS."+field, value, "%s", want)
	})
	if len(*ps) > before {
		return
	}
	ps.want(c.Phi == (detector.PhiConfig{}), "Phi", "set", "left out: QoS has its own detector")
	ps.want(t.Promise() < c.QoS.Detect, "Timing.Lease", t.Lease,
		"with drift shorter than QoS.Detect, %s", c.QoS.Detect)
	ps.want(2*t.HeartbeatBroadcast < t.Lease, "Timing.HeartbeatBroadcast", t.HeartbeatBroadcast,
		"below half of the lease, %s, since QoS is set", t.Lease/2)
}

func quote(id NodeID) string { return fmt.Sprintf("%q", string(id)) }

// list writes names with commas between them.
func list(ids []NodeID) (text string) {
	for i, id := range ids {
		if i > 0 {
			text += ", "
		}
		text += string(id)
	}
	return text
}

// MaxNameLength is the length of the longest node name, in bytes: it travels in every
// handshake.
const MaxNameLength = 128

// wantName is what would be right instead of a name that has a NameProblem.
var wantName = fmt.Sprintf("other than %q, of 1 to %d bytes, without spaces and control characters",
	AllMembers, MaxNameLength)

// NameProblem says what is wrong with id as the name of a node, to go after "its name is"; ""
// if nothing is. The rule keeps names printable in logs, traces and scenario files.
func NameProblem(id NodeID) string {
	unprintable := func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }
	switch {
	case id == "":
		return "empty"
	case id == AllMembers:
		return "that of all members"
	case len(id) > MaxNameLength:
		return fmt.Sprintf("%d bytes long, and the limit is %d", len(id), MaxNameLength)
	case strings.ContainsFunc(string(id), unprintable):
		return "one with spaces or control characters" // terminals and logs would obey them
	}
	return ""
}
