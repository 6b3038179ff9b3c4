package kubelock

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
)

// both plays a scene with managers that use Lock.Context, and with managers that do not.
func both(t *testing.T, stubborn time.Duration, f func(*scene)) {
	for _, plain := range []bool{false, true} {
		withScene(t, &scene{plain: plain, stubborn: stubborn}, f)
	}
}

func TestAnotherManagerGoesOnAfterACrash(t *testing.T) {
	both(t, 0, func(s *scene) {
		old := s.awaitWorker("")
		require.Equal(s.t, []string{string(old) + " works"}, s.story())
		s.Crash(old)
		s.stopped(old)
		s.awaitWorker(old)
	})
}

// Transfer waits for the work of the old manager, and the chosen one goes on.
func TestTheOldManagerStopsBeforeTheChosenOneStarts(t *testing.T) {
	const stopping = 200 * time.Millisecond // less than the stop margin
	both(t, stopping, func(s *scene) {
		old := s.awaitWorker("")
		time.Sleep(5 * time.Second) // the others have acked heartbeats
		chosen := three[(slices.Index(three, old)+1)%len(three)]
		s.story()
		began := time.Now()
		require.NoError(s.t, s.Node(old).Transfer(s.t.Context(), chosen))
		s.Await("work", func() bool { return s.worker() == chosen })
		require.Equal(s.t, s.told(old, chosen), s.story())
		ended := s.replicas[old]
		<-ended.ended
		if s.plain {
			require.ErrorContains(s.t, ended.err, "leader election lost")
			return
		}
		// As soon as the work has stopped: neither a lease nor a poll is waited for.
		require.NoError(s.t, ended.err)
		require.Less(s.t, time.Since(began), stopping+20*time.Millisecond)
		require.Equal(s.t, elector.Transferred, reasonOf(s.t, ended.lock))
	})
}

func reasonOf(t *testing.T, k *Lock) elector.Reason {
	var over *cluster.EndedError
	require.ErrorAs(t, context.Cause(k.work), &over)
	return over.Reason
}

// ReleaseOnCancel: the next manager does not wait until a lease has ended.
func TestAManagerThatEndsReleasesTheLock(t *testing.T) {
	both(t, 0, func(s *scene) {
		old := s.awaitWorker("")
		time.Sleep(5 * time.Second)
		began := time.Now()
		s.replicas[old].stop()
		s.awaitWorker(old)
		require.Less(s.t, time.Since(began), 20*time.Millisecond)
		<-s.replicas[old].ended
		require.NoError(s.t, s.replicas[old].err)
		// The node is still there, and another manager on it has its turn.
		s.manage(old)
		time.Sleep(time.Second)
		for _, id := range others(old) {
			s.replicas[id].stop()
		}
		s.Await("the first node", func() bool { return s.worker() == old })
	})
}

// Whoever is cut off stops before its lease ends, so before another manager starts.
func TestAManagerThatIsCutOffStops(t *testing.T) {
	both(t, 0, func(s *scene) {
		old := s.awaitWorker("")
		time.Sleep(5 * time.Second)
		s.story()
		s.Isolate(old)
		next := s.awaitWorker(old)
		require.Equal(s.t, s.told(old, next), s.story())
		require.Equal(s.t, elector.LeaseExpired, reasonOf(s.t, s.replicas[old].lock))
	})
}

// Work that goes on is found before another manager starts. In its own process it would end then.
func TestWorkThatGoesOnIsOverdue(t *testing.T) {
	withScene(t, &scene{plain: true}, func(s *scene) {
		s.hangs = make(chan struct{})
		defer close(s.hangs)
		old := s.awaitWorker("")
		time.Sleep(5 * time.Second)
		s.story()
		s.Isolate(old)
		<-s.replicas[old].overdue
		require.Equal(s.t, []string{string(old) + " is overdue"}, s.story())
		s.stopped(old) // as after the end of its process
		s.awaitWorker(old)
	})
}

// taken stops all managers, and returns a lock on a node under which somebody works, and its
// leadership. overdue is closed when that is over; the lock waits for the end of s.hangs then.
func (s *scene) taken(id cluster.NodeID, orderly bool) (*Lock, *cluster.Leadership, chan struct{}) {
	for _, r := range s.replicas {
		r.stop()
		<-r.ended
	}
	s.hangs = make(chan struct{})
	overdue := make(chan struct{})
	k, err := NewLock(s.t.Context(), s.Node(id), cluster.DefaultGroup, func(*cluster.Leadership) {
		close(overdue)
		<-s.hangs
	})
	require.NoError(s.t, err)
	if orderly {
		k.Context()
	}
	_, _, err = k.Get(s.t.Context())
	require.NoError(s.t, err)
	require.Nil(s.t, k.Leadership())
	require.NoError(s.t, k.Update(s.t.Context(), own(k)))
	time.Sleep(5 * time.Second)
	return k, k.Leadership(), overdue
}

// The lock is renewed while a manager stops in order, until the deadline, and not longer.
func TestAManagerHasUntilTheDeadlineToStop(t *testing.T) {
	withScene(t, &scene{}, func(s *scene) {
		k, l, overdue := s.taken("a", true)
		s.Isolate("a")
		<-k.Context().Done()
		require.NoError(s.t, k.Update(s.t.Context(), own(k)))
		deadline := l.Deadline()
		<-overdue
		require.WithinDuration(s.t, deadline, time.Now(), time.Millisecond)
		err := k.Update(s.t.Context(), own(k))
		require.ErrorIs(s.t, err, cluster.ErrNotLeader)
		require.NotErrorIs(s.t, err, ErrOver)
		close(s.hangs)
		synctest.Wait()
		require.ErrorIs(s.t, k.Update(s.t.Context(), own(k)), ErrOver)
	})
}

// A release after a refusal says nothing about the work: client-go has not told it to stop yet.
func TestAReleaseAfterALossIsIgnored(t *testing.T) {
	withScene(t, &scene{}, func(s *scene) {
		k, l, overdue := s.taken("a", false)
		s.Isolate("a")
		<-l.Context().Done()
		require.ErrorIs(s.t, k.Update(s.t.Context(), own(k)), cluster.ErrNotLeader)
		require.NoError(s.t, k.Update(s.t.Context(), resourcelock.LeaderElectionRecord{}))
		require.True(s.t, l.Valid())
		<-overdue
		close(s.hangs)
	})
}

// A program may exit when a release has returned: the handover has begun then.
func TestAReleaseWaitsUntilTheNodeDoesNotLead(t *testing.T) {
	withScene(t, &scene{}, func(s *scene) {
		k, l, _ := s.taken("a", true)
		require.True(s.t, s.Node("a").IsLeader())
		require.NoError(s.t, k.Update(s.t.Context(), resourcelock.LeaderElectionRecord{}))
		require.False(s.t, s.Node("a").IsLeader())
		require.False(s.t, l.Valid())
	})
}

// A manager that ends and keeps the lock is like one that hangs.
func TestALockThatIsNotRenewedIsGivenUp(t *testing.T) {
	withScene(t, &scene{keeps: true}, func(s *scene) {
		old := s.awaitWorker("")
		time.Sleep(5 * time.Second)
		s.replicas[old].stop()
		<-s.replicas[old].ended
		began := time.Now()
		<-s.replicas[old].overdue
		require.InDelta(s.t, 16+1.4, time.Since(began).Seconds(), 1, "LeaseDuration and a lease")
		s.awaitWorker(old)
	})
}

// All nodes say who leads, and at most one says that it is itself: while its manager may work.
func TestTheRecordIsNeverShared(t *testing.T) {
	both(t, 0, func(s *scene) {
		for range 4 {
			old := s.awaitWorker("")
			time.Sleep(5 * time.Second)
			for _, id := range three {
				require.Equal(s.t, string(old), holder(s.replicas[id].lock), id)
			}
			s.Isolate(old)
			for range 500 {
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
				s.requireOneHolder()
			}
			s.Heal()
			require.NotEqual(s.t, old, s.worker())
			s.replicas[old].stop()
			<-s.replicas[old].ended
			s.manage(old)
		}
	})
}

func (s *scene) requireOneHolder() {
	s.t.Helper()
	var holders []cluster.NodeID
	for _, id := range three {
		if holder(s.replicas[id].lock) == string(id) {
			holders = append(holders, id)
		}
		if id == s.worker() && !s.plain {
			require.NotNil(s.t, s.replicas[id].lock.Leadership(), "%s works", id)
		}
	}
	require.LessOrEqual(s.t, len(holders), 1, holders)
}

// holder is whom a lock names, without waiting.
func holder(k *Lock) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.holder()
}

// A node whose manager does not ask any more does not lead for long.
func TestALeadershipThatNobodyTakesIsReleased(t *testing.T) {
	withScene(t, &scene{}, func(s *scene) {
		old := s.awaitWorker("")
		time.Sleep(5 * time.Second)
		for _, id := range others(old) {
			s.replicas[id].stop()
			<-s.replicas[id].ended
		}
		node := s.Node(others(old)[0])
		asked, err := NewLock(s.t.Context(), node, cluster.DefaultGroup, nil)
		require.NoError(s.t, err)
		_, _, err = asked.Get(s.t.Context())
		require.NoError(s.t, err)
		s.replicas[old].stop()
		<-s.replicas[old].ended
		s.Await("a leader", node.IsLeader)
		time.Sleep(patience + time.Second)
		require.False(s.t, node.IsLeader())
		s.manage(others(old)[1])
		s.awaitWorker(old)
	})
}

func others(id cluster.NodeID) []cluster.NodeID {
	return slices.DeleteFunc(slices.Clone(three), func(o cluster.NodeID) bool { return o == id })
}

func TestWhatALockRefuses(t *testing.T) {
	withScene(t, &scene{}, func(s *scene) {
		id := s.awaitWorker("")
		k, ctx := s.replicas[id].lock, s.t.Context()
		require.Equal(s.t, string(id), k.Identity())
		require.Equal(s.t, `election "default" on node `+string(id), k.Describe())
		err := k.Update(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "z"})
		require.ErrorContains(s.t, err, `the holder must be "`+string(id)+`", or empty`)

		_, err = NewLock(ctx, s.Node(id), "none", nil)
		require.ErrorIs(s.t, err, cluster.ErrNotOpen)
		second, err := NewLock(ctx, s.Node(id), cluster.DefaultGroup, nil)
		require.NoError(s.t, err)
		began := time.Now()
		_, _, err = second.Get(ctx)
		require.ErrorIs(s.t, err, cluster.ErrCampaigning)
		require.Equal(s.t, errorPause, time.Since(began)) // client-go logs it at each call
		require.ErrorIs(s.t, second.Update(ctx, own(second)), cluster.ErrNotLeader)

		s.replicas[id].stop()
		<-s.replicas[id].ended
		synctest.Wait()
		_, _, err = k.Get(ctx)
		require.ErrorIs(s.t, err, ErrOver)
		require.ErrorIs(s.t, k.Create(ctx, own(k)), ErrOver)
		require.NoError(s.t, k.Update(ctx, resourcelock.LeaderElectionRecord{}))
	})
}

// own is the record by which client-go asks for the lock.
func own(k *Lock) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: k.Identity(), LeaseDurationSeconds: 15}
}

// client-go alone, without a manager: whoever leads is known everywhere.
func TestClientGoAlone(t *testing.T) {
	withScene(t, &scene{}, func(s *scene) {
		for _, r := range s.replicas {
			r.stop()
			<-r.ended
		}
		works, news := make(chan string, 10), make(chan string, 10)
		stop := map[string]context.CancelFunc{}
		var all sync.WaitGroup
		defer all.Wait()
		for _, id := range three {
			ctx, cancel := context.WithCancel(s.t.Context())
			defer cancel()
			stop[string(id)] = cancel
			lock, err := NewLock(ctx, s.Node(id), cluster.DefaultGroup, nil)
			require.NoError(s.t, err)
			all.Go(func() {
				leaderelection.RunOrDie(lock.Context(), leaderelection.LeaderElectionConfig{
					Lock: lock, ReleaseOnCancel: true, LeaseDuration: 15 * time.Second,
					RenewDeadline: 10 * time.Second, RetryPeriod: 100 * time.Millisecond,
					Callbacks: leaderelection.LeaderCallbacks{
						OnStartedLeading: func(context.Context) { works <- string(id) },
						OnStoppedLeading: func() {},
						OnNewLeader:      func(leader string) { news <- leader },
					},
				})
			})
		}
		first := <-works
		for range three {
			require.Equal(s.t, first, <-news)
		}
		time.Sleep(5 * time.Second)
		stop[first]()
		second := <-works
		require.NotEqual(s.t, first, second)
		for range 2 {
			require.Equal(s.t, second, <-news)
		}
	})
}
