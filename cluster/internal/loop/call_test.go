package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// elected starts nodes and puts the leader first. The election of a node is its only one.
func elected(t *testing.T, net *memnet.Network, names ...elector.NodeID) []*member {
	all := meet(t, net, names)
	time.Sleep(30 * time.Second)
	publish(t, all, "first", []byte("begin"))
	slices.SortStableFunc(all, func(a, b *member) int { return a.rank(t) - b.rank(t) })
	return all
}

// rank is 0 for the leader.
func (m *member) rank(t *testing.T) int {
	if m.first(t).Leading() {
		return 0
	}
	return 1
}

func (m *member) first(t *testing.T) *Election {
	e, err := m.Lookup("first", false)
	require.NoError(t, err)
	return e
}

func quiet(error) {}

// A value of any size comes to the leader whichever node is asked, eight at a time.
func TestAnyNodePublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := elected(t, memnet.New(), abc...)
		var done sync.WaitGroup
		for i := range 8 {
			for _, size := range []int{0, maxInline, maxInline + 1, elector.MaxValue - i} {
				done.Go(func() {
					value := noise(size)
					_, err := all[1+i%2].Publish(t.Context(), all[1+i%2].first(t), Write{Value: value})
					require.NoError(t, err)
				})
			}
		}
		done.Wait()
		value := noise(elector.MaxValue)
		_, err := all[1].Publish(t.Context(), all[1].first(t), Write{Value: value})
		require.NoError(t, err)
		require.True(t, bytes.Equal(value, all[0].shows("first")))
		time.Sleep(time.Second)
		for _, m := range all {
			m.calls.mu.Lock()
			require.Empty(t, m.calls.asked, m.id)
			require.Empty(t, m.calls.serving, m.id)
			m.calls.mu.Unlock()
			m.view(func(d *Driver) { require.Empty(t, d.coming, m.id) })
		}
	})
}

// A note of each kind is lost once: the value is written all the same, and once.
func TestLostNotesAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := elected(t, memnet.New(), abc...)
		for kind := noteWanted; kind <= noteAnswer; kind++ {
			for _, size := range []int{1, elector.MaxValue} {
				before := all[0].first(t).Recorded().Record.LSN
				var lost atomic.Bool
				drop := func(_ elector.NodeID, n netmesh.Note) bool {
					return n.Kind == kind && lost.CompareAndSwap(false, true)
				}
				for _, m := range all {
					m.lossy.drop.Store(&drop)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				at, err := all[1].Publish(ctx, all[1].first(t), Write{Value: noise(size)})
				cancel()
				require.NoError(t, err, "kind %d, %d bytes", kind, size)
				require.True(t, lost.Load() || size == 1)
				require.Equal(t, before.Counter+1, at.Counter)
				time.Sleep(time.Second)
				require.Equal(t, at, all[0].first(t).Recorded().Record.LSN)
			}
		}
	})
}

// answers is a mesh that notes the replies of a leader.
type answers struct {
	nowhere

	all chan reply
}

func (a *answers) Notify(_ elector.NodeID, n netmesh.Note) bool {
	var r reply
	if n.Kind == noteAnswer && json.Unmarshal(n.Body, &r) == nil {
		a.all <- r
	}
	return true
}

// One node cannot keep others from calling, and is told why its calls are not carried out.
func TestOneNodeCannotTakeAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := run(t, clock.Process(), "a")
		time.Sleep(10 * time.Second)
		a := &answers{all: make(chan reply, 100)}
		l.mesh = a
		l.view(func(d *Driver) { d.Mesh = a })
		large := func(from elector.NodeID, id uint64) {
			body, err := json.Marshal(call{ID: id, Publish: true, Wait: time.Hour,
				Of: elector.Value{Size: elector.MaxValue, Hash: valueHash{byte(id)}}})
			require.NoError(t, err)
			l.called(from, "x", body)
			synctest.Wait()
		}
		for id := range uint64(maxCallsOf) {
			large("b", id)
			large("b", id) // it came twice
		}
		require.Empty(t, a.all)
		large("b", 99)
		require.ErrorContains(t, (&reply{Code: 1, Text: (<-a.all).Text}).err(),
			"leader a has too many requests of other nodes: 8 of b, the limit for one node")
		small, err := json.Marshal(call{ID: 7, Publish: true, Wait: time.Hour, Value: []byte("x")})
		require.NoError(t, err)
		l.called("c", "x", small)
		require.Zero(t, (<-a.all).Code)
		for i := range maxCalls - maxCallsOf - 1 {
			large(elector.NodeID(fmt.Sprint("n", i)), 1)
		}
		require.Empty(t, a.all)
		large("d", 1)
		require.Contains(t, (<-a.all).Text, "64, the limit")
		time.Sleep((maxAsked + 2) * askAfter) // no part has come: they are given up
		synctest.Wait()
		require.NotEmpty(t, a.all)
		require.Contains(t, (<-a.all).Text, "its value has not come")
		time.Sleep(remembered + time.Second)
		large("b", 100)
		l.calls.mu.Lock()
		require.NotContains(t, l.calls.serving, origin{"b", 0})
		require.NotNil(t, l.calls.serving[origin{"b", 100}])
		l.calls.mu.Unlock()
		l.calls.lost("b")
		synctest.Wait()
		require.NotContains(t, l.calls.serving, origin{"b", 100})
	})
}

// While values of 1 MiB change faster than they reach a node that is far away, that node follows,
// and one that is far away becomes a voter.
func TestFastValuesStarveNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, away := memnet.New(), map[string]bool{}
		var mu sync.Mutex
		net.Delay(func(from, to string) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			if away[from] || away[to] {
				return 100 * time.Millisecond
			}
			return time.Millisecond
		}, nil)
		all := elected(t, net, abc...)
		leader, far := all[0], all[2]
		joins := startMember(t, net, leader.beats.clock, "d", nil)
		for _, m := range all {
			m.mesh.AddPeer("d", "d:7000")
			joins.mesh.AddPeer(m.id, string(m.id)+":7000")
		}
		mu.Lock()
		away[string(far.id)], away["d"] = true, true
		mu.Unlock()
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var writes sync.WaitGroup
		written, last := 0, lsn.LSN{}
		writes.Go(func() {
			for ; ctx.Err() == nil; written++ {
				at, err := leader.PublishHere(t.Context(), leader.first(t),
					Write{Value: noise(elector.MaxValue - written)})
				require.NoError(t, err)
				last = at
				time.Sleep(100 * time.Millisecond)
			}
		})
		accepted := func(m *member) (at lsn.LSN) {
			m.view(func(d *Driver) { at = d.groups["first"].machine.Record().Accepted.LSN })
			return at
		}
		for range 3 {
			before := accepted(far)
			time.Sleep(10 * time.Second)
			require.True(t, before.Less(accepted(far)), "it still has %s", before)
		}
		began := time.Now()
		_, err := leader.ChangeVoters(t.Context(), leader.first(t), VoterChange{Add: "d"}, quiet)
		require.NoError(t, err)
		require.Less(t, time.Since(began), 30*time.Second)
		cancel()
		writes.Wait()
		require.Greater(t, written, 200)
		time.Sleep(10 * time.Second)
		require.False(t, accepted(far).Less(last))
		require.False(t, accepted(joins).Less(last))
	})
}

// Two operators want the opposite, again and again. Each change is done once and answered once.
func TestOppositeChangesOfVotersAreDoneOnceEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		net.Delay(func(string, string) time.Duration { return 5 * time.Millisecond }, nil)
		all := elected(t, net, "a", "b", "c", "d")
		third := all[3].id
		if all[0].id == third {
			third = all[1].id
		}
		_, err := all[0].ChangeVoters(t.Context(), all[0].first(t), VoterChange{Remove: third}, quiet)
		require.NoError(t, err)
		_, there := all[0].first(t).Recorded().Record.Voters.Find(third)
		require.False(t, there, "it is committed when it is answered")
		before := all[0].first(t).Recorded().Record.LSN
		changes := make(chan int, 2)
		for i, c := range []VoterChange{{Add: third}, {Remove: third}} {
			go func() {
				n := 0
				for range 30 {
					m := all[1+i]
					_, err := m.ChangeVoters(t.Context(), m.first(t), c, quiet)
					if err == nil {
						n++
					} else {
						require.ErrorContains(t, err, "another change of voters is under way")
					}
				}
				changes <- n
			}()
		}
		done := <-changes + <-changes
		after := all[0].first(t).Recorded().Record.LSN
		require.Equal(t, before.Term, after.Term)
		require.Greater(t, done, 30)
		require.LessOrEqual(t, int(after.Counter-before.Counter), done)
		require.Greater(t, int(after.Counter-before.Counter), 10, "they did undo each other")
	})
}

// jittery is a network on which what is sent takes up to 2 ms, at random.
func jittery(seed uint64) *memnet.Network {
	net, random := memnet.New(), rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	net.Delay(func(string, string) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(random.Int64N(int64(2 * time.Millisecond)))
	}, nil)
	return net
}

// A node that becomes a voter says nothing before that only voters may say, and acknowledges no
// heartbeat that it has not heard as a voter.
func TestAVoterThatIsAddedIsCorrect(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			elections, net := numbered(30), jittery(seed)
			all := meet(t, net, abc, elections...)
			d := startMember(t, net, clock.Process(), "d", nil, elections...)
			for _, m := range all {
				d.mesh.AddPeer(m.id, string(m.id)+":7000")
			}
			time.Sleep(40 * time.Second)
			for i := range 5 {
				c := []VoterChange{{Add: "d"}, {Remove: "d"}}[i%2]
				var changes sync.WaitGroup
				for _, name := range elections {
					changes.Go(func() {
						_, err := all[0].ChangeVoters(t.Context(), lookup(t, all[0], name), c, quiet)
						require.NoError(t, err)
					})
				}
				changes.Wait()
				time.Sleep(time.Second)
			}
			for _, m := range append(all, d) {
				m.view(func(driver *Driver) { require.Empty(t, driver.anomalies, "%s, seed %d", m.id, seed) })
			}
		})
	}
}

// Who gives a change up leaves the leader free for another one.
func TestAChangeThatIsGivenUpIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := elected(t, memnet.New(), abc...)
		leader := all[0]
		for _, asks := range all[:2] {
			leader.LinkUp(netmesh.PeerInfo{
				Node: "ghost", Identity: [16]byte{1}, Version: netmesh.RecordsVersion,
			})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			var told []string
			_, err := asks.ChangeVoters(ctx, asks.first(t), VoterChange{Add: "ghost"},
				func(why error) {
					if told = append(told, why.Error()); len(told) > 1 {
						return
					}
					_, err := leader.ChangeVoters(t.Context(), leader.first(t), VoterChange{Remove: "b"}, quiet)
					require.ErrorIs(t, err, ErrRefused)
					require.ErrorContains(t, err, "another change of voters is under way")
				})
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.GreaterOrEqual(t, len(told), 2)
			require.Contains(t, told[0], "ghost becomes a voter; the voters are then a, b, c, ghost")
			time.Sleep(100 * time.Millisecond)
			_, err = asks.ChangeVoters(t.Context(), asks.first(t), VoterChange{Add: "b"}, quiet)
			require.NoError(t, err)
			leader.view(func(d *Driver) {
				require.Empty(t, d.groups["first"].changes)
				require.Zero(t, d.groups["first"].machine.Record().Change)
			})
		}
	})
}

// A voter that is added costs the leader nothing, with the shortest timers, a record of 1 MiB that
// the new one lacks, and a network at its limit; also if it counts at once since another is dead.
func TestALeaderLeadsOnWhileAVoterIsAdded(t *testing.T) {
	for seed := range uint64(6) {
		for _, dead := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				net := jittery(seed)
				net.Rate(10 << 20)
				var all []*member
				c := clock.Process()
				for _, id := range abc {
					all = append(all, startWith(t, net, c, id, abc, elector.LAN()))
					for _, m := range all {
						m.mesh.AddPeer(id, string(id)+":7000")
						all[len(all)-1].mesh.AddPeer(m.id, string(m.id)+":7000")
					}
				}
				time.Sleep(5 * time.Second)
				leader := publish(t, all, "first", noise(elector.MaxValue))
				term := leader.Snapshot(leader.first(t)).Term
				if dead {
					gone := all[(slices.Index(all, leader)+1)%3]
					require.NoError(t, gone.mesh.Close(t.Context()))
				}
				d := startWith(t, net, c, "d", nil, elector.LAN())
				for _, m := range all {
					m.mesh.AddPeer("d", "d:7000")
					d.mesh.AddPeer(m.id, string(m.id)+":7000")
				}
				for linked := false; !linked; time.Sleep(time.Millisecond) {
					linked, _ = leader.calls.link("d")
				}
				ctx, stop := context.WithCancel(t.Context())
				var writes sync.WaitGroup
				writes.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						_, err := leader.PublishHere(t.Context(), leader.first(t),
							Write{Value: noise(elector.MaxValue - i)})
						require.NoError(t, err)
						time.Sleep(time.Millisecond)
					}
				})
				defer func() { stop(); writes.Wait() }()
				began := time.Now()
				_, err := leader.ChangeVoters(t.Context(), leader.first(t), VoterChange{Add: "d"}, quiet)
				require.NoError(t, err, "seed %d, dead %t", seed, dead)
				took := time.Since(began)
				time.Sleep(200 * time.Millisecond)
				now := leader.Snapshot(leader.first(t))
				require.True(t, leader.first(t).Leading() && now.Term == term, "seed %d, dead %t", seed, dead)
				if seed == 0 {
					t.Logf("dead %t: it took %s", dead, took)
				}
			})
		}
	}
}
