package algorithm_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/bully"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/etcdlease"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/gmt"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/kubernetes"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/multipaxos"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/omega"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ring"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/vr"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/zookeeper"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// What happens to processes, and to what is between them.
var (
	processes = []string{"crash", "silent crash", "restart"}
	network   = []string{"cut", "part", "heal", "pause", "resume", "loss"}
)

// agreeing are algorithms, the faults after which they agree again, and whether on
// the highest.
var agreeing = []struct {
	algorithm.Algorithm
	faults  []string
	highest bool
}{
	{gmt.GMT, network, false}, // members that forgot who led may split the votes for ever
	{bully.Bully, slices.Concat(processes, network), true},
	{bully.Strict, slices.Concat(processes, network), true},
	{ring.Ring, processes, true},
	{ring.List, processes, true},
	// A link that comes back between ELECTION and ELECTED lets the highest hear of a leader that
	// a ring without it elected.
	{ring.Ring, slices.Concat(processes, network), false},
	{ring.List, slices.Concat(processes, network), false},
	{omega.ID, slices.Concat(processes, network, []string{"stop"}), true},
	{omega.LC, slices.Concat(processes, network, []string{"stop"}), false},
	{omega.L, slices.Concat(processes, network, []string{"stop"}), false},
	{vr.VR, network, false}, // when more than f have restarted nobody leads any more
	{multipaxos.MultiPaxos, slices.Concat(processes, network, []string{"stop"}), false},
}

// TestQuietClusterAgrees: whatever happened, once all members run, all links work and nothing
// happens any more, one member leads, all name it, and that stays so.
func TestQuietClusterAgrees(t *testing.T) {
	for _, c := range agreeing {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				w := newWatched(t, c.Algorithm, rapid.IntRange(1, 7).Draw(t, "members"), 1000, quiet)
				w.run(5 * time.Second)
				some := rapid.SliceOfNDistinct(rapid.SampledFrom(c.faults), 1, 4, rapid.ID[string]).
					Draw(t, "faults")
				for range rapid.IntRange(0, 20).Draw(t, "steps") {
					w.fault(rapid.SampledFrom(append(some, "wait")).Draw(t, "fault"))
				}
				w.calm()
				w.run(time.Minute)
				w.agree(c.highest)
				w.changes = 0
				w.run(time.Minute)
				require.Zero(t, w.changes)
			})
		})
	}
}

// TestStrictHasOneCoordinator: as long as messages arrive in time, no two members that run name
// different coordinators, at no moment, whoever fails and recovers.
func TestStrictHasOneCoordinator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWatched(t, bully.Strict, rapid.IntRange(2, 7).Draw(t, "members"), 1000, quiet)
		w.run(5 * time.Second)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			w.fault(rapid.SampledFrom(append(processes, "wait")).Draw(t, "fault"))
			require.False(t, w.differ)
		}
	})
}

// TestTwoLeadersAtATime is what the documentation of the three says of it, for processes that
// are never paused, answers that take less than a fifth of the time-out, and clocks that run
// almost alike: only in etcd and with ReleaseOnCancel two may lead, and not for long. There, who
// is late to release may free the lease of a newer leader. That one finds out with its next try, a
// retry period later, and leads on for a renew deadline and the time-out of a request: as long as
// a lease, by a clock of which 99 s may be 100 s. Nothing is lost: a connection repeats that after
// 200 ms, and then an answer takes longer.
func TestTwoLeadersAtATime(t *testing.T) {
	const slowest = 2 * 240 * time.Millisecond // a request and its answer, with all below
	ttl := elector.Article().Inactivity()
	for _, c := range []struct {
		algorithm.Algorithm
		bound time.Duration
	}{
		{zookeeper.ZooKeeper, 0},
		{kubernetes.Kubernetes, 0},
		{kubernetes.Release, (ttl + ttl*2/15) * 100 / 99},
		{etcdlease.EtcdLease, slowest + 2*ttl/10 + ttl/40},
	} {
		t.Run(c.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				share := rapid.IntRange(0, 400_000)
				w := newWatched(t, c.Algorithm, 3, 10_000, sim.Faults{
					Delay: time.Millisecond, Jitter: 20 * time.Millisecond,
					DuplicatePPM: share.Draw(t, "twice"), ReorderPPM: share.Draw(t, "reorder"),
				})
				w.run(time.Millisecond)
				for range rapid.IntRange(0, 30).Draw(t, "steps") {
					w.run(time.Duration(rapid.IntRange(0, 4000).Draw(t, "wait")) * time.Millisecond)
					w.fault(rapid.SampledFrom([]string{"mute", "deaf", "heal", "heal", "crash", "restart"}).
						Draw(t, "fault"))
				}
				require.LessOrEqual(t, w.longest, c.bound, "at %s", w.Now())
			})
		})
	}
}

// TestOneLeaseAtATime: no two members of Raft lead by their leases: with TiKV's as long as clocks
// are almost alike, no voter restarts, and no transfer is late; with CockroachDB's as long as
// clocks are alike.
func TestOneLeaseAtATime(t *testing.T) {
	faults := slices.Concat(network, []string{"mute", "deaf", "heal", "stop", "transfer"})
	for _, c := range []struct {
		algorithm.Algorithm
		ppm    int64
		faults []string
	}{{raft.WithLease, 40_000, faults}, {raft.Fortified, 0, slices.Concat(processes, faults)}} {
		t.Run(c.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newWatched(t, c.Algorithm, rapid.IntRange(1, 5).Draw(t, "members"), c.ppm, quiet)
				w.run(time.Millisecond)
				for range rapid.IntRange(0, 40).Draw(t, "steps") {
					w.run(time.Duration(rapid.IntRange(0, 2000).Draw(t, "wait")) * time.Millisecond)
					w.fault(rapid.SampledFrom(c.faults).Draw(t, "fault"))
					require.Zero(t, w.leases)
				}
			})
		})
	}
}

// watched is a simulated cluster, and the views of its members.
type watched struct {
	*rapid.T
	*sim.Sim
	names []elector.NodeID // the highest first
	views map[elector.NodeID]algorithm.View
	down  map[elector.NodeID]bool
	still map[elector.NodeID]bool
	store bool // they ask one

	changes int           // of views
	leaders int           // how many of them say that their node leads
	since   time.Duration // two or more do, or would from now on
	longest time.Duration // that two or more did
	leases  int           // events at which two or more had a lease
	// differ says that there was a moment when members that ran named different leaders.
	differ bool
}

// quiet is a network whose messages are late by a few milliseconds at most.
var quiet = sim.Faults{Delay: time.Millisecond, Jitter: 9 * time.Millisecond}

// newWatched makes a cluster whose clocks differ by so many parts per million.
func newWatched(t *rapid.T, a algorithm.Algorithm, n int, ppm int64, network sim.Faults) *watched {
	cfg := cluster(a, rapid.Uint64().Draw(t, "seed"), n)
	w := &watched{T: t, names: cfg.Nodes[0].Elector.Voters, views: map[elector.NodeID]algorithm.View{},
		down: map[elector.NodeID]bool{}, still: map[elector.NodeID]bool{}, store: a.Store != nil}
	cfg.Order, cfg.Network = w.names, network
	for i := range cfg.Nodes {
		cfg.Nodes[i].ClockRatePPM = rapid.Int64Range(-ppm, ppm).Draw(t, "clock")
	}
	cfg.Observer = func(e *sim.Event) {
		if a.Leased && w.Sim != nil && w.leased(e.At) > 1 {
			w.leases++
		}
		if w.leaders < 2 {
			w.since = e.At
		}
		w.longest = max(w.longest, e.At-w.since)
		switch e.Kind {
		case sim.EventTransition:
			w.changes++
			w.views[e.Node] = algorithm.View{Role: e.Transition.To, Leader: e.Transition.Leader}
			for _, other := range w.views {
				w.differ = w.differ || other.Leader != "" && e.Transition.Leader != "" &&
					other.Leader != e.Transition.Leader
			}
		case sim.EventCrashed, sim.EventStopped:
			delete(w.views, e.Node)
		default:
			return
		}
		w.leaders = 0
		for _, view := range w.views {
			if view.Role == elector.Leader {
				w.leaders++
			}
		}
	}
	var err error
	w.Sim, err = sim.New(cfg)
	require.NoError(t, err)
	return w
}

// leased counts who leads by a lease.
func (w *watched) leased(at time.Duration) (n int) {
	for _, id := range w.names {
		if w.views[id].Role == elector.Leader && w.LeaseUntil(id) > at {
			n++
		}
	}
	return n
}

// agree demands that all name one leader, the highest member if that is asked.
func (w *watched) agree(highest bool) {
	leader := w.views[w.names[0]].Leader
	if highest {
		leader = w.names[0]
	}
	require.NotEmpty(w, leader, "%+v", w.views)
	for _, id := range w.names {
		want := algorithm.View{Role: elector.Follower, Leader: leader}
		if id == leader {
			want.Role = elector.Leader
		}
		require.Equal(w, want, w.views[id], "%s: %+v", id, w.views)
	}
}

func (w *watched) run(d time.Duration) { require.NoError(w, w.RunUntil(w.Now()+d)) }

// fault lets one thing happen to a member or two, if it can.
func (w *watched) fault(what string) {
	a, b := rapid.SampledFrom(w.names).Draw(w.T, "a"), rapid.SampledFrom(w.names).Draw(w.T, "b")
	var err error
	switch {
	case what == "wait":
		w.run(time.Duration(rapid.IntRange(0, 8000).Draw(w.T, "ms")) * time.Millisecond)
	case (what == "crash" || what == "silent crash") && !w.down[a]:
		w.down[a], w.still[a] = true, false
		err = w.Crash(a, sim.Crash{Silent: what == "silent crash", Unsynced: sim.UnsyncedByChance})
	case what == "stop" && !w.down[a] && !w.still[a]:
		w.down[a] = true
		err = w.Stop(a)
		if _, runs := w.views[a]; runs {
			w.run(1100 * time.Millisecond) // it releases its lease
		}
	case what == "transfer" && a != b:
		_ = w.Transfer(a, b) // most cannot
	case what == "restart" && w.down[a]:
		w.down[a] = false
		err = w.Restart(a)
	case what == "pause" && !w.down[a] && !w.still[a]:
		w.still[a] = true
		err = w.Pause(a)
	case what == "resume" && w.still[a]:
		w.still[a] = false
		err = w.Resume(a)
	case what == "cut" && a != b:
		err = w.Cut(a, b)
	case what == "mute" || what == "deaf":
		for _, b := range w.names {
			switch {
			case a == b:
			case what == "mute":
				err = errors.Join(err, w.Cut(a, b))
			default:
				err = errors.Join(err, w.Cut(b, a))
			}
		}
	case what == "part":
		size := rapid.IntRange(0, len(w.names)).Draw(w.T, "size")
		w.HealAll()
		for _, a := range w.names[:size] {
			for _, b := range w.names[size:] {
				err = errors.Join(err, w.Cut(a, b), w.Cut(b, a))
			}
		}
	case what == "heal":
		w.HealAll()
	case what == "loss" && a != b:
		err = w.SetFaults(a, b, sim.Faults{Delay: time.Millisecond,
			LossPPM: 200_000, DuplicatePPM: 200_000, ReorderPPM: 200_000})
	}
	require.NoError(w, err)
}

// calm ends all faults.
func (w *watched) calm() {
	w.HealAll()
	well := sim.Faults{Delay: time.Millisecond}
	for _, a := range w.names {
		switch {
		case w.down[a]:
			require.NoError(w, w.Restart(a))
		case w.still[a]:
			require.NoError(w, w.Resume(a))
		}
		for _, b := range w.names {
			if a != b {
				require.NoError(w, w.SetFaults(a, b, well))
			}
		}
		if w.store {
			require.NoError(w, w.SetFaults(a, algorithm.StoreNode, well))
			require.NoError(w, w.SetFaults(algorithm.StoreNode, a, well))
		}
	}
}
