package diagnosis

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	beats "github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/netmesh"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nothing is a Handler that does nothing.
type nothing struct{}

func (nothing) LinkUp(netmesh.PeerInfo)                                  {}
func (nothing) LinkDown(elector.NodeID, elector.Evidence)                {}
func (nothing) Died(elector.NodeID, elector.Proof)                       {}
func (nothing) Received(elector.NodeID, string, elector.Message)         {}
func (nothing) Noted(elector.NodeID, netmesh.Note)                       {}
func (nothing) Changed(elector.NodeID, uint64, []beats.Change)           {}
func (nothing) Beaten(elector.NodeID, uint64, beats.Beat, time.Duration) {}
func (nothing) Acked(elector.NodeID, uint64, beats.Ack)                  {}

// node is a mesh with the diagnosis of what it sees.
type node struct {
	*Diagnosis
	mesh   *netmesh.Mesh
	faults *fault.Faults
	clock  *skewed
}

// start starts a node on a network in memory.
func start(t *testing.T, net *memnet.Network, name string,
	edit func(*Config, *netmesh.Config)) *node {
	n := &node{faults: fault.New(), clock: &skewed{from: time.Now()}}
	cfg := Config{Node: elector.NodeID(name), Logger: hclog.NewNullLogger()}
	mesh := netmesh.Config{
		Cluster: "test", Node: cfg.Node, Identity: uuid.NewSHA1(uuid.Nil, []byte(name)), Boot: 1,
		Bind: name + ":7000", Network: net.Host(name), Faults: n.faults, Clock: n.clock,
	}
	if edit != nil {
		edit(&cfg, &mesh)
	}
	n.Diagnosis = New(cfg)
	mesh.Facts = n.Facts("")
	var err error
	n.mesh, err = netmesh.Listen(mesh, n.Handler(nothing{}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.mesh.Close(context.Background())) })
	return n
}

// pair starts two nodes, of which a dials b.
func pair(t *testing.T, edit func(*Config, *netmesh.Config)) (a, b *node) {
	net := memnet.New()
	a, b = start(t, net, "a", edit), start(t, net, "b", edit)
	a.mesh.AddPeer("b", "b:7000")
	synctest.Wait()
	return a, b
}

// mustFind returns the only finding of n, whose detail must have all the words.
func (n *node) mustFind(t *testing.T, kind findings.Kind, peer elector.NodeID,
	words ...string) findings.Finding {
	t.Helper()
	all := n.Findings()
	require.Len(t, all, 1, "%v", all)
	require.Equal(t, kind, all[0].Kind)
	require.Equal(t, peer, all[0].Peer)
	require.Equal(t, kind.Advice(), all[0].Advice)
	for _, word := range words {
		require.Contains(t, all[0].Detail, word)
	}
	return all[0]
}

func TestVotersThatDifferAreNamedOnBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		voters := func(names ...elector.NodeID) func(*Config, *netmesh.Config) {
			return func(c *Config, m *netmesh.Config) { c.Voters = names }
		}
		a := start(t, net, "a", voters("c", "a", "b"))
		b := start(t, net, "b", voters("a", "b", "d", "e"))
		a.mesh.AddPeer("b", "b:7000")
		synctest.Wait()
		words := []string{`only node "a" counts "c"`, `only node "b" counts "d", "e"`, "(3)", "(4)"}
		a.mustFind(t, findings.VotersDiffer, "b", words...)
		b.mustFind(t, findings.VotersDiffer, "a", words...)
		require.True(t, a.mesh.Links()[0].Up, "a change of voters passes through this")
		since := a.Findings()[0].Since
		time.Sleep(time.Hour)
		require.Equal(t, since, a.Findings()[0].Since)

		require.NoError(t, b.mesh.Close(t.Context()))
		synctest.Wait()
		require.Empty(t, a.Findings(), "of a node that is gone nothing is known")
		b = start(t, net, "b", func(c *Config, m *netmesh.Config) {
			c.Voters, m.Boot = []elector.NodeID{"b", "a", "c"}, 2
		})
		time.Sleep(time.Minute)
		require.True(t, a.mesh.Links()[0].Up)
		require.Empty(t, append(a.Findings(), b.Findings()...), "the order is no difference")
	})
}

// TestVotersThatWereDeclaredLostMayDiffer: of a, b, c, d only a was left. b was readmitted, and
// its new data directory has no record of the emergency.
func TestVotersThatWereDeclaredLostMayDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, func(c *Config, _ *netmesh.Config) {
			c.Voters = []elector.NodeID{"a", "b", "c", "d"}
			if c.Node == "a" {
				c.Voters, c.Lost = []elector.NodeID{"a", "b"}, []elector.NodeID{"c", "d"}
			}
		})
		require.True(t, a.mesh.Links()[0].Up)
		require.Empty(t, append(a.Findings(), b.Findings()...))
	})
	synctest.Test(t, func(t *testing.T) { // the other end, where c is readmitted already
		a, b := pair(t, func(c *Config, _ *netmesh.Config) {
			c.Voters = []elector.NodeID{"a", "b", "c"}
			c.Lost = []elector.NodeID{"d"}
			if c.Node == "a" {
				c.Voters, c.Lost = []elector.NodeID{"a", "b", "x"}, []elector.NodeID{"c", "d"}
			}
		})
		f := a.mustFind(t, findings.VotersDiffer, "b", `only node "a" counts "x"`)
		require.NotContains(t, f.Detail, `"c"`)
		b.mustFind(t, findings.VotersDiffer, "a", `only node "a" counts "x"`)
	})
}

// TestVotersThatDifferAreNotToldAsAQuorum: of four voters, a quorum of 3 is a majority.
func TestVotersThatDifferAreNotToldAsAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t, func(c *Config, _ *netmesh.Config) {
			c.Voters, c.Settings = []elector.NodeID{"a", "b", "c"}, map[string]string{"quorum-rule": "3"}
			if c.Node == "a" {
				c.Voters = append(c.Voters, "d")
				c.Settings["quorum-rule"] = "a majority"
			}
		})
		a.mustFind(t, findings.VotersDiffer, "b")
	})
}

func TestSettingsThatDifferAreNamedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := map[elector.NodeID]map[string]string{
			"a": {"lease": "2s", "quorum": "2", "drift": "1%", "only a": "x"},
			"b": {"lease": "3s", "quorum": "2", "drift": "1 %\n", "only b": "x"},
		}
		a, b := pair(t, func(c *Config, _ *netmesh.Config) { c.Settings = settings[c.Node] })
		for n, peer := range map[*node]elector.NodeID{a: "b", b: "a"} {
			f := n.mustFind(t, findings.SettingsDiffer, peer,
				`lease is "`, `"2s" on node "a"`, `"3s" on node "b"`, `"1 %\n" on node "b"`)
			require.NotContains(t, f.Detail, "quorum")
			require.NotContains(t, f.Detail, "only", "a newer build may know more settings")
		}
	})
}

func TestNothingIsFoundWhereAllIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, func(c *Config, _ *netmesh.Config) {
			c.Voters, c.Settings, c.MaxDriftPPM = []elector.NodeID{"a", "b"},
				map[string]string{"lease": "2s"}, 1
		})
		time.Sleep(time.Hour)
		require.Empty(t, append(a.Findings(), b.Findings()...))
	})
}

// TestRefusalsAreFindingsForAMinute, or until the peer is accepted.
func TestRefusalsAreFindingsForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a := start(t, net, "a", nil)
		b := start(t, net, "b", func(_ *Config, m *netmesh.Config) { m.Cluster = "other" })
		b.mesh.AddPeer("a", "a:7000")
		time.Sleep(time.Second)
		a.mustFind(t, findings.WrongCluster, "b", `"other"`, `"test"`)
		b.mustFind(t, findings.WrongCluster, "a", `"other"`, `"test"`)
		require.NoError(t, b.mesh.Close(t.Context()))
		time.Sleep(50 * time.Second)
		require.NotEmpty(t, a.Findings())
		time.Sleep(11 * time.Second)
		require.Empty(t, a.Findings())

		a.report(findings.NameTwice, "b", "two of them")
		b = start(t, net, "b", nil)
		b.mesh.AddPeer("a", "a:7000")
		synctest.Wait()
		require.Empty(t, a.Findings(), "it was let in")
	})
}

func TestReasonsThatAreFindings(t *testing.T) {
	kinds := map[string]findings.Kind{
		"foreign-cluster": findings.WrongCluster, "duplicate-name": findings.NameTwice,
		"data-dir-copied": findings.DirectoryCopied, "version": findings.Version,
		"self": findings.WrongNode, "wrong-node": findings.WrongNode, "proxied": findings.ProxyBetween,
		"tls": findings.TLS, "data-dir-outdated": findings.DirectoryOutdated,
	}
	for _, reason := range netmesh.Reasons() {
		d := New(Config{Logger: hclog.NewNullLogger()})
		watcher{nothing{}, d}.Refused("b", reason, "why")
		if kind, ok := kinds[reason.String()]; ok {
			require.Equal(t, kind, d.Findings()[0].Kind, reason)
		} else {
			require.Empty(t, d.Findings(), reason)
		}
	}
}
