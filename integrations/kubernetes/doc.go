// Package kubelock lets a Kubernetes controller choose its leader with a cluster.Node of its own
// process instead of a Lease of the API server. A Lock is what client-go and controller-runtime
// call a resource lock:
//
//	node, err := cluster.Start(ctx, config)
//	lock, err := kubelock.NewLock(ctx, node, cluster.DefaultGroup, nil)
//	mgr, err := ctrl.NewManager(rest, ctrl.Options{
//		LeaderElection: true, LeaderElectionReleaseOnCancel: true,
//		LeaderElectionResourceLockInterface: lock,
//	})
//	err = mgr.Start(lock.Context())
//
// Nothing is stored: what client-go reads and writes as a record is what the node knows. The node
// campaigns from the moment when the manager asks for the lock, so a manager whose caches are not
// filled yet does not lead. client-go learns that it leads, and works, only under a
// cluster.Leadership that is valid. No other manager can begin before that Leadership is over.
//
// What must stop when the leadership ends does so by Lock.Context. Who does not use that learns of
// the end by Update, which fails at once; then RetryPeriod and RenewDeadline, together, must be
// shorter than ElectionConfig.StopMargin. Whatever has not stopped when another manager may begin
// is told by overdue.
//
// Files in order of reading: lock.go, what clients call; record.go, client-go's interface;
// tenure.go, the life of a leadership.
package kubelock
