// Package admin is the HTTP side of a node, for people, scripts and load balancers, and the
// client that bmqnode's own commands use. Server.routes lists all routes; the node serves their
// description, openapi.yaml, at /v1/openapi.yaml.
//
// Errors are RFC 9457 problem details. A request that only reads needs the role read, every other
// one the role operate. Over loopback and Unix sockets everybody has both, unless the node
// demands a token or Server.notAnyUser refuses the request. Other machines speak TLS and need a
// certificate or a token. A page in a browser can neither read nor change anything.
package admin

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/limit"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/daemon/metrics"
	"github.com/bmqelect/bmqelect/netmesh"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

// Config says for which node a server answers, and who may change it.
type Config struct {
	Node *cluster.Node
	// DataDir holds the recordings of the node; "" if there are none.
	DataDir string
	// TLSDir has the node's keys, which POST /v1/gossip-key changes; "" if it has none.
	TLSDir string
	// Faults is the node's fault layer; nil if it has none.
	Faults *fault.Faults
	// Tokens, if not nil, give roles to requests. Over loopback and Unix sockets, every request
	// that changes something needs a token. With TokenReads every other request needs one too,
	// except /healthz and /readyz.
	Tokens     *Tokens
	TokenReads bool
	// TLS returns the newest credentials of the node. With it, other machines speak TLS and need
	// a token, or the certificate of an operator, or to read that of a node. Without it they may
	// only read.
	TLS func() *netmesh.Credentials
	// Open are those of Openable for which other machines need no role.
	Open []string
	// Hosts are the names for a listener on loopback besides localhost and its addresses.
	Hosts []string
	// Logger shares its level with the node's logger; POST /v1/settings changes both. Default:
	// nothing is logged.
	Logger hclog.Logger
}

// Server answers for one node.
type Server struct {
	Config
	http    *http.Server
	journal *journal
	conns   *limit.Crowd[net.Conn]
	streams *limit.Crowd[*stream]
	running sync.WaitGroup
	open    context.Context    // ends with Close
	stop    context.CancelFunc // ends the event streams
	keys    sync.Mutex         // held while the file of gossip keys is changed
}

// Limits of a request. Answers may take longer: an event stream never ends.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 10 * time.Second // from the first byte of the request
	idleTimeout   = time.Minute
	maxBody       = 64 << 10
	maxStreams    = 256 // of events
	maxConns      = 512
)

// Serve answers on the listeners until Close, which also closes them.
func Serve(cfg Config, listeners ...net.Listener) *Server {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{Config: cfg, open: ctx, stop: stop,
		conns: limit.NewCrowd[net.Conn](maxConns), streams: limit.NewCrowd[*stream](maxStreams)}
	events := cfg.Node.Subscribe(eventBuffer)
	s.journal = newJournal(cfg.Node.StatusOf(just))
	s.running.Go(func() { s.journal.keep(events.Events()) })
	context.AfterFunc(ctx, events.Close)
	s.http = s.limited(s.guarded(s.mux()))
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	s.http.ConnContext = withArrival
	for _, ln := range listeners {
		if cfg.TLS != nil {
			ln = withTLS(ln, cfg.TLS)
		}
		s.running.Go(func() {
			if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				s.Logger.Error("the admin side is gone", "addr", ln.Addr(), "error", err)
			}
		})
	}
	return s
}

// limited serves within the limits: a client that sends or reads slowly loses its connection.
func (s *Server) limited(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      stall,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxBody,
		ConnState:         s.count,
		ErrorLog: s.Logger.StandardLogger(
			&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
}

// count makes room if there are too many connections: it closes the oldest one of the source
// that has the most.
func (s *Server) count(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if old, full := s.conns.Enter(conn, conn.RemoteAddr().String()); full {
			closeNow(old)
		}
	case http.StateClosed, http.StateHijacked:
		s.conns.Leave(conn)
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

// A route is one thing that a node can be asked or told. GET includes HEAD.
type route struct {
	method, path string
	query        string // the parameters that it takes, in words; "*" for whatever a monitor adds
	handle       http.HandlerFunc
}

// told is the route by which a node is told something.
func told[T Request](handle func(http.ResponseWriter, *http.Request, T)) route {
	var req T
	return route{"POST", req.path(), "", posted(handle)}
}

func (s *Server) routes() []route {
	return []route{
		{"GET", "/v1/status", "group prefix after limit top", s.getStatus},
		{"GET", "/v1/leader", "confirm", s.getLeader},
		{"GET", "/v1/elections/{group}/leader", "confirm", s.getLeader},
		told(s.postElection),
		{"DELETE", "/v1/elections/{group}", "", s.deleteElection},
		{"GET", "/v1/events", "group prefix after kind", s.getEvents},
		told(s.postTransfer), told(s.postStepDown), told(s.postPrepared),
		told(s.postPause), told(s.postResume),
		told(s.postSettings), s.notAnyUser(told(s.postForget)), s.notAnyUser(told(s.postGossipKey)),
		{"GET", "/v1/record", "group newest", s.getRecord},
		{"PUT", "/v1/record", "group", s.putRecord},
		{"GET", "/v1/voters", "group", s.getVoters},
		told(s.postVoters),
		{"GET", "/v1/history", "", s.getHistory},
		{"GET", "/v1/recording", "", s.getRecording},
		{"GET", "/v1/faults", "", s.getFaults},
		told(s.postFaults),
		{"GET", "/v1/openapi.yaml", "", getOpenAPI},
		{"GET", "/metrics", "*", metrics.Handler(s.Node, s.Logger).ServeHTTP},
		{"GET", "/healthz", "*", s.getHealth},
		{"GET", "/readyz", "*", s.getReady},
	}
}

// serve refuses a query that the route does not know: ignored, it would be about another election
// than the one that was meant.
func (r route) serve(w http.ResponseWriter, req *http.Request) {
	query, err := url.ParseQuery(req.URL.RawQuery)
	known := strings.Fields(r.query)
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if err != nil || slices.Contains(known, name) {
			continue
		}
		right := "may have " + cmp.Or(words.List(known), "nothing")
		switch {
		case r.method == http.MethodPost:
			right = "must be empty: what this takes goes into the body, as JSON"
		case r.path == "/v1/leader" && name == "group":
			right = "the leader of that election is at /v1/elections/" +
				url.PathEscape(query.Get(name)) + "/leader"
		}
		err = fmt.Errorf("it has %.100q, but %s", name, right)
	}
	if err != nil && r.query != "*" {
		refuse(w, http.StatusBadRequest,
			fmt.Errorf("the query of %s %s: %w", req.Method, req.URL.Path, err))
		return
	}
	r.handle(w, req)
}

// mux serves the routes, and answers anything else with a problem.
func (s *Server) mux() http.Handler {
	mux, methods := http.NewServeMux(), map[string][]string{}
	for _, r := range s.routes() {
		mux.HandleFunc(r.method+" "+r.path, r.serve)
		if methods[r.path] = append(methods[r.path], r.method); r.method == http.MethodGet {
			methods[r.path] = append(methods[r.path], http.MethodHead)
		}
	}
	for path, allowed := range methods {
		allow := strings.Join(allowed, ", ")
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", allow)
			refuse(w, http.StatusMethodNotAllowed,
				fmt.Errorf("%s %s: the method must be one of %s", r.Method, r.URL.Path, allow))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound,
			fmt.Errorf("there is no %s; /v1/openapi.yaml lists what there is", r.URL.Path))
	})
	return mux
}

//go:embed openapi.yaml
var openAPI []byte

func getOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI) // an error means that the client is gone
}
