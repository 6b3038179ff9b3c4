// Coordinator is a service whose processes share out partitions: the leader assigns
// each partition to one live process. In the folder examples, try it in three
// terminals, then kill, pause (Ctrl-Z) or end (Ctrl-C) whichever you like:
//
//	go run ./coordinator -node a a=127.0.0.1:7411 b=127.0.0.1:7412 c=127.0.0.1:7413  # or b, or c
//
// A worker asks the leader several times within a grant. The answer lets it work until
// one grant after it asked, so a worker that hears nothing stops by itself. A leader
// gives a partition to another worker when the one before said that it has stopped, or
// when its grant has expired. A new leader first waits until every grant of earlier
// leaders has expired; workers tell it what they work on, so their work goes on.
package main

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/rpc"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/hashicorp/go-hclog"
)

func main() {
	name := flag.String("node", "", "name of this node; the arguments are NODE=GOSSIPADDRESS of all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := hclog.New(&hclog.LoggerOptions{JSONFormat: true, Output: os.Stdout})
	if err := run(ctx, config(*name, flag.Args()), log); err != nil {
		log.Error("stopped", "error", err)
		os.Exit(1)
	}
}

func config(name string, nodes []string) cluster.Config {
	dir := filepath.Join(os.TempDir(), "coordinator-"+name)
	c := cluster.Config{Node: cluster.NodeID(name), MeshAddr: "127.0.0.1:0", DataDir: dir}
	for _, node := range nodes {
		voter, address, _ := strings.Cut(node, "=")
		c.Voters, c.Join = append(c.Voters, cluster.NodeID(voter)), append(c.Join, address)
		if voter == name {
			c.GossipAddr = address
		}
	}
	return c // Start says what is wrong with it
}

// run is one process of the service, until ctx ends.
func run(ctx context.Context, c cluster.Config, log hclog.Logger) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	c.Meta = listener.Addr().String() // where the workers find the leader
	c.Election.AwaitCampaign = true   // a node that cannot answer yet must not lead
	node, err := cluster.Start(ctx, c)
	if err != nil {
		return err
	}
	s := &service{node: node, ask: askByNetwork, log: log.With("node", c.Node)}
	err = rpc.RegisterName("leader", s)
	go rpc.Accept(listener)
	return errors.Join(err, s.run(ctx), node.Close(context.Background()))
}

type service struct {
	node   *cluster.Node
	leader atomic.Pointer[leader] // nil while this node does not lead
	ask    func(leader cluster.Leader, q Question, granted *Tokens) error
	log    hclog.Logger
}

// run takes part until ctx ends, or the node does.
func (s *service) run(ctx context.Context) error {
	w := &worker{node: s.node.Status().Node, log: s.log, working: Tokens{}, ended: Tokens{}}
	ran := make(chan error, 1)
	go func() {
		ran <- s.node.Default().Run(ctx, cluster.Callbacks{
			OnStartedLeading: func(ctx context.Context, l *cluster.Leadership) error {
				opens, asked := time.Now().Add(expiry), map[cluster.NodeID]time.Time{}
				s.leader.Store(&leader{token: l.NextLSN, log: s.log, opens: opens, asked: asked})
				<-ctx.Done()
				s.leader.Store(nil)
				return nil
			},
		})
	}()
	for tick := time.Tick(grant / 5); ; {
		select {
		case <-tick:
			if err := s.consult(ctx, w); err != nil {
				s.log.Warn("no answer", "error", err) // without one the grant expires
			}
			w.work()
		case err := <-ran:
			return err
		}
	}
}

// consult asks the leader once, and lets the worker follow its answer.
func (s *service) consult(ctx context.Context, w *worker) error {
	q, asked, granted := w.question(), time.Now(), Tokens{}
	ctx, cancel := context.WithTimeout(ctx, grant/5)
	defer cancel()
	leader, err := s.node.Default().Leader(ctx)
	if err == nil {
		err = s.ask(leader, q, &granted)
	}
	if err == nil {
		w.follow(granted, asked.Add(grant))
	}
	return err
}

func askByNetwork(leader cluster.Leader, q Question, granted *Tokens) error {
	conn, err := net.DialTimeout("tcp", leader.Meta, grant/5)
	if err != nil {
		return err
	}
	client := rpc.NewClient(conn)
	defer client.Close()
	_ = conn.SetDeadline(time.Now().Add(grant / 5))
	return client.Call("leader.Answer", q, granted)
}

// Answer tells a worker what it may work on, if this node leads.
func (s *service) Answer(q Question, granted *Tokens) (err error) {
	l := s.leader.Load()
	if l == nil {
		return errors.New("this node does not lead")
	}
	*granted, err = l.answer(q)
	return err
}
