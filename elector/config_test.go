package elector_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/scouting"
)

// valid is a configuration without a fault, for tests to change.
func valid() elector.Config {
	return elector.Config{Self: "a", Voters: []elector.NodeID{"c", "a", "b"},
		Timing: elector.Article()}
}

// TestValidateNamesTheFault at bounds that testdata/elector/config_errors.txt does not show.
func TestValidateNamesTheFault(t *testing.T) {
	for _, tc := range []struct {
		field  string
		change func(*elector.Config)
	}{
		{"Voters", func(c *elector.Config) { c.Voters = []elector.NodeID{"a", "b", "\n"} }},
		{"Voters", func(c *elector.Config) { c.Voters = many(scouting.MaxVoters + 1) }},
		{"Rule", func(c *elector.Config) { c.Rule = 9 }},
		{"Quorum", func(c *elector.Config) { c.Quorum = 1 }},
		{"Timing.MaxRandomWait", func(c *elector.Config) { c.Timing.MaxRandomWait = 0 }},
		{"Timing.MinRandomWait", func(c *elector.Config) { c.Timing.MinRandomWait = -1 }},
		{"Timing.MinRandomWait", func(c *elector.Config) {
			c.Timing.MinRandomWait = c.Timing.MaxRandomWait + 1
		}},
		{"Timing.Lease", func(c *elector.Config) { // the promise lasts longer than the silence
			c.Timing.MinRandomWait, c.Timing.Lease = 1, c.Timing.Inactivity()
		}},
		{"Timing.HeartbeatBroadcast", func(c *elector.Config) { c.Timing.HeartbeatBroadcast = 0 }},
		{"Timing.HeartbeatMissCount", func(c *elector.Config) { c.Timing.HeartbeatMissCount = 1001 }},
		{"Timing.Lease", func(c *elector.Config) { c.Timing.Lease = c.Timing.Inactivity() + 1 }},
		{"Timing.ClockDriftPPM", func(c *elector.Config) { c.Timing.ClockDriftPPM = -1 }},
		{"Timing.ClockDriftPPM", func(c *elector.Config) { c.Timing.ClockDriftPPM = 500_001 }},
		{"QoS.accuracy", func(c *elector.Config) { c.QoS = quality; c.QoS.Accuracy = 1 }},
		{"QoS.detect", func(c *elector.Config) { c.QoS.Accuracy = 0.9 }},
		{"Timing.Lease", func(c *elector.Config) { // 1.4s and its drift
			c.QoS = quality
			c.QoS.Detect = 1428 * millis
		}},
		{"Timing.HeartbeatBroadcast", func(c *elector.Config) {
			c.QoS = quality
			c.Timing.HeartbeatBroadcast = 700 * millis
		}},
		{"Phi", func(c *elector.Config) { c.QoS, c.Phi = quality, accrual }},
		{"Phi.window", func(c *elector.Config) { c.Phi.Threshold = 8 }},
		{"Phi", func(c *elector.Config) {
			c.Phi = accrual
			c.Phi.Pause = c.Timing.Promise() - 113*millis // 5.612 x 20 ms is 112 ms
		}},
	} {
		cfg := valid()
		tc.change(&cfg)
		t.Run(fmt.Sprint(tc.field, cfg), func(t *testing.T) {
			_, err := elector.New(cfg)
			var ce *elector.ConfigError
			require.ErrorAs(t, err, &ce)
			isIt := func(p elector.Problem) bool { return p.Field == tc.field }
			require.True(t, slices.ContainsFunc(ce.Problems, isIt), "%v", err)
		})
	}
}

func many(n int) []elector.NodeID {
	ids := make([]elector.NodeID, n)
	for i := range ids {
		ids[i] = elector.NodeID(fmt.Sprintf("n%02d", i))
	}
	return ids
}

func TestValidConfigs(t *testing.T) {
	for _, change := range []func(*elector.Config){
		func(*elector.Config) {},
		func(c *elector.Config) { c.Self = "observer" },
		func(c *elector.Config) { c.Voters = []elector.NodeID{"a"} },
		func(c *elector.Config) { c.Voters = many(scouting.MaxVoters) },
		func(c *elector.Config) { c.Quorum = 3 },
		func(c *elector.Config) { c.Quorum, c.UnsafeQuorum = 1, true },
		func(c *elector.Config) { c.Timing = elector.BlazingMQ() },
		func(c *elector.Config) { c.Timing.ClockDriftPPM = 0 },
		func(c *elector.Config) { c.Timing.ClockDriftPPM = 500_000 },
		func(c *elector.Config) { c.Timing.MinRandomWait = c.Timing.MaxRandomWait },
		func(c *elector.Config) { c.Timing.HeartbeatMissCount = 1000 },
		func(c *elector.Config) { c.Timing.ScoutingResult, c.Timing.ElectionResult = 24*time.Hour, 1 },
		func(c *elector.Config) { c.Timing.Lease = c.Timing.Inactivity() },
		func(c *elector.Config) {
			c.Timing.InitialWait, c.Timing.MaxRandomWait = c.Timing.Promise(), c.Timing.Promise()
		},
		func(c *elector.Config) {
			c.Timing.HeartbeatMissCount, c.Timing.Lease = 2, c.Timing.HeartbeatBroadcast+1
		},
		func(c *elector.Config) { c.Self = elector.NodeID(strings.Repeat("n", 128)) },
	} {
		cfg := valid()
		change(&cfg)
		require.NoError(t, cfg.Validate())
	}
}

func TestNewLeavesTheCallersVotersAlone(t *testing.T) {
	cfg := valid()
	_, err := elector.New(cfg)
	require.NoError(t, err)
	require.Equal(t, []elector.NodeID{"c", "a", "b"}, cfg.Voters)
}

func TestProfiles(t *testing.T) {
	for _, name := range elector.ProfileNames() {
		timing, ok := elector.Profile(name)
		require.True(t, ok, name)
		cfg := valid()
		cfg.Timing = timing
		require.NoError(t, cfg.Validate(), name)
		// Silence, lease and promise belong together: a follower that gives its leader up is bound
		// no more, and a lease outlasts the loss of a heartbeat.
		require.Less(t, timing.Promise(), timing.Inactivity(), name)
		require.Greater(t, timing.Lease, 2*timing.HeartbeatBroadcast, name)
	}
	_, ok := elector.Profile("nonesuch")
	require.False(t, ok)
}

func TestDerivedTimes(t *testing.T) {
	require.Equal(t, 1500*time.Millisecond, elector.Article().Inactivity())
	require.Equal(t, 1428*time.Millisecond, elector.Article().Promise())
	require.Equal(t, 20*time.Second, elector.BlazingMQ().Inactivity())
	require.Equal(t, 5100*time.Millisecond, elector.BlazingMQ().Promise())
	for n, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3} {
		require.Equal(t, want, elector.Majority(n), "of %d", n)
	}
	cfg := valid()
	require.False(t, cfg.Observer())
	cfg.Self = "o"
	require.True(t, cfg.Observer())
}

func TestNamesThatAreRefusedSayWhy(t *testing.T) {
	long := elector.NodeID(strings.Repeat("n", elector.MaxNameLength))
	for _, name := range []elector.NodeID{"a", "node-1.example", "\u00e9", long} {
		require.Empty(t, elector.NameProblem(name), name)
	}
	for name, want := range map[elector.NodeID]string{
		"": "empty", "*": "that of all members", long + "n": "129 bytes long, and the limit is 128",
		"a b": "spaces",
		"a\n": "control", "a\x7f": "control", "a\u009b": "control", "a\u00a0b": "spaces",
		"a\u202eb": "control",
	} {
		require.Contains(t, elector.NameProblem(name), want, "%q", name)
		cfg := valid()
		cfg.Self = name
		require.ErrorContains(t, cfg.Validate(), "of 1 to 128 bytes, without spaces", "%q", name)
	}
}
