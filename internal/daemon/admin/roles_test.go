package admin

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
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
	case "other-CA":
		dir = pki{p.t, p.t.TempDir()}.issue("bmqelect", "operator/alice", time.Hour)
	case "other-cluster":
		dir = p.issue("wasps", "operator/alice", time.Hour)
	default:
		dir = p.issue("bmqelect", name, time.Hour)
	}
	c.own, _, _, err = certs.LoadClient(dir)
	require.NoError(p.t, err)
	return c
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
		has, _, err := s.byCertificate([]*x509.Certificate{cert}, &verified{})
		require.Equal(t, want, has, text)
		require.Equal(t, want == nobody, err != nil, text)
	}
}

// TestAChainIsVerifiedOnce for a connection, and again when the CAs have changed or it has expired.
func TestAChainIsVerifiedOnce(t *testing.T) {
	pki := pki{t, t.TempDir()}
	chainOf := func(name string) []*x509.Certificate {
		chain, err := certs.ChainOf(*pki.credentials(name).own)
		require.NoError(t, err)
		return chain
	}
	pki.issue("bmqelect", "a", time.Hour)
	alice, alien, late := chainOf("operator/alice"), chainOf("other-CA"), chainOf("expired")
	roots, same := pki.credentials("").roots, pki.credentials("").roots
	v := &verified{}
	require.NoError(t, v.by(roots, alice))
	require.NoError(t, v.by(roots, alien), "it would have come on the same connection")
	require.ErrorContains(t, v.by(roots, late), "expired")
	require.ErrorContains(t, v.by(roots, alice), "expired")
	require.NoError(t, v.by(same, alice))
	require.ErrorContains(t, v.by(x509.NewCertPool(), alice), "unknown authority")
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
