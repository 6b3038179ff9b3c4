package admin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

// Config says for which node a server answers, and whom it obeys.
type Config struct {
	Node *cluster.Node
	// Faults is the node's fault layer; nil if it has none.
	Faults *fault.Faults
	// Token, if set, is demanded of every request that changes something. Without
	// one, only those that come over loopback or a Unix socket may.
	Token string
	// TokenReads demands the token of requests that change nothing, too; /healthz
	// and /readyz stay open.
	TokenReads bool
	// Hosts are further names under which a listener on loopback may be asked,
	// beside localhost and the addresses of loopback.
	Hosts []string
	// Logger gets what goes wrong. Default: nothing is logged.
	Logger hclog.Logger
}

// Server answers for one node.
type Server struct {
	Config
	http    http.Server
	journal *journal
	waiting chan struct{} // holds an item per request that waits or streams
	running sync.WaitGroup
	stop    context.CancelFunc // ends the requests that wait or stream
}

// Limits of a request. Answers may take longer: an event stream never ends.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = time.Minute
	maxBody       = 64 << 10
	// maxWaiting bounds the requests that wait or stream at the same time.
	maxWaiting = 256
)

// Serve answers on the listeners until Close, which also closes them.
func Serve(cfg Config, listeners ...net.Listener) *Server {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{Config: cfg, waiting: make(chan struct{}, maxWaiting), stop: stop}
	events := cfg.Node.Subscribe(eventBuffer)
	s.journal = newJournal(cfg.Node.Status())
	s.running.Go(func() { s.journal.keep(events.Events()) })
	context.AfterFunc(ctx, events.Close)
	s.http = http.Server{
		Handler:           s.guarded(s.mux()),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxBody,
		BaseContext:       func(ln net.Listener) context.Context { return atDoor(ctx, ln) },
		ErrorLog:          cfg.Logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	for _, ln := range listeners {
		s.running.Go(func() { s.serve(ln) })
	}
	return s
}

func (s *Server) serve(ln net.Listener) {
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		s.Logger.Error("the admin side is gone", "addr", ln.Addr(), "error", err)
	}
}

// Close cancels the requests under way, event streams among them, waits for their
// handlers until ctx ends, and closes the listeners.
func (s *Server) Close(ctx context.Context) error {
	s.stop()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.running.Wait()
	return err
}
