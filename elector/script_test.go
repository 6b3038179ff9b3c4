package elector_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// TestScripts runs every script under testdata/elector. README.md there
// explains the language; `go test ./elector -run TestScripts -rewrite` writes
// what the machine did into the scripts, to be reviewed as a diff.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "../testdata/elector", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		s := &script{t: t, random: 50}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t, s.d = t, d
			return s.command()
		})
	})
}

// script is one machine, with what the language of the scripts needs to drive it.
type script struct {
	t         *testing.T
	d         *datadriven.TestData
	m         *elector.Machine
	self      elector.NodeID
	now       elector.Time
	steps     uint64
	random    uint64   // per cent: what every random draw comes to
	period    string   // of heartbeats, as configured: it is not shown
	slowDisk  bool     // Persisted comes by hand
	role      string   // the machine begins in this role ...
	term0     int      // ... and this term
	record0   []string // ... and this record
	unpersist elector.Persisted
	texts     map[string]string                                   // how identities and hashes read
	sent      map[elector.NodeID]map[elector.Kind]elector.Message // newest of each kind
	rounds    []string                                            // round IDs in order of appearance
}

func (s *script) command() string {
	switch s.d.Cmd {
	case "machine":
		return s.machine()
	case "do":
		return s.do()
	case "pass":
		return s.pass()
	case "status":
		return s.status()
	case "record":
		return s.recordStatus()
	case "confirmed":
		return fmt.Sprintf("%s\n", s.m.Confirmed())
	}
	s.d.Fatalf(s.t, "unknown command %q", s.d.Cmd)
	return ""
}

// machine makes a new machine: self=a voters=(a,b,c) and any configuration.
func (s *script) machine() string {
	cfg := elector.Config{Timing: elector.Article(), Bounds: reserving(0)}
	cfg.Timing.Lease = time.Second // round moments are easier to read
	*s = script{t: s.t, d: s.d, random: 50, term0: 3, texts: map[string]string{},
		sent: map[elector.NodeID]map[elector.Kind]elector.Message{}}
	directory := ""
	for _, arg := range s.d.CmdArgs {
		if arg.Key == "directory" {
			directory = "/" + arg.Vals[0]
			continue
		}
		s.configure(&cfg, arg.Key, arg.Vals)
	}
	cfg.Identity = s.voter(string(cfg.Self) + directory).Identity
	m, err := elector.New(cfg)
	if err != nil {
		return strings.ReplaceAll(err.Error(), "; ", ";\n  ") + "\n"
	}
	s.m, s.self = m, cfg.Self
	s.period = fmt.Sprintf(" period=%s", cfg.Timing.HeartbeatBroadcast)
	return s.cast()
}

func (s *script) configure(cfg *elector.Config, key string, vals []string) {
	val := ""
	if len(vals) > 0 {
		val = vals[0]
	}
	switch key {
	case "self":
		cfg.Self = elector.NodeID(val)
	case "voters":
		for _, v := range vals {
			cfg.Voters = append(cfg.Voters, elector.NodeID(v))
		}
	case "profile":
		cfg.Timing, _ = elector.Profile(val)
	case "priority":
		cfg.Priority = s.atoi(val)
	case "quorum":
		cfg.Quorum = s.atoi(val)
	case "qos":
		cfg.QoS = detector.QoS{Detect: s.duration(val), Accuracy: 0.99999,
			Mistakes: detector.Recurrence(24 * time.Hour)}
		cfg.Timing = elector.ForQoS(cfg.QoS)
	case "prepare":
		cfg.Prepare = s.duration(val)
	case "takeover":
		cfg.Takeover = s.duration(val)
	case "unsafe-quorum":
		cfg.UnsafeQuorum = true
	case "not-candidate":
		cfg.NotCandidate = true
	case "no-scouting":
		cfg.UnsafeNoScouting = true
	case "rule":
		cfg.Rule = scouting.RuleNodeOrder
	case "reserve":
		cfg.Bounds.Reserve = lsn.Term(s.atoi(val))
	case "leap": // no term rises by more, neither by a message nor in a minute
		cfg.Bounds.Leap = lsn.Term(s.atoi(val))
		cfg.Bounds.Climb, cfg.Bounds.Near = cfg.Bounds.Leap, 1
	case "slow-disk":
		s.slowDisk = true
	case "as":
		s.role = val
	case "record":
		s.record0 = append(s.record0, "record="+val)
	case "of":
		s.record0 = append(s.record0, "voters="+strings.Join(vals, ","))
	case "value", "lineage", "founding":
		s.record0 = append(s.record0, key+"="+val)
	case "lost":
		for _, v := range vals {
			cfg.Lost = append(cfg.Lost, s.voter(v))
		}
	case "term":
		s.term0 = s.atoi(val)
	default:
		s.configureTimer(&cfg.Timing, key, val)
	}
}

func (s *script) configureTimer(t *elector.Timing, key, val string) {
	timers := map[string]*time.Duration{
		"initial-wait":    &t.InitialWait,
		"min-random-wait": &t.MinRandomWait, "max-random-wait": &t.MaxRandomWait,
		"scouting-result": &t.ScoutingResult, "election-result": &t.ElectionResult,
		"heartbeat-broadcast": &t.HeartbeatBroadcast, "lease": &t.Lease,
	}
	switch key {
	case "miss-count":
		t.HeartbeatMissCount = s.atoi(val)
	case "drift-ppm":
		t.ClockDriftPPM = int64(s.atoi(val))
	default:
		timer, ok := timers[key]
		if !ok {
			s.d.Fatalf(s.t, "unknown option %q", key)
		}
		*timer = s.duration(val)
	}
}

// do takes one input a line: "<time> <what>", and shows the effects.
func (s *script) do() string {
	var out strings.Builder
	for line := range strings.Lines(s.d.Input) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fmt.Fprintf(&out, "%s\n", line)
		for shown := range strings.Lines(s.line(line)) {
			fmt.Fprintf(&out, "  %s", shown)
		}
	}
	return out.String()
}

// pass lets a leader's time pass, with followers that ack each heartbeat at once and ask for
// the given periods. It shows the heartbeats with a new period.
func (s *script) pass() string {
	var out strings.Builder
	until, wanted := elector.Time(0), map[elector.NodeID]time.Duration{}
	for _, arg := range s.d.CmdArgs {
		if arg.Key == "until" {
			until = elector.Time(s.duration(arg.Vals[0]))
			continue
		}
		wanted[elector.NodeID(arg.Key)] = s.duration(arg.Vals[0])
	}
	for period := s.m.Status().Period; ; {
		wake := s.m.Clone().Step(s.now, 0, elector.Tick{}).Wake
		if wake > until {
			return out.String()
		}
		s.now = wake
		text := s.step(elector.Tick{})
		if p := s.m.Status().Period; p != period {
			fmt.Fprintf(&out, "%s\n  %s", s.now, cutWake(text))
			period = p
		}
		for _, id := range slices.Sorted(maps.Keys(wanted)) {
			s.line(fmt.Sprintf("%s %s: ack period=%s", s.now, id, wanted[id]))
		}
	}
}

// line does what one line says, and returns the effects.
func (s *script) line(text string) string {
	words := strings.Fields(text)
	s.now = elector.Time(s.duration(words[0]))
	return s.step(s.input(words[1:]))
}

// step steps the machine, plays the disk, and returns what came out.
func (s *script) step(in elector.Input) string {
	s.steps++
	refused := s.refused(in)
	e := s.m.Step(s.now, entropyFor(s.random, s.steps), in)
	require.False(s.t, s.m.Wastes(), "after %v", in)
	state := s.m.State()
	require.NoError(s.t, spec.Consistent(&state))
	for _, m := range e.Messages {
		require.NoError(s.t, spec.True(&state, &m))
		s.remember(m)
	}
	text := strings.ReplaceAll(s.nameRounds(e.String()), s.period, "")
	text = refused + s.nameTexts(text)
	require.Truef(s.t, legal(e.Transitions), "illegal transition in %s", e)
	if e.Persist != (elector.Terms{}) {
		s.unpersist.Term = e.Persist.Reserved
	}
	if e.Accept != (elector.Record{}) {
		s.unpersist.Record = e.Accept.LSN
	}
	if done := s.unpersist; done != (elector.Persisted{}) && !s.slowDisk {
		s.unpersist = elector.Persisted{}
		// The second step follows at once, so the wake of the first does not count.
		return cutWake(text) + s.step(done)
	}
	s.restsSoon(e.Wake)
	return text
}

// restsSoon requires that a driver does not tick for ever at one moment.
func (s *script) restsSoon(wake elector.Time) {
	for m, ticks := s.m.Clone(), 0; wake <= s.now; ticks++ {
		require.Less(s.t, ticks, 4)
		wake = m.Step(s.now, 1, elector.Tick{}).Wake
	}
}

func legal(ts []elector.Transition) bool {
	for _, t := range ts {
		if !t.Legal() {
			return false
		}
	}
	return true
}

var wakeLine = regexp.MustCompile(`(?m)^wake .*\n`)

func cutWake(text string) string { return wakeLine.ReplaceAllString(text, "") }

func (s *script) remember(e elector.Envelope) {
	if s.sent[e.To] == nil {
		s.sent[e.To] = map[elector.Kind]elector.Message{}
	}
	s.sent[e.To][e.Message.Kind] = e.Message
}

// newest returns the newest message of kind that went to id or to all.
func (s *script) newest(id elector.NodeID, kind elector.Kind) elector.Message {
	one, all := s.sent[id][kind], s.sent[elector.AllMembers][kind]
	if one.SentAt > all.SentAt || one.Sequence > all.Sequence || all.Kind == 0 {
		return one
	}
	return all
}

var roundID = regexp.MustCompile(`round=([0-9a-f]+)`)

// nameRounds shows the random round IDs as R1, R2, ...
func (s *script) nameRounds(text string) string {
	return roundID.ReplaceAllStringFunc(text, func(m string) string {
		id := strings.TrimPrefix(m, "round=")
		for i, known := range s.rounds {
			if known == id {
				return fmt.Sprintf("round=R%d", i+1)
			}
		}
		s.rounds = append(s.rounds, id)
		return fmt.Sprintf("round=R%d", len(s.rounds))
	})
}

func orNone(id elector.NodeID) string {
	if id == "" {
		return "none"
	}
	return string(id)
}

func (s *script) atoi(v string) int {
	n, err := strconv.Atoi(v)
	if err != nil {
		s.d.Fatalf(s.t, "%v", err)
	}
	return n
}

func (s *script) duration(v string) time.Duration {
	d, err := time.ParseDuration(v)
	if err != nil {
		s.d.Fatalf(s.t, "%v", err)
	}
	return d
}

// entropyFor returns the entropy for which the machine's first draw comes to
// the given share of its range: the inverse of its finaliser.
// A serial number in its lowest bits keeps the round IDs of a script apart.
func entropyFor(percent, serial uint64) uint64 {
	z := ^uint64(0)/100*percent + serial
	z ^= z>>31 ^ z>>62
	z *= 0x319642b2d24d8ec3
	z ^= z>>27 ^ z>>54
	z *= 0x96de1b173f119089
	z ^= z>>30 ^ z>>60
	return z - 0x9e3779b97f4a7c15
}
