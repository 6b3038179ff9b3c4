package admin

import (
	_ "embed"
	"net/http"

	"github.com/bmqelect/bmqelect/internal/daemon/metrics"
)

// A route is one thing that a node can be asked or told. GET stands for HEAD too.
// openapi.yaml describes them all.
type route struct {
	method, path string
	handle       http.HandlerFunc
}

func (s *Server) routes() []route {
	return []route{
		{"GET", "/v1/status", s.polled(everyGroup, s.getStatus)},
		{"GET", "/v1/members", s.getMembers},
		{"GET", "/v1/elections", s.polled(everyGroup, s.getElections)},
		{"GET", "/v1/elections/{group}", s.polled(groupOf, s.getElection)},
		{"GET", "/v1/elections/{group}/leader", s.polled(groupOf, s.getLeader)},
		{"GET", "/v1/leader", s.polled(groupOf, s.getLeader)},
		{"GET", "/v1/events", s.getEvents},
		{"POST", "/v1/transfer", s.postTransfer},
		{"POST", "/v1/step-down", s.postStepDown},
		{"POST", "/v1/forget", s.postForget},
		{"GET", "/v1/faults", s.getFaults},
		{"POST", "/v1/faults", s.postFaults},
		{"GET", "/v1/openapi.yaml", getOpenAPI},
		{"GET", "/metrics", metrics.Handler(s.Node, s.Logger).ServeHTTP},
		{"GET", "/healthz", s.getHealth},
		{"GET", "/readyz", s.getReady},
	}
}

func (s *Server) mux() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.HandleFunc(r.method+" "+r.path, r.handle)
	}
	return problems(mux)
}

//go:embed openapi.yaml
var openAPI []byte

func getOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI) // the client is gone; there is nobody to tell
}
