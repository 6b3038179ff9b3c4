package scenario

import (
	"cmp"
	"encoding"
	"errors"
	"regexp"
	"strings"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/scouting"
)

// electorKeys replace what the profile says.
type electorKeys struct {
	InitialWait        scalar `yaml:"initial_wait"`
	MinRandomWait      scalar `yaml:"min_random_wait"`
	MaxRandomWait      scalar `yaml:"max_random_wait"`
	ScoutingResult     scalar `yaml:"scouting_result"`
	ElectionResult     scalar `yaml:"election_result"`
	HeartbeatBroadcast scalar `yaml:"heartbeat_broadcast"`
	HeartbeatMissCount scalar `yaml:"heartbeat_miss_count"`
	Lease              scalar
	ClockDrift         scalar `yaml:"clock_drift"`
	Quorum             scalar
	UnsafeQuorum       scalar `yaml:"unsafe_quorum"`
	Takeover           scalar
	QoS                scalar `yaml:"qos"`
	Phi                scalar
}

// asMappings are the keys of scalars that may be written as mappings.
var asMappings = []string{"qos", "phi"}

// election reads how the nodes elect: the profile, and what replaces it.
func (b *builder) election(k *fileKeys) {
	e, own, scout := &b.s.Election, &k.Elector.keys, true
	b.s.Profile = "article"
	profiles := elector.ProfileNames()
	read(b, k.Profile, &b.s.Profile, oneOf("one of "+strings.Join(profiles, ", "), profiles...))
	e.Timing, _ = elector.Profile(b.s.Profile)
	if read(b, own.QoS, &e.QoS, fieldsOr[detector.QoS](detector.ExampleQoS)) {
		e.Timing = elector.ForQoS(e.QoS)
	}
	read(b, k.Scouting, &scout, parseFlag)
	b.s.Scouting, e.UnsafeNoScouting = scout, !scout
	rule := ""
	read(b, k.Rule, &rule, oneOf("default or node-order", "default", "node-order"))
	if rule == scouting.RuleNodeOrder.String() {
		e.Rule = scouting.RuleNodeOrder
	}
	read(b, own.InitialWait, &e.Timing.InitialWait, parsePositive)
	read(b, own.MinRandomWait, &e.Timing.MinRandomWait, parseDuration)
	read(b, own.MaxRandomWait, &e.Timing.MaxRandomWait, parsePositive)
	read(b, own.ScoutingResult, &e.Timing.ScoutingResult, parsePositive)
	read(b, own.ElectionResult, &e.Timing.ElectionResult, parsePositive)
	read(b, own.HeartbeatBroadcast, &e.Timing.HeartbeatBroadcast, parsePositive)
	read(b, own.Lease, &e.Timing.Lease, parsePositive)
	read(b, own.Takeover, &e.Takeover, parsePositive)
	read(b, own.HeartbeatMissCount, &e.Timing.HeartbeatMissCount, parseInt)
	read(b, own.ClockDrift, &e.Timing.ClockDriftPPM, parseDrift)
	if read(b, own.Phi, &e.Phi, fieldsOr[detector.PhiConfig](detector.ExamplePhi)) {
		e.Phi = e.Phi.WithDefaults(e.Timing.HeartbeatBroadcast, e.Timing.Promise())
	}
	read(b, own.UnsafeQuorum, &e.UnsafeQuorum, parseFlag)
	if read(b, own.Quorum, &e.Quorum, parseInt) && e.Quorum < 1 {
		b.at(own.Quorum.place, "quorum is %d, but must be 1 or more; leave it out for a majority",
			e.Quorum)
		e.Quorum = 0
	}
	b.validate(k)
}

// validate reports what the elector itself finds wrong, at the key that says it:
// the setting's own, or that of the other settings, without which the profile alone
// would be wrong. More voters than it takes are wrong only if it plays: other algorithms may.
func (b *builder) validate(k *fileKeys) {
	var found *elector.ConfigError
	voters := b.s.Election.Voters
	if len(voters) == 0 || !errors.As(b.s.Config(*b.s.node(voters[0])).Validate(), &found) {
		return
	}
	settings := fieldsOf[scalar](&k.Elector.keys)
	for _, p := range found.Problems {
		if p.Field == "Voters" && len(b.s.Election.Voters) > scouting.MaxVoters {
			continue
		}
		name, at := inFormat(p.Field), cmp.Or(k.Elector.place, k.Profile.place)
		setting, _, _ := strings.Cut(name, ".") // of one with several fields
		if s := settings[setting]; s != nil && s.there() {
			at = s.place
		} else if name == "nodes" {
			at = k.Nodes.place
		}
		b.at(at, "%s is %s, but must be %s", name, p.Value, inFormat(p.Want))
	}
}

var (
	camelCase = regexp.MustCompile(`\b(Timing\.)?([A-Z][a-z]+)+\b`)
	inside    = regexp.MustCompile(`\B[A-Z]`)
)

// inFormat writes the names of the elector's settings in its messages as the format
// does: Timing.InitialWait is initial_wait here, and Voters are nodes.
func inFormat(text string) string {
	text = strings.ReplaceAll(text, "QoS", "qos")
	text = camelCase.ReplaceAllStringFunc(text, func(name string) string {
		snake := inside.ReplaceAllString(strings.TrimPrefix(name, "Timing."), "_$0")
		return strings.Replace(strings.ToLower(snake), "voters", "nodes", 1)
	})
	return strings.ReplaceAll(text, "drift", "clock_drift")
}

// fieldsOr returns a parser of what may be written as a mapping.
func fieldsOr[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](example string) func(string) (T, string) {
	return func(text string) (to T, wrong string) {
		if err := P(&to).UnmarshalText([]byte(text)); err != nil {
			wrong = "{" + example + "}, for example: " + err.Error()
		}
		return to, wrong
	}
}

// parseDrift returns parts per million.
func parseDrift(text string) (int64, string) {
	ppm, wrong := parseShare(text)
	if wrong != "" || ppm > million/2 {
		return 0, "a share from 0% to 50%, as in 2%"
	}
	return int64(ppm), ""
}
