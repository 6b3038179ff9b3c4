package kubelock

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// asController tells this binary that a test has started it as a controller.
const asController = "KUBELOCK_CONTROLLER"

func TestMain(m *testing.M) {
	if os.Getenv(asController) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := control(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// control is the main function of a controller: a node, a lock and a manager.
func control(name, dir, api string, gossip []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	node, err := cluster.Start(ctx, nodeConfig(name, dir, gossip))
	if err != nil {
		return err
	}
	lock, err := NewLock(ctx, node, cluster.DefaultGroup, nil)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(&rest.Config{Host: api}, ctrl.Options{
		Metrics:                             metricsserver.Options{BindAddress: "0"},
		LeaderElection:                      true,
		LeaderElectionReleaseOnCancel:       true,
		LeaderElectionResourceLockInterface: lock,
		RetryPeriod:                         new(100 * time.Millisecond),
		GracefulShutdownTimeout:             new(time.Duration(-1)),
		Controller:                          config.Controller{EnableWarmup: new(true)},
	})
	if err != nil {
		return err
	}
	if err := errors.Join(mgr.Add(&guarded{lock, dir}), reconciles(mgr)); err != nil {
		return err
	}
	go func() {
		for leader := range node.Default().Observe(ctx) {
			fmt.Println("leader", leader.Node)
		}
	}()
	err = mgr.Start(lock.Context())
	return errors.Join(err, node.Close(context.Background()))
}

// guarded is work that only one process may do: it has a file for itself.
type guarded struct {
	lock *Lock
	dir  string
}

func (g *guarded) Start(ctx context.Context) error {
	file, err := os.OpenFile(filepath.Join(g.dir, "resource"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() // and the kernel does, with the process
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("another one works: %w", err)
	}
	token, err := g.lock.Leadership().NextLSN()
	fmt.Println("works with", token, err)
	<-ctx.Done()
	return nil
}

// reconciles adds a controller to a manager.
func reconciles(mgr ctrl.Manager) error {
	return builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(
		reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			fmt.Println("reconciles", r.Name)
			return reconcile.Result{}, nil
		}))
}

func nodeConfig(name, dir string, gossip []string) cluster.Config {
	t := elector.Article()
	t.InitialWait, t.MaxRandomWait = t.Promise(), 500*time.Millisecond // faster elections
	return cluster.Config{
		Node: cluster.NodeID(name), Voters: three, DataDir: filepath.Join(dir, name), Join: gossip,
		GossipAddr: gossip[slices.Index(three, cluster.NodeID(name))], MeshAddr: "127.0.0.1:0",
		Election: cluster.ElectionConfig{Timing: t, AwaitCampaign: true},
	}
}

// fleet is three controllers, each in a process of its own.
type fleet struct {
	t     *testing.T
	dir   string
	api   string
	cmds  map[string]*exec.Cmd
	lines chan line // of all
	gone  map[string]chan struct{}
}

// line is a line that a controller has printed.
type line struct {
	by, text string
	at       time.Time
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, dir: t.TempDir(), api: apiServer(t), cmds: map[string]*exec.Cmd{},
		lines: make(chan line, 1000), gone: map[string]chan struct{}{}}
	for _, id := range three {
		f.start(string(id))
	}
	t.Cleanup(func() {
		for id := range f.cmds {
			f.end(id, syscall.SIGKILL)
		}
	})
	return f
}

func (f *fleet) start(name string) {
	args := []string{name, f.dir, f.api}
	for n := range three { // a loopback address of this process: its ports stay free
		pid := os.Getpid()
		args = append(args, fmt.Sprintf("127.%d.%d.%d:%d", 10+pid>>16&0x7f, pid>>8&0xff, pid&0xff,
			7711+n))
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asController+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	require.NoError(f.t, err)
	require.NoError(f.t, cmd.Start())
	gone := make(chan struct{})
	f.cmds[name], f.gone[name] = cmd, gone
	go func() {
		defer close(gone)
		for text := bufio.NewScanner(out); text.Scan(); {
			f.lines <- line{name, text.Text(), time.Now()}
		}
		_ = cmd.Wait()
	}()
}

// end signals a process, and waits until it is gone.
func (f *fleet) end(name string, s syscall.Signal) {
	_ = f.cmds[name].Process.Signal(s)
	<-f.gone[name]
}

// await waits until a process, of those that by is true for, has printed a line that begins with
// each text. It returns the first such lines.
func (f *fleet) await(by func(name string) bool, begins ...string) []line {
	f.t.Helper()
	found, limit := make([]line, len(begins)), time.After(testkit.Limit(time.Minute))
	for slices.Contains(found, line{}) {
		select {
		case l := <-f.lines:
			require.NotContains(f.t, l.text, "failed") // another one works, for example
			for i, begin := range begins {
				if found[i] == (line{}) && strings.HasPrefix(l.text, begin) && by(l.by) {
					found[i] = l
				}
			}
		case <-limit:
			require.Failf(f.t, "lines are missing", "%q: %v", begins, found)
		}
	}
	return found
}

// KUBELOCK_ROUNDS says how often the leading controller is killed, and is stopped.
func TestTheLeadingControllerIsKilled(t *testing.T) {
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("KUBELOCK_ROUNDS"), "1"))
	require.NoError(t, err)
	f := newFleet(t)
	leader := f.await(func(string) bool { return true }, "reconciles")[0].by
	took := map[string][]time.Duration{}
	for i := range 2 * rounds {
		s := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[i%2]
		if rounds > 1 {
			time.Sleep(3 * time.Second) // for figures: the one that was started again votes, too
		}
		old, began := leader, time.Now()
		f.end(old, s)
		next := f.await(func(name string) bool { return name != old }, "works", "reconciles")
		leader = next[0].by
		for k, what := range []string{"works", "reconciles"} {
			what = fmt.Sprintf("%s: the next one %s", s, what)
			took[what] = append(took[what], next[k].at.Sub(began))
		}
		f.start(old)
		f.await(func(name string) bool { return name == old }, "leader "+leader)
	}
	for what, times := range took {
		slices.Sort(times)
		t.Logf("%s after %s in the median, %s to %s (n=%d)", what, times[len(times)/2], times[0],
			times[len(times)-1], len(times))
	}
}
