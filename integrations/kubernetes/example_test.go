package kubelock_test

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/bmqelect/bmqelect/cluster"
	kubelock "github.com/bmqelect/bmqelect/integrations/kubernetes"
)

// The main function of a controller.
func Example() {
	cfg := cluster.Config{Node: "reports-0"} // and more: docs/embedding.md
	if err := serve(cfg, func(ctrl.Manager) error { return nil }); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}

func serve(cfg cluster.Config, add func(ctrl.Manager) error) error {
	// snippet: controller-runtime
	ctx := ctrl.SetupSignalHandler()
	node, err := cluster.Start(ctx, cfg)
	if err != nil {
		return err
	}
	lock, err := kubelock.NewLock(ctx, node, cluster.DefaultGroup, nil)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		GracefulShutdownTimeout:             new(time.Duration(-1)), // until the work has stopped
		RetryPeriod:                         new(100 * time.Millisecond),
	})
	if err != nil {
		return err
	}
	if err := add(mgr); err != nil { // controllers and runnables, as before
		return err
	}
	err = mgr.Start(lock.Context())
	closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(err, node.Close(closing))
	// end
}

// Example_clientGo keeps the callbacks of client-go: only the lock is another one.
func Example_clientGo() {
	lead := func(ctx context.Context, node *cluster.Node, work func(context.Context)) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		lock, err := kubelock.NewLock(ctx, node, cluster.DefaultGroup, nil)
		if err != nil {
			return err
		}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock:          lock,
			LeaseDuration: 15 * time.Second,
			RenewDeadline: 100 * time.Millisecond, // with RetryPeriod: less than StopMargin
			RetryPeriod:   50 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: work,
				OnStoppedLeading: func() { os.Exit(0) }, // at once, or work overlaps
			},
		})
		return nil
	}
	_ = lead
}
