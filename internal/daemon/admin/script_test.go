package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/netmesh"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

// TestAnswersToRequests plays the scripts in testdata: what nodes answer to requests.
func TestAnswersToRequests(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := script{pki: pki{t, t.TempDir()}}
		s.tls = shows(t, s.pki.issue("bmqelect", "a", time.Hour))
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "node":
				s.node(t, d)
				return ""
			case "who":
				return s.who(t, d)
			case "list":
				return s.list(t, d)
			}
			return s.ask(t, d)
		})
	})
}

// script is a node, and how to ask it.
type script struct {
	pki    pki
	tls    func() *netmesh.Credentials
	cfg    Config
	at     net.Addr // nil is loopback
	client *Client
}

// node starts one with the given options, in the place of the one before.
func (s *script) node(t *testing.T, d *datadriven.TestData) {
	s.cfg, s.at = Config{TokenReads: d.HasArg("token-reads")}, nil
	if d.HasArg("tokens") {
		s.cfg.Tokens = tokensOf(t, "operate "+secret+"\nread "+another)
	}
	if d.HasArg("tls") {
		own := *s.tls()
		if arg, ok := d.Arg("names"); ok {
			own.Names = arg.Vals
		}
		s.cfg.TLS = func() *netmesh.Credentials { return &own }
	}
	if arg, ok := d.Arg("open"); ok {
		s.cfg.Open = arg.Vals
	}
	if arg, ok := d.Arg("at"); ok {
		s.at = map[string]net.Addr{"network": elsewhere, "socket": socketAddr}[arg.Vals[0]]
	}
	ln := listen(t)
	if !d.HasArg("no-faults") {
		s.cfg.Faults = fault.New()
	}
	s.cfg.Node = startWith(t, ln, func(c *cluster.Config) {
		c.Faults = s.cfg.Faults
		c.Prefixes = map[string]cluster.ElectionConfig{"job/": {}, "vote/": {NotCandidate: true}}
		switch {
		case d.HasArg("observer"):
			c.Voters = []cluster.NodeID{"b"}
		case !d.HasArg("alone"): // nobody leads
			c.Voters = []cluster.NodeID{"a", "b", "c"}
		}
	})
	s.client = open(t, s.cfg, seemsAt{ln, s.at})
	if d.HasArg("alone") {
		leads(t, s.cfg.Node)
	}
}

// send sends a request of the caller that the arguments name.
func (s *script) send(t *testing.T, d *datadriven.TestData, req *http.Request) *http.Response {
	t.Helper()
	name := ""
	if arg, ok := d.Arg("cert"); ok {
		name = arg.Vals[0]
	}
	if arg, ok := d.Arg("token"); ok {
		req.Header.Set("Authorization", "Bearer "+arg.Vals[0])
	}
	if s.at == elsewhere && s.cfg.TLS != nil {
		s.client.transport.TLSClientConfig = s.pki.credentials(name).config("a")
		req.URL.Scheme = "https"
	}
	resp, err := s.client.http.Do(req)
	require.NoError(t, err)
	return resp
}

// moment is a time in an answer: no two runs have the same.
var moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`)

var header = regexp.MustCompile(`(?m)^([A-Z][A-Za-z-]+): (.*)$`)

// ask sends a request: the input has its headers, or its body.
func (s *script) ask(t *testing.T, d *datadriven.TestData) string {
	body := d.Input
	headers := header.FindAllStringSubmatch(body, -1)
	if headers != nil {
		body = ""
	}
	path := strings.Join(append([]string{d.CmdArgs[1].Key}, d.CmdArgs[1].Vals...), "=")
	req, err := http.NewRequestWithContext(t.Context(), d.CmdArgs[0].Key,
		s.client.base+path, strings.NewReader(body))
	require.NoError(t, err)
	for _, h := range headers {
		req.Header.Set(h[1], h[2])
	}
	req.Host = req.Header.Get("Host")
	resp := s.send(t, d, req)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	record(t, req, resp, text)
	require.NotContains(t, string(text), secret)
	require.NotContains(t, string(text), another)
	require.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"), "no page can read an answer")
	require.Equal(t, resp.StatusCode == http.StatusUnauthorized,
		resp.Header.Get("WWW-Authenticate") != "")
	if d.HasArg("show") && resp.StatusCode < 400 {
		return fmt.Sprintf("%d %s %s\n%s\n", resp.StatusCode, resp.Header.Get("Content-Type"),
			resp.Header.Get("ETag"), strings.TrimSpace(string(text)))
	}
	if resp.StatusCode < 400 || req.Method == http.MethodHead {
		return fmt.Sprintln(resp.StatusCode)
	}
	var p Problem
	require.NoError(t, json.Unmarshal(text, &p))
	require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
	require.Equal(t, resp.StatusCode, p.Status)
	return fmt.Sprintf("%d %s\n", p.Status, moment.ReplaceAllString(p.Detail, "TIME"))
}

// list says which elections are in a page, and what comes after it.
func (s *script) list(t *testing.T, d *datadriven.TestData) string {
	sel := cluster.Selection{Limit: 10}
	d.MaybeScanArgs(t, "prefix", &sel.Prefix)
	d.MaybeScanArgs(t, "after", &sel.After)
	d.MaybeScanArgs(t, "limit", &sel.Limit)
	page, err := s.client.StatusOf(t.Context(), sel)
	require.NoError(t, err)
	said := ""
	for _, g := range page.Groups {
		said += fmt.Sprintf("%s candidate=%t\n", g.Group, g.Candidate)
	}
	if page.Next != "" {
		said += "more after " + page.Next
	}
	return cmp.Or(strings.TrimSpace(said), "none") + "\n"
}

// kinds are the routes by who may use them.
var kinds = map[string][]string{
	"reads": {"GET /v1/status", "GET /v1/leader", "GET /v1/events", "GET /v1/history",
		"GET /v1/elections/{group}/leader", "GET /v1/recording", "GET /v1/faults",
		"GET /v1/openapi.yaml", "GET /metrics", "GET /v1/record", "GET /v1/voters"},
	"health checks": {"GET /healthz", "GET /readyz"},
	"changes": {"POST /v1/transfer", "POST /v1/step-down", "POST /v1/pause", "POST /v1/resume",
		"POST /v1/settings", "POST /v1/faults", "PUT /v1/record", "POST /v1/voters",
		"POST /v1/prepared", "POST /v1/elections", "DELETE /v1/elections/{group}"},
	"trust": {"POST /v1/forget", "POST /v1/gossip-key"},
}

// who says which kinds of routes admit a caller. A route without a kind fails.
func (s *script) who(t *testing.T, d *datadriven.TestData) string {
	var served, known []string
	for _, r := range (&Server{}).routes() {
		served = append(served, r.method+" "+r.path)
	}
	said := ""
	for _, kind := range []string{"reads", "health checks", "changes", "trust"} {
		known = append(known, kinds[kind]...)
		outcomes := map[string]bool{}
		for _, route := range kinds[kind] {
			method, path, _ := strings.Cut(strings.ReplaceAll(route, "{group}", "default"), " ")
			outcomes[s.admits(t, d, method, path)] = true
			if method == http.MethodGet {
				outcomes[s.admits(t, d, http.MethodHead, path)] = true
			}
		}
		require.Len(t, outcomes, 1, kind)
		if outcomes["yes"] {
			said += kind + ", "
		}
	}
	require.ElementsMatch(t, served, known, "say who may ask this")
	return strings.TrimSuffix(said, ", ") + "\n"
}

// admits reports whether a request got to the node, whatever that answers.
func (s *script) admits(t *testing.T, d *datadriven.TestData, method, path string) string {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // a stream of events has no end
	req, err := http.NewRequestWithContext(ctx, method, s.client.base+path, nil)
	require.NoError(t, err)
	resp := s.send(t, d, req)
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "no"
	}
	return "yes"
}

// shows is what a node shows whose certificate is in a directory.
func shows(t *testing.T, dir string) func() *netmesh.Credentials {
	t.Helper()
	var own netmesh.Credentials
	var err error
	own.Certificate, own.Roots, err = certs.Load(dir)
	require.NoError(t, err)
	return func() *netmesh.Credentials { return &own }
}
