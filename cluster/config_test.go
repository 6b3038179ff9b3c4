package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestValidateNamesEveryMistakeAtOnce(t *testing.T) {
	err := Config{
		Node: "a b", Voters: []NodeID{"x", "x"}, GossipAddr: "7400", MeshAddr: "host:http",
		Join: []string{"b.example"}, Election: ElectionConfig{Quorum: 9},
	}.Validate()
	for _, part := range []string{
		`Node is "a b"`, `"x" twice`, "Election.Quorum is 9", "DataDir is empty, but must be",
		`GossipAddr is "7400"`, `MeshAddr is "host:http"`, `Join[0] is "b.example"`,
	} {
		require.ErrorContains(t, err, part)
	}
	require.ErrorAs(t, err, new(*ConfigError))
}

// valid is a configuration without a mistake.
var valid = Config{Node: "a", Voters: []NodeID{"a"}, DataDir: "d"}

func TestValidateNamesTheMistake(t *testing.T) {
	require.NoError(t, valid.Validate())
	for _, c := range []struct {
		change func(c *Config)
		want   string // "" for none
	}{
		{func(c *Config) { c.Join = []string{"192.0.2.7:7400"} }, "GossipAddr is 127.0.0.1:7400, " +
			"but must be an address that other machines reach, since 192.0.2.7:7400 is to be joined"},
		{func(c *Config) { c.Join = []string{"192.0.2.7:7400"} }, "MeshAddr is 127.0.0.1:7401"},
		{func(c *Config) {
			c.Join, c.Insecure = []string{"192.0.2.7:7400"}, true
			c.GossipAddr, c.AdvertiseMesh = "0.0.0.0:7400", "192.0.2.1:7401"
		}, ""},
		{func(c *Config) { c.Join = []string{"127.0.0.1:7500"} }, ""}, // on one machine
		{func(c *Config) { c.Cluster = "two words" }, `Cluster is "two words"`},
		{func(c *Config) { c.GossipAddr, c.MeshAddr = "127.0.0.1:0", "127.0.0.1:0" }, ""},
		{func(c *Config) { c.GossipAddr, c.MeshAddr = "127.0.0.1:7402", "127.0.0.1:7402" },
			"MeshAddr is 127.0.0.1:7402, but must be another address than GossipAddr, which takes TCP " +
				"and UDP of its port: give each a port of its own"},
		{func(c *Config) { c.MinTerm = lsn.MaxTerm - 1 }, ""},
		{func(c *Config) { c.MinTerm = lsn.MaxTerm },
			"MinTerm is 9223372036854775807, but must be below 9223372036854775807, the highest term"},
		{func(c *Config) { c.MinTerm = lsn.MaxTerm + 1 }, "MinTerm is 9223372036854775808"},
		{func(c *Config) { c.Election.Phi.Window = 100 }, ""}, // the rest of phi follows from it
		{func(c *Config) { c.Election.StopMargin = -1 }, "Election.StopMargin is -1ns, but must be " +
			"positive and shorter than Lease - HeartbeatBroadcast, 900ms"},
		{func(c *Config) { c.Election.StopMargin = 900 * time.Millisecond },
			"Election.StopMargin is 900ms"},
		{func(c *Config) { c.Election.StopMargin = 899 * time.Millisecond }, ""},
		{func(c *Config) { c.Meta = "two\nlines" }, `Meta is "two\nlines", but must be printable text ` +
			"of at most 512 bytes, in UTF-8"},
		{func(c *Config) { c.Meta = strings.Repeat("x", 512) }, ""},
		{func(c *Config) { c.Meta = strings.Repeat("x", 513) }, "Meta is "},
	} {
		cfg := valid
		c.change(&cfg)
		if err := cfg.Validate(); c.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
	election := valid.withDefaults().Election
	require.Equal(t, elector.Article(), election.Timing)
	require.Equal(t, 450*time.Millisecond, election.StopMargin)
}

// TestOffLoopbackTLSIsDemanded, or the word that none is wanted.
func TestOffLoopbackTLSIsDemanded(t *testing.T) {
	for name, c := range map[string]Config{
		"":                              {},
		"GossipAddr 0.0.0.0:7400":       {GossipAddr: "0.0.0.0:7400"},
		"MeshAddr [2001:db8::1]:7401":   {MeshAddr: "[2001:db8::1]:7401"},
		"MeshAddr n1.example:7401":      {MeshAddr: "n1.example:7401"},
		"AdvertiseGossip 192.0.2.1:1":   {AdvertiseGossip: "192.0.2.1:1"},
		"AdvertiseMesh n1.localhost:1":  {AdvertiseMesh: "n1.localhost:1"},
		"GossipAddr a:1, MeshAddr b:2:": {GossipAddr: "a:1", MeshAddr: "b:2"},
	} {
		c.Node, c.Voters, c.DataDir = "a", []NodeID{"a"}, "d"
		err := c.Validate()
		if name == "" {
			require.NoError(t, err)
			c.GossipAddr, c.MeshAddr = "localhost:7400", "[::1]:7401"
			require.NoError(t, c.Validate())
			continue
		}
		require.ErrorContains(t, err, "TLS is not set, but must be set, since other machines may reach "+
			name)
		require.ErrorContains(t, err, "'bmqnode certs --dir DIR NODE...'; or set Insecure")
		secure := c
		secure.TLS = TLSDir("d")
		require.NoError(t, secure.Validate(), name)
		c.Insecure = true
		require.NoError(t, c.Validate(), name)
	}
}

func TestTheDetectorHasAName(t *testing.T) {
	for want, e := range map[string]ElectionConfig{
		"miss-count, 3 heartbeats of 500ms": {},
		"qos":                               {QoS: detector.QoS{Detect: time.Second}},
		"phi, threshold: 8, window: 9, min-deviation: 50ms, pause: ": {Phi: detector.PhiConfig{Window: 9}},
	} {
		require.Contains(t, detectorName(Config{}.elector(e.withDefaults())), want)
	}
}

// What members compare is what is in force: a quorum that is spelled out is the
// same as the default that comes to it, and one that follows from the voters is not
// told as a difference beside that of the voters.
func TestWhatIsAgreedIsWhatIsInForce(t *testing.T) {
	plain := Config{Node: "a", Voters: []NodeID{"a", "b", "c"}}
	spelled := plain
	spelled.Election = ElectionConfig{Timing: elector.Article(), Quorum: 2}
	require.Equal(t, plain.Agreed(), spelled.Agreed())
	more := plain
	more.Voters = []NodeID{"a", "b", "c", "d"}
	require.Equal(t, plain.Agreed(), more.Agreed())
	suspicious := plain // safe: a promise binds for its time, whoever suspects
	suspicious.Election.Phi.Threshold = 5
	require.Equal(t, plain.Agreed(), suspicious.Agreed())
	for name, change := range map[string]func(*Config){
		"quorum-rule":    func(c *Config) { c.Election.Quorum = 3 },
		"no-death-proof": func(c *Config) { c.NoDeathProof = true },
		"lease":          func(c *Config) { c.Election.Timing = elector.BlazingMQ() },
	} {
		other := plain
		change(&other)
		require.NotEqual(t, plain.Agreed()[name], other.Agreed()[name], name)
	}
}

// During a rolling upgrade nothing differs between an old and a new process that are
// configured alike. What a process before protocol version 3 tells is written out here: its
// default lease was 1 s, which another default must not be taken for.
func TestAnOlderProcessAgreesIfItIsConfiguredAlike(t *testing.T) {
	c := Config{Node: "a", Voters: []NodeID{"a", "b", "c"}}
	require.NotEqual(t, "1s", c.Agreed()["lease"])
	c.Election.Timing = elector.Article()
	c.Election.Timing.Lease = time.Second
	agreed := c.Agreed()
	for name, value := range map[string]string{
		"heartbeat-broadcast": "500ms", "heartbeat-miss-count": "3", "lease": "1s",
		"clock-drift-ppm": "20000",
		"quorum":          "2", "scouting-rule": "default", "unsafe-no-scouting": "false",
	} {
		if mine, compared := agreed[name]; compared {
			require.Equal(t, value, mine, name)
		}
	}
}
