package loop

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/measure"
	"github.com/bmqelect/bmqelect/cluster/internal/recorder"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/netmesh"
)

// member is a node of a test: a loop on a mesh.
type member struct {
	*Loop
	mesh *netmesh.Mesh
	id   elector.NodeID
}

// meet starts nodes that elect in some elections.
func meet(
	t testing.TB, net *memnet.Network, names []elector.NodeID, elections ...string,
) []*member {
	var all []*member
	for _, id := range names {
		all = append(all, startMember(t, net, id, names, elections...))
	}
	for _, m := range all {
		for _, o := range names {
			m.mesh.AddPeer(o, string(o)+":7000")
		}
	}
	return all
}

func startMember(
	t testing.TB, net *memnet.Network, id elector.NodeID, voters []elector.NodeID, elections ...string,
) *member {
	hooks := testhook.From(testhook.With(context.Background(), testhook.Hooks{Clock: clock.Process()}))
	s, err := store.OpenOn(t.TempDir(), store.Owner{Cluster: "c", Node: string(id)}, testhook.Unsynced)
	require.NoError(t, err)
	m := measure.New()
	r := recorder.New(recorder.Config{
		Dir: t.TempDir(), Node: string(id), Age: m.Age, Found: func(string) {},
		Faults: func() string { return "" },
	})
	l := New(Config{
		Node: id, Voters: voters, Log: hclog.NewNullLogger(), Hooks: hooks, Store: s, Measure: m,
		Recorder: r, Claimed: func(_ elector.NodeID, why string) { t.Error(why) },
		Publish: func(string, elector.Transition, time.Time, string) {},
		Differs: func() string { return "" },
	})
	setup := Setup{
		Elector:    elector.Config{Self: id, Voters: voters, Timing: elector.Article()},
		StopMargin: 100 * time.Millisecond,
	}
	first, err := l.NewElection("first", setup)
	require.NoError(t, err)
	mesh, err := netmesh.Listen(netmesh.Config{
		Cluster: "c", Node: id, Identity: s.Identity(), Boot: s.Boot(), Bind: string(id) + ":7000",
		Network: net.Host(string(id)), Voter: l.IsVoter,
	}, l)
	require.NoError(t, err)
	l.Start(mesh, first)
	for _, name := range elections {
		_, err := l.Open(name, setup)
		require.NoError(t, err)
	}
	quit := make(chan struct{})
	go r.Run(quit)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = l.CloseAll(ctx) // a leader without its quorum hands over to nobody
		_ = mesh.Close(ctx)
		l.Stop()
		close(quit)
		<-l.Persisted()
		<-r.Done()
		s.Close()
		l.StopWatcher()
	})
	return &member{l, mesh, id}
}

// publish lets the leader of an election write a value, and returns it when that is committed.
func publish(t testing.TB, all []*member, election string, value []byte) (leader *member) {
	t.Helper()
	for _, m := range all {
		e, err := m.Lookup(election)
		require.NoError(t, err)
		if e.Leading() {
			leader = m
			_, err := m.PublishHere(context.Background(), e, Write{Value: value})
			require.NoError(t, err)
		}
	}
	require.NotNil(t, leader, "nobody leads %s", election)
	return leader
}

// shows returns the committed value of an election as a node knows it.
func (m *member) shows(election string) (value []byte) {
	m.view(func(d *Driver) {
		g := d.groups[election]
		value = g.value(g.machine.Record().Committed.Value)
	})
	return value
}

// noise is a value that no compression would make smaller.
func noise(size int) []byte {
	value := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(value)
	return value
}

var abc = []elector.NodeID{"a", "b", "c"}

func TestValuesReachEveryNode(t *testing.T) {
	for _, size := range []int{1, 1000, partSize, partSize + 1, 3*partSize - 1, elector.MaxValue} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := meet(t, memnet.New(), abc)
				time.Sleep(30 * time.Second)
				value := noise(size)
				publish(t, all, "first", value)
				time.Sleep(time.Second) // two heartbeats
				for _, m := range all {
					require.True(t, bytes.Equal(value, m.shows("first")), m.id)
				}
			})
		})
	}
}

// Values come although links are lost in the middle, and whoever missed some gets the newest.
func TestValuesSurviveTheLossOfLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		net.Delay(func(string, string) time.Duration { return 5 * time.Millisecond }, nil)
		all := meet(t, net, abc)
		time.Sleep(30 * time.Second)
		var newest []byte
		for i := range 20 {
			newest = noise(elector.MaxValue - i)
			go func() {
				for _, m := range all {
					time.Sleep(time.Duration(3+i) * time.Millisecond) // some parts are there
					for _, o := range all {
						m.mesh.Disconnect(o.id, "test")
					}
				}
			}()
			publishUntil(t, all, "first", newest)
		}
		time.Sleep(10 * time.Second)
		for _, m := range all {
			require.True(t, bytes.Equal(newest, m.shows("first")), m.id)
			m.view(func(d *Driver) {
				require.Empty(t, d.coming)
				require.LessOrEqual(t, len(d.groups["first"].values), 2)
			})
		}
	})
}

// publishUntil publishes a value until that is known to have worked.
func publishUntil(t testing.TB, all []*member, election string, value []byte) {
	t.Helper()
	until := time.Now().Add(time.Minute)
	for i := 0; ; i++ {
		m := all[i%len(all)]
		e, err := m.Lookup(election)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if e.Leading() {
			_, err = m.PublishHere(ctx, e, Write{Value: value})
		}
		cancel()
		if e.Leading() && err == nil {
			return
		}
		require.True(t, time.Now().Before(until), "nobody could publish: %v", err)
		time.Sleep(50 * time.Millisecond)
	}
}

// Each of 32 elections gets the largest value at the same time.
func TestManyElectionsWriteAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 31 {
			names = append(names, fmt.Sprint("e", i))
		}
		all := meet(t, memnet.New(), abc, names...)
		time.Sleep(30 * time.Second)
		var done sync.WaitGroup
		began := time.Now()
		for _, name := range append(names, "first") {
			done.Go(func() { publishUntil(t, all, name, noise(elector.MaxValue)) })
		}
		done.Wait()
		t.Log("all are committed after", time.Since(began))
		time.Sleep(10 * time.Second)
		for _, m := range all {
			for _, name := range append(names, "first") {
				require.Len(t, m.shows(name), elector.MaxValue, "%s on %s", name, m.id)
			}
		}
	})
}

// sink is a mesh with one peer, which the test plays: it notes what is asked for.
type sink struct {
	nowhere

	asked []int // for the parts from there on
}

func (s *sink) Notify(_ elector.NodeID, n netmesh.Note) bool {
	if p, ok := parsePart(n.Body); ok && n.Kind == noteWanted {
		s.asked = append(s.asked, p.at/partSize)
	}
	return true
}
