package scenario

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/scouting"
)

const defaultProfile = "article"

// announced are profiles that a later version will know.
var announced = []string{"lan", "wan"}

// timers are the keys of elector.Timing's durations.
var timers = []struct {
	key, name string
	of        func(*elector.Timing) *time.Duration
}{
	{"initial_wait", "InitialWait", func(t *elector.Timing) *time.Duration { return &t.InitialWait }},
	{"max_random_wait", "MaxRandomWait", func(t *elector.Timing) *time.Duration { return &t.MaxRandomWait }},
	{"scouting_result", "ScoutingResult", func(t *elector.Timing) *time.Duration { return &t.ScoutingResult }},
	{"election_result", "ElectionResult", func(t *elector.Timing) *time.Duration { return &t.ElectionResult }},
	{"heartbeat_broadcast", "HeartbeatBroadcast", func(t *elector.Timing) *time.Duration { return &t.HeartbeatBroadcast }},
	{"lease", "Lease", func(t *elector.Timing) *time.Duration { return &t.Lease }},
}

// renamed are the names that elector's messages use and this format writes otherwise.
var renamed = func() *strings.Replacer {
	pairs := []string{
		"Timing.", "", "UnsafeQuorum", "unsafe_quorum", "Quorum", "quorum", "Voters", "nodes",
		"Takeover", "takeover", "HeartbeatMissCount", "heartbeat_miss_count", "drift", "clock_drift",
	}
	for _, t := range timers {
		pairs = append(pairs, t.name, t.key)
	}
	return strings.NewReplacer(pairs...)
}()

func electorKeys() []string {
	var keys []string
	for _, t := range timers {
		keys = append(keys, t.key)
	}
	return append(keys, "heartbeat_miss_count", "clock_drift", "quorum", "unsafe_quorum", "takeover")
}

// election reads how the nodes elect.
func (b *builder) election(o object) {
	e, scout := &b.s.Election, true
	b.profile(o)
	o.flag("scouting", &scout)
	b.s.Scouting, e.UnsafeNoScouting = scout, !scout
	read(o, "rule", &e.Rule, parseRule)
	own := o
	if v := o.get("elector"); v != nil {
		own = b.object(v, "elector", electorKeys()...)
		b.elector(own, e)
	}
	b.validate(o, own)
}

func (b *builder) elector(o object, e *elector.Config) {
	for _, t := range timers {
		o.positive(t.key, t.of(&e.Timing))
	}
	o.count("heartbeat_miss_count", &e.Timing.HeartbeatMissCount)
	read(o, "clock_drift", &e.Timing.ClockDriftPPM, parseDrift)
	if o.count("quorum", &e.Quorum) && e.Quorum < 1 {
		b.at(o.get("quorum"), "quorum is %d, but must be 1 or more; leave it out for a majority", e.Quorum)
		e.Quorum = 0
	}
	o.flag("unsafe_quorum", &e.UnsafeQuorum)
	o.positive("takeover", &e.Takeover)
}

func (b *builder) profile(o object) {
	b.s.Profile = defaultProfile
	read(o, "profile", &b.s.Profile, parseProfile)
	b.s.Election.Timing, _ = elector.Profile(b.s.Profile)
}

func parseProfile(text string) (string, string) {
	today := strings.Join(elector.ProfileNames(), " or ")
	if slices.Contains(announced, text) {
		return "", today + " today: " + strings.Join(announced, " and ") + " are for a later version"
	}
	if _, ok := elector.Profile(text); !ok {
		return "", today
	}
	return text, ""
}

func parseRule(text string) (scouting.Rule, string) {
	for _, r := range []scouting.Rule{scouting.RuleDefault, scouting.RuleNodeOrder} {
		if r.String() == text {
			return r, ""
		}
	}
	return 0, "default or node-order"
}

// parseDrift returns parts per million.
func parseDrift(text string) (int64, string) {
	ppm, wrong := parseShare(text)
	if wrong != "" || ppm > million/2 {
		return 0, "a share from 0% to 50%, as in 2%"
	}
	return int64(ppm), ""
}

// validate reports what the elector itself finds wrong, at the key that says it.
func (b *builder) validate(top, own object) {
	if len(b.s.Election.Voters) == 0 {
		return
	}
	var found *elector.ConfigError
	if !errors.As(b.s.Config(b.s.Nodes[0]).Validate(), &found) {
		return
	}
	for _, p := range found.Problems {
		name, want := renamed.Replace(p.Field), renamed.Replace(p.Want)
		b.at(place(top, own, name), "%s is %s, but must be %s", name, p.Value, want)
	}
}

// place returns the key that a setting comes from: its own, or that of the other
// settings, without which the profile alone would be wrong.
func place(top, own object, name string) *value {
	if name == "nodes" {
		return top.key("nodes")
	}
	if own.has(name) {
		return own.key(name)
	}
	if top.has("elector") {
		return top.key("elector")
	}
	return top.key("profile")
}
