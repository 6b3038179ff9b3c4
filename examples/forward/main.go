// Forward is an HTTP service with several copies. Clients may ask any of them: the leader
// answers, and the others forward requests to it. Try it in three terminals, then kill the leader:
//
//	go run ./forward -node a -http 127.0.0.1:8081 -gossip 127.0.0.1:7410
//	go run ./forward -node b -http 127.0.0.1:8082 -join 127.0.0.1:7410
//	go run ./forward -node c -http 127.0.0.1:8083 -join 127.0.0.1:7410
//	curl http://127.0.0.1:8082
//
// Each node tells the others its address for clients by Config.Meta. The leader's is in
// every Leader.
//
// A request is forwarded only once, so two nodes that disagree about the leader do not send it
// back and forth. A leader may be replaced while it answers: what it writes needs a token, as in
// fencing-http.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg := cluster.Config{Voters: []cluster.NodeID{"a", "b", "c"}, MeshAddr: "127.0.0.1:0"}
	node := flag.String("node", "a", "`name` of this node: a, b or c")
	join := flag.String("join", "127.0.0.1:7410", "gossip `address` of another node")
	flag.StringVar(&cfg.GossipAddr, "gossip", "127.0.0.1:0", "gossip `address` of this node")
	addr := flag.String("http", "127.0.0.1:8081", "`address` for clients")
	flag.Parse()
	cfg.Node, cfg.Join = cluster.NodeID(*node), []string{*join}
	cfg.DataDir = filepath.Join(os.TempDir(), "forward-"+*node) // in production: a disk that is kept
	ln, err := net.Listen("tcp", *addr)
	if err == nil {
		err = serve(ctx, cfg, ln)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve is a copy of the service, until ctx ends.
func serve(ctx context.Context, cfg cluster.Config, ln net.Listener) error {
	cfg.Meta = "http://" + ln.Addr().String() // where the others send requests if it leads
	node, err := cluster.Start(ctx, cfg)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: forwarder{node.Default(), answer(cfg.Node)}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// A leader answers what it has begun to answer, and then hands over.
	return errors.Join(err, server.Shutdown(ctx), node.Close(ctx))
}

// answer is what only the leader does.
func answer(node cluster.NodeID) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s answers %s\n", node, r.URL.Path)
	}
}

const (
	patience  = 10 * time.Second // a leader is elected in less
	forwarded = "Forwarded-To-Leader"
)

// forwarder lets the leader serve, wherever the request comes in.
type forwarder struct {
	election *cluster.Election
	leader   http.Handler
}

func (f forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.election.IsLeader() {
		f.leader.ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	leader, err := f.election.Leader(ctx)
	to, bad := url.Parse(leader.Meta)
	if err = errors.Join(err, bad); err != nil || to.Host == "" || r.Header.Get(forwarded) != "" {
		w.Header().Set("Retry-After", "1")
		http.Error(w, fmt.Sprintf("no leader here: %q, %v", leader.Node, err),
			http.StatusServiceUnavailable)
		return
	}
	proxy := httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(to)
		p.SetXForwarded()
		p.Out.Header.Set(forwarded, string(leader.Node))
	}}
	proxy.ServeHTTP(w, r)
}
