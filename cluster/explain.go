package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/words"
)

// explain describes the state of the election, and why it is so, in a sentence. notStanding is why
// this node does not stand, "" if it does.
func explain(
	s elector.Status, notStanding string, cfg Config, members []MemberStatus, uncounted []NodeID,
	now elector.Time,
) string {
	text := ""
	switch h := s.Handover; {
	case s.Role == elector.Dormant:
		return "this node takes no part"
	case s.Role != elector.Leader && s.Leader == "":
		return "no leader: " + whyNoLeader(s, notStanding, cfg, members, uncounted, now)
	case s.Role != elector.Leader:
		text = fmt.Sprintf("follows %s, last heard %s ago", s.Leader, short(now.Sub(s.HeardAt)))
	default:
		text = "this node leads, as the only voter"
		if len(cfg.Voters) > 1 {
			text = fmt.Sprintf("this node leads, backed by %d of %d voters (%d needed)",
				len(s.Supporters), len(cfg.Voters), s.Quorum)
		}
		switch {
		case h.Stopping:
			text += fmt.Sprintf(", and hands over (%s) when its guarded work has stopped", h.Cause)
		case h != elector.Handover{}:
			text += fmt.Sprintf(", and asks %s to take over (%s)", h.To, h.Cause)
		case notStanding != "":
			text += ", until another node can take over: " + notStanding
		}
	}
	if s.NoTermsLeft {
		text += ", but no terms are left: nobody can be elected after it; " + noTermsAdvice
	}
	return text
}

// noTermsAdvice names the page that says what to do.
const noTermsAdvice = "see docs/errors.md#terms-used-up"

// whyNoLeader names the gravest reason why the node has no leader.
func whyNoLeader(
	s elector.Status, notStanding string, cfg Config, members []MemberStatus, uncounted []NodeID,
	now elector.Time,
) string {
	reachable, missing := reach(cfg, members, uncounted)
	switch {
	case s.NoTermsLeft:
		return fmt.Sprintf("no terms are left: %d is the highest there is, so nobody can be elected; %s",
			s.Term, noTermsAdvice)
	case reachable < s.Quorum:
		return fmt.Sprintf("%d of %d voters needed, %d reachable%s",
			s.Quorum, len(cfg.Voters), reachable, missing)
	case s.Role == elector.Candidate && s.Writing:
		return fmt.Sprintf("this node writes term %d to its disk, to stand for election in it", s.Term)
	case s.Role == elector.Candidate:
		return fmt.Sprintf("this node stands for election in term %d", s.Term)
	case s.AwaitedLeader != "":
		return fmt.Sprintf("voted for %s in term %d, waiting for its first heartbeat",
			s.AwaitedLeader, s.Term)
	case s.Scouting:
		return "asking the voters whether they would elect this node"
	case notStanding != "":
		return cmp.Or(noCandidate(notStanding, cfg, members),
			"this node does not stand: "+notStanding)
	case s.EmbargoEnd > now:
		return fmt.Sprintf("just started, supports nobody for another %s", short(s.EmbargoEnd.Sub(now)))
	case s.PromisedTo != "":
		return fmt.Sprintf("the lease of %s may run for another %s",
			s.PromisedTo, short(s.PromiseEnd.Sub(now)))
	case s.HintedLeader != "":
		return fmt.Sprintf("others follow %s, which this node does not hear", s.HintedLeader)
	case s.StandAt > now:
		return fmt.Sprintf("stands for election in %s, unless a leader shows up",
			short(s.StandAt.Sub(now)))
	}
	return "waiting for another node to stand"
}

// noCandidate says for every voter that is up why it does not stand; "" if one of them does. The
// text is the same on all nodes.
func noCandidate(own string, cfg Config, members []MemberStatus) string {
	voters := slices.Sorted(slices.Values(cfg.Voters))
	var reasons, away []string
	idle := map[string][]NodeID{} // by the reason
	for _, v := range voters {
		i := slices.IndexFunc(members, func(m MemberStatus) bool { return m.Node == v })
		why := own
		if v != cfg.Node {
			if i < 0 || members[i].Link != "up" {
				away = append(away, string(v))
				continue
			}
			why = members[i].NotStanding
		}
		if why == "" {
			return ""
		}
		if idle[why] == nil {
			reasons = append(reasons, why)
		}
		idle[why] = append(idle[why], v)
	}
	for i, why := range reasons {
		reasons[i] = fmt.Sprintf("%s: %s", words.List(idle[why]), why)
	}
	text := "no eligible candidate is up (" + strings.Join(reasons, "; ")
	if len(away) > 0 {
		text += "; not connected: " + strings.Join(away, ", ")
	}
	return text + ")"
}

// reach counts the voters that this node can reach and that count, itself included if it is
// one, and describes the others.
func reach(cfg Config, members []MemberStatus, uncounted []NodeID) (n int, missing string) {
	var out []string
	for _, v := range slices.Sorted(slices.Values(cfg.Voters)) {
		m := MemberStatus{Node: v, Link: "none"}
		if i := slices.IndexFunc(members, func(m MemberStatus) bool { return m.Node == v }); i >= 0 {
			m = members[i]
		}
		reached := v == cfg.Node || m.Link == "up"
		switch {
		case reached && slices.Contains(uncounted, v):
			out = append(out, fmt.Sprintf("%s: on a data directory that the record does not name", v))
		case reached:
			n++
		case m.Link == "none":
			out = append(out, fmt.Sprintf("%s: never heard of", v))
		default:
			out = append(out, fmt.Sprintf("%s: %s for %s", m.Node, m.Link, short(m.LinkFor.Duration())))
		}
	}
	if len(out) > 0 {
		missing = " (" + strings.Join(out, ", ") + ")"
	}
	return n, missing
}

// short rounds d to what a person reads at a glance.
func short(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
