package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ids of a planned cluster.
var ids = []cluster.NodeID{"a", "b", "c"}

// planned are three nodes of one machine, on ports that the system picks.
func planned(t *testing.T) []Plan {
	t.Helper()
	dir := t.TempDir()
	var plans []Plan
	for _, id := range ids {
		plans = append(plans, Plan{File: string(id) + ".yaml", AdminAddr: "127.0.0.1:0", Config: cluster.Config{
			Cluster: "bees", Node: id, Voters: ids, DataDir: filepath.Join(dir, string(id)),
			GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0", Join: []string{closed(t)},
			Election: cluster.ElectionConfig{Timing: elector.Article(), Quorum: 2},
		}})
		plans[len(plans)-1].Config.Election.Timing.ElectionResult = time.Hour // whatever the disk does
	}
	return plans
}

// closed is an address at which nobody listens.
func closed(t *testing.T) string {
	ln := open(t)
	require.NoError(t, ln.Close())
	return ln.Addr().String()
}

func open(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	return ln
}

func TestNothingIsWrongWithAGoodPlan(t *testing.T) {
	plans := planned(t)
	r := ExaminePlans(t.Context(), plans, nil)
	for _, c := range r.Checks {
		// What the machine has is not the plan's fault.
		require.True(t, c.Level == OK || c.Kind == DiskFull || c.Kind == FewFiles || c.Kind == ClockStops, "%+v", c)
	}
	for _, p := range plans {
		require.NoDirExists(t, p.Config.DataDir, "it makes nothing")
	}
	left, err := os.ReadDir(filepath.Dir(plans[0].Config.DataDir))
	require.NoError(t, err)
	require.Empty(t, left, "it leaves nothing")
}

// A default that is spelled out is no difference.
func TestAQuorumThatIsSpelledOutIsTheDefault(t *testing.T) {
	plans := planned(t)
	plans[1].Config.Election.Quorum = 0
	plans[2].Config.Election = cluster.ElectionConfig{Quorum: 2}
	for i := range plans[:2] {
		plans[i].Config.Election.Timing = elector.Article()
	}
	r := ExaminePlans(t.Context(), plans, nil)
	for _, c := range r.Checks {
		require.NotEqual(t, Kind(findings.SettingsDiffer), c.Kind, "%+v", c)
	}
}

// ranAs makes the directory that of a node.
func ranAs(t *testing.T, dir, node string) *store.Store {
	s, err := store.Open(dir, store.Owner{Cluster: "bees", Node: node})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// faults of a plan: what is planted, and what must be said of it.
var planFaults = map[string]struct {
	plant func(*testing.T, []Plan)
	kind  Kind
	level Level
	what  string // in where or what
}{
	"a wrong file": {
		func(_ *testing.T, p []Plan) { p[1].Problem = errors.New("lease: soon") }, ConfigInvalid, Fail, "b.yaml: lease: soon",
	},
	"clusters differ": {
		func(_ *testing.T, p []Plan) { p[1].Config.Cluster = "wasps" }, "wrong-cluster", Fail, `a.yaml - b.yaml: the cluster is "bees" in the one and "wasps" in the other`,
	},
	"voters differ": {
		func(_ *testing.T, p []Plan) { p[2].Config.Voters = []cluster.NodeID{"c", "a", "d"} }, "voters-differ", Fail, "a.yaml - c.yaml: the voters are a, b, c in the one and a, c, d in the other",
	},
	"timers differ": {
		func(_ *testing.T, p []Plan) { p[1].Config.Election.Timing.Lease++ }, "settings-differ", Fail, "lease is 1s in the one and 1.000000001s in the other",
	},
	"proof of death differs": {
		func(_ *testing.T, p []Plan) { p[1].Config.NoDeathProof = true }, "settings-differ", Fail, "no-death-proof is false in the one and true in the other",
	},
	"a name twice": {
		func(_ *testing.T, p []Plan) { p[2].Config.Node = "b" }, "name-twice", Fail, "b.yaml - c.yaml: both are node b",
	},
	"a directory twice": {
		func(_ *testing.T, p []Plan) { p[2].Config.DataDir = p[1].Config.DataDir + "/." }, DataDirOwner, Fail, "b.yaml - c.yaml: both have",
	},
	"a voter without a file": {
		func(_ *testing.T, p []Plan) { p[2].Config.Node = "observer" }, VoterMissing, Warn, "c: no file is that node's",
	},
	"an even number of voters": {
		func(_ *testing.T, p []Plan) {
			for i := range p {
				p[i].Config.Voters = []cluster.NodeID{"a", "b"}
			}
		},
		EvenVoters, Warn, "there are 2: a, b",
	},
	"a port twice": {
		func(_ *testing.T, p []Plan) {
			p[0].Config.MeshAddr, p[2].Config.GossipAddr = "127.0.0.1:7401", "0.0.0.0:7401"
			p[2].Config.AdvertiseGossip = "127.0.0.1:7401"
		},
		PortClash, Fail, "a.yaml - c.yaml: mesh-addr 127.0.0.1:7401 of the one and gossip-addr 0.0.0.0:7401 of the other",
	},
	"a port twice in one file": {
		func(_ *testing.T, p []Plan) {
			p[1].Config.MeshAddr, p[1].AdminAddr = "192.0.2.7:7401", "192.0.2.7:7401"
		},
		PortClash, Fail, "b.yaml - b.yaml: mesh-addr",
	},
	"a port that is taken": {
		func(t *testing.T, p []Plan) { p[1].Config.MeshAddr = open(t).Addr().String() }, PortTaken, Fail, "taken (tcp) by ",
	},
	"a UDP port that is taken": {
		func(t *testing.T, p []Plan) {
			// An address of its own, where there is one: a TCP connection of another test
			// may have the same port on 127.0.0.1.
			udp, err := net.ListenPacket("udp", "127.0.0.77:0")
			if err != nil {
				udp, err = net.ListenPacket("udp", "127.0.0.1:0")
			}
			require.NoError(t, err)
			t.Cleanup(func() { udp.Close() })
			p[1].Config.GossipAddr = udp.LocalAddr().String()
		},
		PortTaken, Fail, "taken (udp) by ",
	},
	"an address of another machine": {
		func(_ *testing.T, p []Plan) { p[1].Config.MeshAddr = "192.0.2.7:7401" }, AddressForeign, Fail, "mesh-addr 192.0.2.7:7401: no interface of this machine has that address",
	},
	"an advertised address that leads nowhere": {
		func(t *testing.T, p []Plan) { p[1].Config.AdvertiseMesh = closed(t) }, "advertise-unreachable", Warn, "it does not lead back: connect: connection refused",
	},
	"an advertised address that leads elsewhere": {
		func(t *testing.T, p []Plan) { p[1].Config.AdvertiseGossip = answering(t) }, "advertise-unreachable", Warn, "somebody else answers there",
	},
	"translated addresses": {
		func(_ *testing.T, p []Plan) { p[1].Config.AdvertiseMesh = "127.0.0.2:0" }, DeathProof, Warn, "mesh-addr is 127.0.0.1:0, and others are told 127.0.0.2:0",
	},
	"a join address without a name": {
		func(_ *testing.T, p []Plan) { p[1].Config.Join = []string{"nowhere.invalid:7400"} }, JoinUnresolved, Fail, "nowhere.invalid:7400 (b.yaml): lookup nowhere.invalid",
	},
	"a node that nobody finds": {
		func(_ *testing.T, p []Plan) { p[1].Config.Join, p[1].Config.GossipAddr = nil, "127.0.0.9:0" }, JoinNobody, Fail, "b.yaml: it joins nobody, and nobody joins it at 127.0.0.9:0",
	},
	"a directory of another node": {
		func(t *testing.T, p []Plan) { require.NoError(t, ranAs(t, p[1].Config.DataDir, "zoe").Close()) }, DataDirOwner, Fail, "is that of node zoe of cluster bees, not of b of bees",
	},
	"a directory in use": {
		func(t *testing.T, p []Plan) { ranAs(t, p[1].Config.DataDir, "b") }, DataDirInUse, Fail, fmt.Sprintf("(pid %d)", os.Getpid()),
	},
	"a directory without its state": {
		func(t *testing.T, p []Plan) {
			require.NoError(t, ranAs(t, p[1].Config.DataDir, "b").Close())
			require.NoError(t, os.Remove(filepath.Join(p[1].Config.DataDir, "state.db")))
		},
		DataDirDamaged, Fail, "state.db is gone",
	},
	"a file for a directory": {
		func(t *testing.T, p []Plan) { require.NoError(t, os.WriteFile(p[1].Config.DataDir, nil, 0o600)) }, DataDirUnusable, Fail, "is a file, but must be a directory",
	},
	"a directory that all may write to": {
		func(t *testing.T, p []Plan) {
			require.NoError(t, os.Mkdir(p[1].Config.DataDir, 0o700))
			require.NoError(t, os.Chmod(p[1].Config.DataDir, 0o770)) // whatever the umask
		},
		DataDirOpen, Warn, "has the permissions 0770",
	},
	"a disk too slow for the timers": {
		func(_ *testing.T, p []Plan) { p[1].Config.Election.Timing.ElectionResult = 1 }, DiskSlow, Warn, "too long for an election-result of 1ns",
	},
	"a node that runs elsewhere": {
		func(_ *testing.T, p []Plan) { p[1].Running = &cluster.Status{Node: "b", Uptime: 5} }, "name-twice", Fail, "node b runs already, for 5s, and not on ",
	},
}

// answering is the address of somebody who takes connections and says nothing.
func answering(t *testing.T) string {
	ln := open(t)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	return ln.Addr().String()
}

func TestEachFaultOfAPlanIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range planFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plans := planned(t)
			c.plant(t, plans)
			got := of(ExaminePlans(t.Context(), plans, nil), c.kind)
			require.Len(t, got, 1)
			require.Equal(t, c.level, got[0].Level)
			require.Contains(t, got[0].Where+": "+got[0].What, c.what)
		})
	}
}

func TestJoinAddressesAreTried(t *testing.T) {
	t.Parallel()
	d := &draft{}
	d.joined("x:1", "a.yaml", dial(t.Context(), answering(t)))
	d.joined("x:2", "a.yaml", dial(t.Context(), closed(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.joined("x:3", "a.yaml", dial(ctx, "127.0.0.1:1"))
	d.joined("x:4", "a.yaml", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded})
	require.Equal(t, []Level{OK, OK, Fail, Fail}, []Level{d.Checks[0].Level, d.Checks[1].Level, d.Checks[2].Level, d.Checks[3].Level})
	require.Contains(t, d.Checks[0].What, "somebody listens there")
	require.Contains(t, d.Checks[1].What, "nobody listens there yet")
	require.Contains(t, d.Checks[3].What, "a firewall drops")
}

func TestANodeThatRunsOnItsDirectoryIsLeftAlone(t *testing.T) {
	t.Parallel()
	plans := planned(t)
	ranAs(t, plans[1].Config.DataDir, "b")
	plans[1].Config.MeshAddr = open(t).Addr().String() // its own
	plans[1].Running = &cluster.Status{Node: "b", Uptime: 5}
	r := ExaminePlans(t.Context(), plans, nil)
	require.Empty(t, of(r, DataDirInUse))
	require.Empty(t, of(r, PortTaken))
	require.Zero(t, r.Count(Fail))
}

func TestAVoterThatRunsNeedsNoFile(t *testing.T) {
	t.Parallel()
	require.Empty(t, of(ExaminePlans(t.Context(), planned(t)[:2], []cluster.NodeID{"c"}), VoterMissing))
	require.Empty(t, of(ExaminePlans(t.Context(), planned(t)[:1], nil), VoterMissing), "one file says nothing of the others'")
}

func TestPlansOfOtherMachinesAreNotTriedHere(t *testing.T) {
	t.Parallel()
	plans := planned(t)
	port := open(t).Addr().String()
	plans[1].Config.GossipAddr, plans[1].Config.MeshAddr = "192.0.2.7:7400", port
	plans[2].Config.GossipAddr, plans[2].Config.MeshAddr, plans[2].Config.AdvertiseGossip = "0.0.0.0:0", port, "192.0.2.8:7400"
	require.Empty(t, of(ExaminePlans(t.Context(), plans, nil), PortTaken))
	require.Len(t, of(ExaminePlans(t.Context(), plans[1:2], nil), PortTaken), 1, "a single file is this machine's")
}

func TestEveryMistakeOfAFileIsToldByItself(t *testing.T) {
	t.Parallel()
	one, two := errors.New("one"), errors.New("two")
	plans := []Plan{{File: "a.yaml", Problem: errors.Join(errors.Join(one), two)}}
	got := of(ExaminePlans(t.Context(), plans, nil), ConfigInvalid)
	require.Len(t, got, 2)
	require.Equal(t, "two", got[1].What)
}

func TestAStrangerIsNotTakenForTheDial(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{"word": true, "what": false, "": false} {
		ln := open(t)
		conn, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		_, err = conn.Write([]byte(said))
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.Equal(t, want, hears(ln, "word"), said)
	}
}
