package kubelock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
)

var three = []cluster.NodeID{"a", "b", "c"}

// scene is a cluster in virtual time with a real manager of controller-runtime on each node.
type scene struct {
	*clustertest.Cluster
	t        *testing.T
	plain    bool          // managers are not started with Lock.Context
	keeps    bool          // managers do not release the lock: no ReleaseOnCancel
	stubborn time.Duration // for how long work goes on that was told to stop
	hangs    chan struct{} // if set, work that was told to stop goes on until it is closed

	mu       sync.Mutex
	replicas map[cluster.NodeID]*replica
	working  map[cluster.NodeID]bool
	overlaps int
	lines    []string // what happened
}

// replica is a manager on a node.
type replica struct {
	lock    *Lock
	stop    context.CancelFunc
	ended   chan struct{}
	err     error
	overdue chan struct{} // closed when overdue was called
}

// withScene runs f with a manager on each of three nodes.
func withScene(t *testing.T, s *scene, f func(*scene)) {
	t.Helper()
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		s.t, s.Cluster = t, c
		s.replicas, s.working = map[cluster.NodeID]*replica{}, map[cluster.NodeID]bool{}
		for _, id := range three {
			s.manage(id)
		}
		defer s.end()
		f(s)
	}, clustertest.Configure(func(c *cluster.Config) { c.Election.AwaitCampaign = true }))
}

// manage starts a manager on a node.
func (s *scene) manage(id cluster.NodeID) *replica {
	ctx, cancel := context.WithCancel(context.Background())
	r := &replica{stop: cancel, ended: make(chan struct{}), overdue: make(chan struct{})}
	var err error
	r.lock, err = NewLock(ctx, s.Node(id), cluster.DefaultGroup, func(*cluster.Leadership) {
		s.note("%s is overdue", id)
		close(r.overdue)
	})
	require.NoError(s.t, err)
	s.mu.Lock()
	s.replicas[id] = r
	s.mu.Unlock()
	mgr := newManager(s.t, r.lock, !s.keeps)
	require.NoError(s.t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return s.work(ctx, id)
	})))
	if !s.plain {
		ctx = r.lock.Context()
	}
	go func() {
		defer close(r.ended)
		r.err = mgr.Start(ctx)
	}()
	return r
}

// newManager returns a manager that needs no API server, with the times that the README recommends
// for one that is not started with Lock.Context.
func newManager(t *testing.T, lock *Lock, release bool) manager.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Logger:                              logr.Discard(),
		Metrics:                             metricsserver.Options{BindAddress: "0"},
		LeaderElection:                      true,
		LeaderElectionReleaseOnCancel:       release,
		LeaderElectionResourceLockInterface: lock,
		RetryPeriod:                         new(50 * time.Millisecond),
		RenewDeadline:                       new(100 * time.Millisecond),
		GracefulShutdownTimeout:             new(time.Duration(-1)),
	})
	require.NoError(t, err)
	return mgr
}

// work is what only one manager may do.
func (s *scene) work(ctx context.Context, id cluster.NodeID) error {
	s.mu.Lock()
	s.overlaps += len(s.working)
	s.working[id] = true
	s.mu.Unlock()
	s.note("%s works", id)
	<-ctx.Done()
	time.Sleep(s.stubborn)
	if s.hangs != nil {
		<-s.hangs
	}
	s.stopped(id)
	return nil
}

// told is what is noted when the work of one manager, which was told to stop, has stopped and
// another works. A manager without Lock.Context does not say that its work has stopped: in a
// process of its own it would have exited.
func (s *scene) told(old, next cluster.NodeID) []string {
	told := []string{fmt.Sprintf("%s has stopped", old), fmt.Sprintf("%s works", next)}
	if s.plain {
		told = slices.Insert(told, 1, fmt.Sprintf("%s is overdue", old))
	}
	return told
}

// stopped notes that work has stopped, or that its process is gone.
func (s *scene) stopped(id cluster.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working[id] {
		s.lines = append(s.lines, fmt.Sprintf("%s has stopped", id))
		delete(s.working, id)
	}
}

func (s *scene) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// worker is the node whose manager works; "" for none.
func (s *scene) worker() (id cluster.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id = range s.working {
	}
	return id
}

// awaitWorker waits until a manager works on another node than the given one.
func (s *scene) awaitWorker(not cluster.NodeID) cluster.NodeID {
	s.t.Helper()
	s.Await("another worker than "+string(not), func() bool {
		id := s.worker()
		return id != "" && id != not
	})
	return s.worker()
}

// story is what happened since the last call.
func (s *scene) story() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	return lines
}

// end stops all managers. No two have worked at once.
func (s *scene) end() {
	for _, r := range s.replicas {
		r.stop()
		<-r.ended
	}
	require.Zero(s.t, s.overlaps, s.lines)
}
