// Coordinator is a service whose processes share out partitions. In the folder examples, try it in
// three terminals, then kill, pause (Ctrl-Z) or end (Ctrl-C) whichever you like:
//
//	go run ./coordinator -node a a=127.0.0.1:7411 b=127.0.0.1:7412 c=127.0.0.1:7413  # or b, or c
//
// The README says why no partition has two owners, and keeps its owner when the leader dies.
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
	return c // run and Start say what is wrong with it
}

// run is one process of the service, until ctx ends.
func run(ctx context.Context, c cluster.Config, log hclog.Logger) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if c.GossipAddr == "" {
		return errors.New("-node must name one of the arguments, which are NODE=GOSSIPADDRESS")
	} else if err != nil {
		return err
	}
	c.Meta = listener.Addr().String() // where the workers find the leader
	c.Election.AwaitCampaign = true   // a node that cannot answer yet must not lead
	node, err := cluster.Start(ctx, c)
	if err != nil {
		return err
	}
	s := &service{node: node, ask: askByNetwork, log: log.With("node", c.Node)}
	go rpc.Accept(listener)
	return errors.Join(rpc.RegisterName("leader", s), s.run(ctx), node.Close(context.Background()))
}

// service is a worker, and assigns partitions while its node leads.
type service struct {
	node    *cluster.Node
	ask     func(leader cluster.Leader, worker cluster.NodeID, granted *Tokens) error
	log     hclog.Logger
	leader  atomic.Pointer[leader] // of the newest leadership of this node
	working Tokens                 // what was granted, and until when
	until   time.Time
}

// run takes part until ctx ends, or the node does.
func (s *service) run(ctx context.Context) error {
	ran := make(chan error, 1)
	go func() { ran <- s.node.Default().Run(ctx, cluster.Callbacks{OnStartedLeading: s.lead}) }()
	for ask, act := time.Tick(grant/5), time.Tick(grant/20); ; {
		select {
		case <-ask:
			s.consult(ctx)
		case <-act:
			s.work()
		case err := <-ran:
			return err
		}
	}
}

// consult asks the leader once, and works on what it grants and nothing else.
func (s *service) consult(ctx context.Context) {
	asked, granted := time.Now(), Tokens{}
	ctx, cancel := context.WithTimeout(ctx, grant/5)
	defer cancel()
	leader, err := s.node.Default().Leader(ctx)
	if err == nil {
		err = s.ask(leader, s.node.Status().Node, &granted)
	}
	if err != nil {
		s.log.Warn("no answer", "error", err) // without one the grant ends
		return
	}
	for p, token := range granted {
		if s.working[p] != token {
			s.log.Info("begun", "partition", p, "lsn", token)
		}
	}
	s.working, s.until = granted, asked.Add(grant)
}

// work does something for each partition. A process may be paused between the look at the clock
// and the act: an act that others see must carry the token, and the other end must refuse an old
// one, as in examples/fencing-sql and examples/fencing-http. The tests read the log.
func (s *service) work() {
	for p, token := range s.working {
		if now := time.Now(); now.Before(s.until) {
			s.log.Info("worked", "partition", p, "lsn", token, "at", now)
		}
	}
}

// lead assigns partitions, from the table of the leaders before on, until ctx ends.
func (s *service) lead(ctx context.Context, held *cluster.Leadership) error {
	l := &leader{held: held, log: s.log, opens: time.Now().Add(expiry),
		asked: map[cluster.NodeID]time.Time{}}
	s.log.Info("leads", "term", held.Term())
	err := l.take(ctx, "kept")
	s.leader.Store(l)
	for tick := time.Tick(grant / 5); err == nil; {
		select {
		case <-tick:
			err = l.move(ctx)
		case <-ctx.Done():
			return nil
		}
	}
	return err
}

// Answer tells a worker what it may work on, if this node leads.
func (s *service) Answer(worker cluster.NodeID, granted *Tokens) error {
	if l := s.leader.Load(); l != nil {
		return l.answer(worker, *granted)
	}
	return cluster.ErrNotLeader
}

func askByNetwork(leader cluster.Leader, worker cluster.NodeID, granted *Tokens) error {
	conn, err := net.DialTimeout("tcp", leader.Meta, grant/5)
	if err != nil {
		return err
	}
	client := rpc.NewClient(conn)
	defer client.Close()
	_ = conn.SetDeadline(time.Now().Add(grant / 5))
	return client.Call("leader.Answer", worker, granted)
}
