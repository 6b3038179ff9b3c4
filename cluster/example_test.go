package cluster_test

import (
	"context"
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

	events := node.Subscribe(16)
	for !node.IsLeader() {
		<-events.Events() // something changed: look again
	}
	token, err := node.NextLSN() // send it along; the resource keeps an lsn.Fence
	if err != nil {
		panic(err)
	}
	fmt.Println("leading, first fencing token:", token)

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := node.Close(ctx); err != nil { // hands over, then leaves
		panic(err)
	}
	// Output: leading, first fencing token: 1.1
}
