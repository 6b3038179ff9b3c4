package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Server answers for one node.
type Server struct {
	node   *cluster.Node
	faults *netmesh.Faults // nil: there is no fault layer
	http   http.Server
	ln     net.Listener
	served chan struct{}
	stop   context.CancelFunc // ends the event streams
}

// Limits of a request. Answers may take longer: an event stream never ends.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = time.Minute
	maxBody       = 64 << 10
)

// Listen binds addr (host:port). It is apart from Serve so that a node can tell
// the others its admin address before it starts.
func Listen(addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("admin address %s: %w", addr, err)
	}
	return ln, nil
}

// Serve answers on ln until Close. faults may be nil.
func Serve(ln net.Listener, node *cluster.Node, faults *netmesh.Faults, log hclog.Logger) *Server {
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{node: node, faults: faults, ln: ln, served: make(chan struct{}), stop: stop}
	s.http = http.Server{
		Handler:           http.NewCrossOriginProtection().Handler(s.routes()),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxBody,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	go func() {
		defer close(s.served)
		if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the admin side is gone", "addr", ln.Addr(), "error", err)
		}
	}()
	return s
}

// Addr is the bound address.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Close cancels the requests under way, event streams among them, waits for their
// handlers until ctx ends, and closes the listener.
func (s *Server) Close(ctx context.Context) error {
	s.stop()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.served
	return err
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", s.getStatus)
	mux.HandleFunc("GET /v1/events", s.getEvents)
	mux.HandleFunc("POST /v1/transfer", s.postTransfer)
	mux.HandleFunc("GET /v1/faults", s.getFaults)
	mux.HandleFunc("POST /v1/faults", s.postFaults)
	mux.HandleFunc("GET /healthz", s.getHealth)
	mux.HandleFunc("GET /readyz", s.getReady)
	return mux
}

func (s *Server) getStatus(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.node.Status())
}

func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) {
	if err := s.node.Err(); err != nil {
		refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	fmt.Fprintln(w, "ok")
}

// getReady says whether every election of the node has a leader that it knows.
func (s *Server) getReady(w http.ResponseWriter, _ *http.Request) {
	for _, g := range s.node.Status().Groups {
		if g.Leader == "" {
			refuse(w, http.StatusServiceUnavailable, fmt.Errorf("group %s: %s", g.Group, g.Explanation))
			return
		}
	}
	fmt.Fprintln(w, "ok")
}

// TransferRequest is the body of POST /v1/transfer.
type TransferRequest struct {
	To cluster.NodeID `json:"to"` // "" is the best follower
}

func (s *Server) postTransfer(w http.ResponseWriter, r *http.Request) {
	var req TransferRequest
	if !read(w, r, &req) {
		return
	}
	if err := s.node.Transfer(r.Context(), req.To); err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	answer(w, http.StatusOK, s.node.Status())
}

// read decodes a JSON body strictly; it answers the request itself if it cannot.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil && !errors.Is(err, io.EOF) { // no body asks for the defaults
		refuse(w, http.StatusBadRequest, fmt.Errorf("the body of %s %s: %w", r.Method, r.URL.Path, err))
		return false
	}
	return true
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the client is gone; there is nobody to tell
}

// Problem is an error as RFC 9457 has it.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func refuse(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(Problem{Title: http.StatusText(code), Status: code, Detail: err.Error()})
}
