package admin

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/netmesh"
)

// TestWhoMayAskWhat: every route has a row, and every kind of caller a column; yes is that
// the request got to the node, whatever that answers. A route without a row fails.
func TestWhoMayAskWhat(t *testing.T) {
	pki := pki{t, t.TempDir()}
	secure := Config{TLS: shows(t, pki.issue("bmqelect", "a", time.Hour))}
	demands := secure
	demands.Tokens = tokensOf(t, "operate "+secret+"\nread "+another)
	hides := demands
	hides.TokenReads = true
	callers := []struct {
		name  string
		at    net.Addr // nil is loopback
		cfg   Config
		cert  string
		token string
	}{
		{"a user, no tokens", nil, secure, "", ""},
		{"a user, no TLS, no tokens", nil, Config{}, "", ""},
		{"a user without the token", nil, demands, "", ""},
		{"a user with the token to read", nil, demands, "", another},
		{"a user with the token to operate", nil, demands, "", secret},
		{"a user where tokens read", nil, hides, "", ""},
		{"the socket", socketAddr, secure, "", ""},
		{"the socket without the token", socketAddr, demands, "", ""},
		{"a network without TLS", elsewhere, Config{}, "", ""},
		{"a network without a certificate", elsewhere, secure, "", ""},
		{"a node", elsewhere, secure, "b", ""},
		{"an operator", elsewhere, secure, "operator/alice", ""},
		{"a token to read", elsewhere, demands, "", another},
		{"a token to operate", elsewhere, demands, "", secret},
	}
	const ( // one character a caller, in that order
		reading  = "yyyyy-" + "yy" + "y-yyyy"
		probing  = "yyyyyy" + "yy" + "y-yyyy" // health checks have no token
		changing = "yy--y-" + "y-" + "---y-y"
		trusted  = "----y-" + "y-" + "---y-y" // not for any user of the machine
	)
	who := map[string]string{
		"GET /v1/status": reading, "GET /v1/leader": reading, "GET /v1/events": reading,
		"GET /v1/elections/{group}/leader": reading, "GET /v1/history": reading,
		"GET /v1/recording": reading, "GET /v1/faults": reading, "GET /v1/openapi.yaml": reading,
		"GET /metrics": reading, "GET /healthz": probing, "GET /readyz": probing,
		"POST /v1/transfer": changing, "POST /v1/step-down": changing, "POST /v1/pause": changing,
		"POST /v1/resume": changing, "POST /v1/settings": changing, "POST /v1/faults": changing,
		"POST /v1/forget": trusted, "POST /v1/gossip-key": trusted,
	}
	var served []string
	for _, r := range (&Server{}).routes() {
		served = append(served, r.method+" "+r.path)
	}
	for name := range who {
		require.Contains(t, served, name)
	}
	for i, c := range callers {
		client := guardedBy(t, c.cfg, c.at)
		if c.at == elsewhere && c.cfg.TLS != nil {
			client.base = "https://" + client.addr
			client.transport.TLSClientConfig = pki.credentials(c.cert).config("a")
		}
		for _, name := range served {
			require.Contains(t, who, name, "say who may ask this")
			code, text := answered(t, client, name, c.token)
			require.Equal(t, who[name][i:i+1], admitted(code), "%s: %s: %d %s", c.name, name, code, text)
			if path, ok := strings.CutPrefix(name, "GET "); ok {
				code, _ := answered(t, client, "HEAD "+path, c.token)
				require.Equal(t, who[name][i:i+1], admitted(code), "%s: HEAD %s", c.name, path)
			}
			if i < 2 && who[name] == trusted {
				require.Contains(t, text, "--admin unix:PATH")
				require.Contains(t, text, "--admin-token-file")
			}
		}
	}
}

func admitted(code int) string {
	if code == http.StatusUnauthorized || code == http.StatusForbidden {
		return "-"
	}
	return "y"
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

// answered is what a client gets to a request without a body, or the begin of it: a stream of
// events has no end.
func answered(t *testing.T, c *Client, request, token string) (code int, begin string) {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	path = strings.ReplaceAll(path, "{group}", "default")
	req, err := http.NewRequestWithContext(t.Context(), method, c.base+path, nil)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text := make([]byte, 512)
	n, _ := resp.Body.Read(text) // what there is of it
	return resp.StatusCode, string(text[:n])
}
