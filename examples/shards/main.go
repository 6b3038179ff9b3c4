// Shards runs five nodes in one process that share out many shards, kills one, and shows how the
// shards spread. In the folder examples:
//
//	go run ./shards -shards 1000
//
// It ends with status 1 if two nodes ever worked on a shard at once, or if shards stay without an
// owner. The README says what the figures mean.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/shards"
	"github.com/bmqelect/bmqelect/elector"
)

func main() {
	n := flag.Int("shards", 10_000, "number of shards")
	limit := flag.Duration("limit", time.Minute, "how long a step may take at most")
	flag.Parse()
	dir, err := os.MkdirTemp("", "shards-")
	if err == nil {
		err = errors.Join(run(os.Stdout, dir, *n, *limit, timing()), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// timing gives five nodes that share a machine time to get a core. A leader that is killed without
// a proof of its death is then missed for as long as its lease.
func timing() elector.Timing {
	t := elector.BlazingMQ()
	t.HeartbeatBroadcast, t.Lease, t.HeartbeatMissCount = 4*time.Second, 12*time.Second, 4
	t.InitialWait = t.Promise()
	return t
}

var names = []cluster.NodeID{"a", "b", "c", "d", "e"}

// service is all nodes, with what they write to.
type service struct {
	out      io.Writer
	resource *resource
	limit    time.Duration
	nodes    map[cluster.NodeID]*cluster.Node
	ended    chan error // of the shards of a node
}

// run is the whole story.
func run(out io.Writer, dir string, n int, limit time.Duration, t elector.Timing) (err error) {
	s := &service{out, newResource(n), limit, map[cluster.NodeID]*cluster.Node{}, make(chan error)}
	ctx, stop := context.WithCancel(context.Background())
	defer func() { stop(); err = errors.Join(err, s.end()) }()
	for _, id := range names {
		if err := s.start(ctx, id, dir, n, t); err != nil {
			return err
		}
	}
	if err := s.await("all nodes are up"); err != nil {
		return err
	}
	victim, before := names[2], s.resource.owners()
	if err := s.kill(victim); err != nil {
		return err
	}
	if err := s.await(fmt.Sprintf("node %s is dead", victim)); err != nil {
		return err
	}
	moved := 0
	for i, owner := range s.resource.owners() {
		if before[i] != victim && owner != before[i] {
			moved++
		}
	}
	fmt.Fprintf(out, "%d shards of other nodes have moved\n", moved)
	return nil
}

// start starts a node and its shards. The others join the first one.
func (s *service) start(
	ctx context.Context, id cluster.NodeID, dir string, n int, t elector.Timing,
) error {
	c := cluster.Config{
		Node: id, Voters: names, DataDir: filepath.Join(dir, string(id)),
		GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0",
		Election: cluster.ElectionConfig{Timing: t},
	}
	if first := s.nodes[names[0]]; first != nil {
		c.Join = []string{first.Status().GossipAddr}
	}
	node, err := cluster.Start(ctx, c)
	if err != nil {
		return err
	}
	s.nodes[id] = node
	go func() {
		// snippet: shards
		err := shards.Run(ctx, node, shards.Config{
			N: n, // the same on every node
			Work: func(ctx context.Context, shard shards.Shard) error {
				return s.resource.work(ctx, id, shard)
			},
			Election: cluster.ElectionConfig{Timing: t},
		})
		// end
		s.ended <- err
	}()
	return nil
}

// await waits until every shard has an owner, and tells how they spread.
func (s *service) await(what string) error {
	began := time.Now()
	for {
		loads, without := s.resource.loads()
		switch took := time.Since(began).Round(10 * time.Millisecond); {
		case without == 0:
			fmt.Fprintf(s.out, "%s: after %s every shard has an owner: %v\n", what, took, loads)
			return nil
		case took > s.limit:
			return fmt.Errorf("%s: after %s %d shards have no owner: %v", what, took, without, loads)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// kill ends a node as abruptly as is possible within a process: it hands nothing over, and does not
// wait for its work.
func (s *service) kill(id cluster.NodeID) error {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.nodes[id].Close(gone) // its error says that nothing was handed over
	delete(s.nodes, id)
	if err := <-s.ended; !errors.Is(err, cluster.ErrClosed) {
		return fmt.Errorf("shards of the killed node: %w", err)
	}
	return nil
}

// end waits until all work has stopped, closes the nodes, and says what the resource has seen.
func (s *service) end() (err error) {
	for range s.nodes {
		err = errors.Join(err, <-s.ended)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.limit)
	defer cancel()
	for _, node := range s.nodes {
		err = errors.Join(err, node.Close(ctx))
	}
	return errors.Join(err, s.resource.verdict(s.out))
}
