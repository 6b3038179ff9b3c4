package admin

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/netmesh"
)

// pki has certificates of nodes and operators, good ones and others.
type pki struct {
	t   *testing.T
	dir string
}

// issue makes a certificate, and returns its directory.
func (p pki) issue(cluster, name string, valid time.Duration) string {
	p.t.Helper()
	made, err := certs.Issue(filepath.Join(p.dir, cluster), cluster, []string{name}, valid)
	require.NoError(p.t, err)
	return made[0].Dir
}

// credentials are those of a client: "" is nothing, a name a certificate.
func (p pki) credentials(name string) (c Credentials) {
	p.t.Helper()
	c, err := ReadCredentials(filepath.Join(p.dir, "bmqelect"), "")
	require.NoError(p.t, err)
	dir := ""
	switch name {
	case "":
		return c
	case "expired":
		dir = p.issue("bmqelect", "operator/late", -time.Minute)
	case "other CA":
		dir = pki{p.t, p.t.TempDir()}.issue("bmqelect", "operator/alice", time.Hour)
	case "other cluster":
		dir = p.issue("wasps", "operator/alice", time.Hour)
	default:
		dir = p.issue("bmqelect", name, time.Hour)
	}
	c.own, _, _, err = certs.LoadClient(dir)
	require.NoError(p.t, err)
	return c
}

// TestRolesOfRequests: what a request may do, by where it comes from and what it shows.
func TestRolesOfRequests(t *testing.T) {
	const (
		reads    = "GET /v1/status"
		leader   = "GET /v1/leader"
		faults   = "POST /v1/faults"
		nothing  = "POST /v1/nothing"
		health   = "GET /healthz"
		metrics  = "GET /metrics"
		role     = "this needs the role "
		shown    = "the certificate that was shown is not accepted: "
		noTLS    = "refused over a network without TLS"
		lostOne  = "a token came over a network without TLS"
		wrong    = "the token is not this node's"
		operates = "operate"
	)
	pki := pki{t, t.TempDir()}
	tls := shows(t, pki.issue("bmqelect", "a", time.Hour))
	listed := *tls()
	listed.Names = []string{"a", "operator/alice"}
	listing := func() *netmesh.Credentials { return &listed }
	tokens := tokensOf(t, "operate "+secret+"\nread "+another)
	open := []string{"leader", "metrics"}
	for _, c := range []struct {
		at            net.Addr
		cfg           Config
		certificate   string
		token         string
		request, want string
		code          int
	}{
		{nil, Config{TLS: tls, Tokens: tokens}, "", "", faults, "this needs the node's token", 401},
		// A network without TLS is for reading; TestWhoMayAskWhat has what is admitted.
		{elsewhere, Config{}, "", "", faults, noTLS, 403},
		{elsewhere, Config{}, "", "", nothing, noTLS, 403},
		{elsewhere, Config{Tokens: tokens}, "", secret, faults, lostOne, 403},
		{elsewhere, Config{Tokens: tokens}, "", another, reads, lostOne, 403},
		{elsewhere, Config{Tokens: tokens, TokenReads: true}, "", "", reads, noTLS, 403},
		// With TLS all needs a role, except for what is open.
		{elsewhere, Config{TLS: tls}, "", "", reads, role + "read", 401},
		{elsewhere, Config{TLS: tls}, "", "", faults, role + operates, 401},
		{elsewhere, Config{TLS: tls, Open: open}, "", "", leader, "", 503},
		{elsewhere, Config{TLS: tls, Open: open}, "", "", "GET /v1/elections/default/leader", "", 503},
		{elsewhere, Config{TLS: tls, Open: open}, "", "", metrics, "", 200},
		{elsewhere, Config{TLS: tls, Open: open}, "", "", health, role + "read", 401},
		{elsewhere, Config{TLS: tls, Open: open}, "", "", reads, role + "read", 401},
		{elsewhere, Config{TLS: tls, Open: open}, "", "", "POST /v1/leader", role + operates, 401},
		{elsewhere, Config{TLS: tls, Open: []string{"health"}}, "", "", health, "", 200},
		{elsewhere, Config{TLS: tls, Open: []string{"health"}}, "", "", metrics, role + "read", 401},
		// A node may read, an operator operate.
		{elsewhere, Config{TLS: tls}, "b", "", faults, "the certificate of a node has the role read", 403},
		{elsewhere, Config{TLS: tls}, "other cluster", "", reads, shown, 403},
		{elsewhere, Config{TLS: tls}, "other CA", "", faults, shown + "x509: certificate signed by", 403},
		{elsewhere, Config{TLS: tls}, "expired", "", faults, shown + "x509: certificate has ex", 403},
		{elsewhere, Config{TLS: tls, Open: open}, "expired", "", metrics, "", 200},
		{elsewhere, Config{TLS: listing}, "operator/alice", "", faults, "", 200},
		{elsewhere, Config{TLS: listing}, "b", "", reads, shown + "[\\\"b\\\"] is not in the list", 403},
		// So does who has a token.
		{elsewhere, Config{TLS: tls, Tokens: tokens}, "", another, faults, "the token has the role", 403},
		{elsewhere, Config{TLS: tls, Tokens: tokens}, "", "x" + secret, reads, wrong, 401},
		{elsewhere, Config{TLS: tls, Tokens: tokens}, "b", secret, faults, "", 200},
		{elsewhere, Config{TLS: tls}, "", secret, reads, role + "read", 401},
	} {
		credentials := pki.credentials(c.certificate)
		name := []any{c.at, c.certificate, c.token, c.request, c.cfg.Open}
		client := guardedBy(t, c.cfg, c.at)
		if c.at == elsewhere && c.cfg.TLS != nil {
			client.base, client.transport.TLSClientConfig = "https://"+client.addr, credentials.config("a")
		}
		var header []string
		if c.token != "" {
			header = []string{"Authorization", "Bearer " + c.token}
		}
		method, path, _ := strings.Cut(c.request, " ")
		resp, text := exchange(t, client, method, path, "", header...)
		require.Equal(t, c.code, resp.StatusCode, "%v: %s", name, text)
		require.Contains(t, text, c.want, name)
		challenged := resp.Header.Get("WWW-Authenticate") != ""
		require.Equal(t, c.code == http.StatusUnauthorized, challenged, name)
		require.NotContains(t, text, secret)
		require.NotContains(t, text, another)
	}
}

// TestWhoIsOffTheListOperatesByNoOtherName that is on it.
func TestWhoIsOffTheListOperatesByNoOtherName(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		URIs: []*url.URL{{Scheme: "bmqelect", Host: "bmqelect", Path: "/operator/alice"},
			{Scheme: "bmqelect", Host: "bmqelect", Path: "/a"}},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, public, private)
	require.NoError(t, err)
	cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	own := &netmesh.Credentials{Roots: x509.NewCertPool()}
	own.Roots.AddCert(cert)
	node, _ := serve(t, nil)
	s := &Server{Config: Config{Node: node, TLS: func() *netmesh.Credentials { return own }}}
	for text, want := range map[string]role{
		"": operate, "operator/alice": operate, "a": read, "b": nobody,
	} {
		own.Names = strings.Fields(text)
		has, _, err := s.byCertificate([]*x509.Certificate{cert})
		require.Equal(t, want, has, text)
		require.Equal(t, want == nobody, err != nil, text)
	}
}

// TestAChainThatCostsMuchIsNotTaken, even if nothing asks for a role.
func TestAChainThatCostsMuchIsNotTaken(t *testing.T) {
	pki := pki{t, t.TempDir()}
	cfg := Config{TLS: shows(t, pki.issue("bmqelect", "a", time.Hour)), Open: []string{"health"}}
	c, shows := guardedBy(t, cfg, elsewhere), pki.credentials("operator/alice")
	var err error
	c.base = "https://" + c.addr
	for range 5 {
		c.transport.TLSClientConfig = shows.config("a")
		_, err = c.Status(t.Context())
		if len(shows.own.Certificate) <= 4 {
			require.NoError(t, err, len(shows.own.Certificate))
		}
		more := append(slices.Clone(shows.own.Certificate), shows.own.Certificate[0])
		shows.own = &tls.Certificate{Certificate: more, PrivateKey: shows.own.PrivateKey}
	}
	// The alert, unless the end of the connection overtakes it.
	require.Regexp(t, "bad certificate|EOF|broken pipe|connection reset", err)
}
