package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

// A service embeds a node, and does what only one may do while it leads. This
// one is the only voter, so it leads at once; with three voters, run the same
// program three times, each with its own Node, DataDir and addresses.
func Example() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	node, err := cluster.Start(context.Background(), cluster.Config{
		Node:       "a",
		Voters:     []cluster.NodeID{"a"}, // in earnest: "a", "b", "c"
		DataDir:    dir,
		Join:       nil, // in earnest: addresses of any other members
		GossipAddr: "127.0.0.1:0",
		MeshAddr:   "127.0.0.1:0",
	})
	if err != nil {
		panic(err)
	}

	l, err := node.Default().Campaign(context.Background())
	if err != nil {
		panic(err)
	}
	token, err := l.NextLSN() // send it along; the resource keeps an lsn.Fence
	if err != nil {
		panic(err)
	}
	fmt.Println("leading, first fencing token:", token)
	l.Release() // the work has stopped

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := node.Close(ctx); err != nil { // hands over, then leaves
		panic(err)
	}
	// Output: leading, first fencing token: 1.1
}

// alone starts a node that is the only voter, so that the examples need no others.
func alone() (node *cluster.Node, end func()) {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	node, err = cluster.Start(context.Background(), cluster.Config{
		Node: "a", Voters: []cluster.NodeID{"a"}, DataDir: dir, GossipAddr: "127.0.0.1:0",
		MeshAddr: "127.0.0.1:0",
	})
	if err != nil {
		panic(err)
	}
	return node, func() {
		node.Close(context.Background())
		os.RemoveAll(dir)
	}
}

// Campaign, work, release: leadership with a handle.
func ExampleElection_Campaign() {
	node, end := alone()
	defer end()

	l, err := node.Default().Campaign(context.Background()) // waits until this node leads
	if err != nil {
		panic(err)
	}
	work := func(ctx context.Context) {
		fmt.Println("working:", ctx.Err() == nil, l.Valid())
	}
	work(l.Context()) // canceled in time for the work to stop
	l.Release()       // the work has stopped: others may lead
	<-l.Done()
	fmt.Println("ended:", l.Reason(), l.Valid())
	// Output:
	// working: true true
	// ended: RESIGNED false
}

// The node works whenever it leads, until ctx ends.
func ExampleElection_Run() {
	node, end := alone()
	defer end()

	ctx, cancel := context.WithCancel(context.Background())
	err := node.Default().Run(ctx, cluster.Callbacks{
		OnStartedLeading: func(ctx context.Context, l *cluster.Leadership) error {
			fmt.Println("started")
			cancel()     // in earnest: at SIGTERM
			<-ctx.Done() // the work must stop: a handover waits for it
			return nil
		},
		OnStoppedLeading: func(l *cluster.Leadership) { fmt.Println("stopped:", l.Reason()) },
	})
	fmt.Println(err)
	// Output:
	// started
	// stopped: RESIGNED
	// <nil>
}

// Every node can follow who leads.
func ExampleElection_Observe() {
	node, end := alone()
	defer end()

	for leader := range node.Default().Observe(context.Background()) {
		if leader.Node == "" {
			continue // nobody
		}
		fmt.Println(leader.Node, "leads")
		break // in earnest: go on, until the context ends
	}
	// Output: a leads
}

// A node that cannot do its work does not stand for election.
func ExampleElection_SetFit() {
	node, end := alone()
	defer end()

	if err := node.Default().SetFit(errors.New("disk full")); err != nil {
		panic(err)
	}
	fmt.Println("why it does not stand:", node.Default().Status().Unfit)
	if err := node.Default().SetFit(nil); err != nil { // all is well again
		panic(err)
	}
	fmt.Printf("and now: %q\n", node.Default().Status().Unfit)
	// Output:
	// why it does not stand: disk full
	// and now: ""
}

// Guarded work has to stop before Close hands over: a context tells it to.
func ExampleLeadership_Context() {
	node, end := alone()
	defer end()

	l, err := node.Default().Campaign(context.Background())
	if err != nil {
		panic(err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-l.Context().Done()
		fmt.Println(context.Cause(l.Context()))
		l.Release()
	}()
	node.Close(context.Background()) // waits for the work
	<-stopped
	// Output: leadership of node a in election "default", term 1, ends: STOPPED
}
