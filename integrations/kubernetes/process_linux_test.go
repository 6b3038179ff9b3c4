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
	})
	if err != nil {
		return err
	}
	resource, err := os.OpenFile(filepath.Join(dir, "resource"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(
		reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			token, err := lock.Leadership().NextLSN()
			if err == nil { // the kernel lets go of it with the process
				err = syscall.Flock(int(resource.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			}
			if err != nil {
				fmt.Println("another one works:", err)
				return reconcile.Result{}, err
			}
			fmt.Println("reconciles", r.Name, "with", token)
			return reconcile.Result{}, nil
		}))
	if err != nil {
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

// await waits for a line that begins with a text.
func (f *fleet) await(begin string, by func(name string) bool) line {
	f.t.Helper()
	limit := time.After(testkit.Limit(time.Minute))
	for {
		select {
		case l := <-f.lines:
			require.NotContains(f.t, l.text, "another one works")
			require.NotContains(f.t, l.text, "failed")
			if strings.HasPrefix(l.text, begin) && by(l.by) {
				return l
			}
		case <-limit:
			require.Fail(f.t, "nobody says "+begin)
		}
	}
}

// KUBELOCK_ROUNDS says how often the leading controller is killed, and is stopped.
func TestTheLeadingControllerIsKilled(t *testing.T) {
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("KUBELOCK_ROUNDS"), "1"))
	require.NoError(t, err)
	f := newFleet(t)
	leader := f.await("reconciles", func(string) bool { return true }).by
	took := map[syscall.Signal][]time.Duration{}
	for i := range 2 * rounds {
		s := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[i%2]
		if rounds > 1 {
			time.Sleep(3 * time.Second) // for figures: the one that was started again votes, too
		}
		old, began := leader, time.Now()
		f.end(old, s)
		next := f.await("reconciles", func(name string) bool { return name != old })
		leader, took[s] = next.by, append(took[s], next.at.Sub(began))
		f.start(old)
		f.await("leader "+leader, func(name string) bool { return name == old })
	}
	for s, times := range took {
		slices.Sort(times)
		t.Logf("%s: the next one reconciles after %s in the median, %s to %s (n=%d)", s,
			times[len(times)/2], times[0], times[len(times)-1], len(times))
	}
}
