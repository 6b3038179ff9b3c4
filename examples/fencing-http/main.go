// Fencing-http is a service with several copies. Only the leader writes to a resource
// behind HTTP. Try it in four terminals, then kill or pause (Ctrl-Z) the node
// that writes:
//
//	go run ./fencing-http resource
//	go run ./fencing-http node -voters a,b,c -node a -gossip 127.0.0.1:7410
//	go run ./fencing-http node -voters a,b,c -node b -join 127.0.0.1:7410
//	go run ./fencing-http node -voters a,b,c -node c -join 127.0.0.1:7410
//
// A context that ends in time is not enough. A process may be paused after it has
// looked at it, for longer than any lease, or its request may be on its way for that
// long. When it arrives, another node leads. So the leader sends a token (NextLSN) with
// each request, and the resource keeps the newest token that it has seen and
// refuses those that go backwards, whatever language it is written in:
//
//	PUT /value HTTP/1.1
//	Fencing-Token: 5.2
//
//	HTTP/1.1 412 Precondition Failed
//	Content-Type: application/problem+json
//
//	{"title":"Precondition Failed","status":412,
//	 "detail":"a newer leader has written: got 5.2 after 6.1","token":"5.2","newest":"6.1"}
//
// See send for the leader's side and Resource for the other. A resource
// compares tokens as two numbers, the one before the dot first; it saves its fence
// to disk before it answers; otherwise a restart would admit what was refused before.
//
// Two things to know. The resource learns of a new leader by its first write:
// a leader that decides by what it reads writes before it reads. And the fence
// outlives the cluster: if every node has lost its data directory, terms begin
// again and the resource's file must be made again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
)

const (
	defaultAddr = "127.0.0.1:7480" // of the resource
	grace       = 5 * time.Second  // to leave in good order
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := hclog.New(&hclog.LoggerOptions{})
	if err := run(ctx, os.Args[1:], log); err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Error("end", "error", err)
		os.Exit(1)
	}
}

// run is the resource or a node, until ctx ends.
func run(ctx context.Context, args []string, log hclog.Logger) error {
	if len(args) > 0 && args[0] == "resource" {
		return serve(ctx, args[1:], log)
	}
	if len(args) > 0 && args[0] == "node" {
		w, cfg, err := parse(args[1:])
		if err != nil {
			return err
		}
		return w.run(ctx, cfg, log)
	}
	return errors.New(`want "resource" or "node" as the first argument`)
}

// serve runs the resource.
func serve(ctx context.Context, args []string, log hclog.Logger) error {
	flags := flag.NewFlagSet("resource", flag.ContinueOnError)
	addr := flags.String("addr", defaultAddr, "`address` to listen on")
	file := flags.String("file", inTemp("fencing-http.json"), "`file` that keeps value and fence")
	if err := flags.Parse(args); err != nil {
		return err
	}
	resource, err := OpenResource(*file, log)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: *addr, Handler: resource, ReadTimeout: patience,
		WriteTimeout: patience}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	log.Info("listening", "addr", *addr)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", *file, err)
	}
	return nil
}

// parse reads the command line of a node.
func parse(args []string) (w writer, cfg cluster.Config, err error) {
	flags := flag.NewFlagSet("node", flag.ContinueOnError)
	flags.StringVar(&w.url, "resource", "http://"+defaultAddr+"/value", "`URL` of the resource")
	flags.DurationVar(&w.every, "every", time.Second, "`period` of the leader's writes")
	node := flags.String("node", "a", "name of this node")
	voters := flags.String("voters", "a", "names of all nodes, the same for every node")
	join := flags.String("join", "", "gossip `address` of another node")
	flags.StringVar(&cfg.DataDir, "data", "",
		"`directory` for this node's state (default: a temporary one, named after it)")
	flags.StringVar(&cfg.GossipAddr, "gossip", "127.0.0.1:0", "gossip `address` of this node")
	flags.StringVar(&cfg.MeshAddr, "mesh", "127.0.0.1:0", "mesh `address` of this node")
	if err := flags.Parse(args); err != nil {
		return w, cfg, err
	}
	cfg.Node = cluster.NodeID(*node)
	for name := range strings.SplitSeq(*voters, ",") {
		cfg.Voters = append(cfg.Voters, cluster.NodeID(name))
	}
	if *join != "" {
		cfg.Join = []string{*join}
	}
	cfg.Election.AwaitCampaign = true // who does not write does not lead
	if cfg.DataDir == "" {
		cfg.DataDir = inTemp("fencing-http-" + *node)
	}
	return w, cfg, nil
}

// inTemp is where a demonstration leaves its files. In production, use a disk that is kept.
func inTemp(name string) string { return filepath.Join(os.TempDir(), name) }
