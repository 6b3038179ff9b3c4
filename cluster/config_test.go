package cluster

import (
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

func TestANodeThatJoinsOthersMustBeReachable(t *testing.T) {
	c := Config{Node: "a", Voters: []NodeID{"a", "b"}, DataDir: "d", Join: []string{"192.0.2.7:7400"}}
	err := c.Validate()
	require.ErrorContains(t, err,
		"GossipAddr is 127.0.0.1:7400, but must be an address that other machines reach, since 192.0.2.7:7400 is to be joined")
	require.ErrorContains(t, err, "MeshAddr is 127.0.0.1:7401")
	c.GossipAddr, c.AdvertiseMesh = "0.0.0.0:7400", "192.0.2.1:7401"
	c.Insecure = true
	require.NoError(t, c.Validate())
	c = Config{Node: "a", Voters: []NodeID{"a"}, DataDir: "d", Join: []string{"127.0.0.1:7500"}}
	require.NoError(t, c.Validate(), "on one machine loopback will do")
	c.Cluster = "two words"
	require.ErrorContains(t, c.Validate(), `Cluster is "two words"`)
}

func TestNoTwoListenOnOnePort(t *testing.T) {
	for addr, right := range map[string]bool{"127.0.0.1:7402": false, "127.0.0.1:0": true} {
		c := Config{Node: "a", Voters: []NodeID{"a"}, DataDir: "d", GossipAddr: addr, MeshAddr: addr}
		if err := c.Validate(); right {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "MeshAddr is 127.0.0.1:7402, but must be another address than "+
				"GossipAddr, which takes TCP and UDP of its port: give each a port of its own")
		}
	}
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

func TestATermIsLeftAboveTheMinimum(t *testing.T) {
	c := Config{Node: "a", Voters: []NodeID{"a"}, DataDir: "d", MinTerm: lsn.MaxTerm - 1}
	require.NoError(t, c.Validate())
	for range 2 {
		c.MinTerm++
		require.ErrorContains(t, c.Validate(), "MinTerm is "+c.MinTerm.String()+
			", but must be below 9223372036854775807, the highest term")
	}
}

func TestZeroElectionIsTheArticles(t *testing.T) {
	c := Config{Node: "a", Voters: []NodeID{"a"}, DataDir: "d"}
	require.NoError(t, c.Validate())
	require.Equal(t, elector.Article(), c.withDefaults().Election.Timing)
	c.Election.Phi.Window = 100
	require.NoError(t, c.Validate(), "the rest of phi follows from them")
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

func TestTheStopMarginLeavesTimeToWork(t *testing.T) {
	c := Config{Node: "a", Voters: []NodeID{"a"}, DataDir: "d"}
	require.Equal(t, 450*time.Millisecond, c.withDefaults().Election.StopMargin)
	for _, margin := range []time.Duration{-1, 900 * time.Millisecond, time.Hour} {
		c.Election.StopMargin = margin
		require.ErrorContains(t, c.Validate(), "Election.StopMargin is "+margin.String()+", but must be positive and shorter than Lease - HeartbeatBroadcast, 900ms")
	}
	c.Election.StopMargin = 899 * time.Millisecond
	require.NoError(t, c.Validate())
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
