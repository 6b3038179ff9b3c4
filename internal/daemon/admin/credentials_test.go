package admin

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// TestTokensGoWhereTheyAreSafe: neither over a network in plaintext, nor to whom gossip names.
func TestTokensGoWhereTheyAreSafe(t *testing.T) {
	const plain, unnamed = "the token is not sent without TLS", "only a node named this address"
	for _, c := range []struct {
		addr     string
		tls      bool
		node     cluster.NodeID
		named    bool
		withheld string
	}{
		{"127.0.0.1:7402", false, "", true, ""},
		{"127.0.0.1:7402", true, "", true, ""},
		{"localhost:7402", false, "", true, ""},
		{"unix:/run/x", true, "", true, ""},
		{"127.0.0.1:7402", true, "b", false, unnamed},
		{"unix:/run/x", true, "b", false, unnamed},
		{"10.0.0.1:7402", false, "", true, plain},
		{"n1.example:7402", false, "b", true, plain},
		{"10.0.0.1:7402", true, "", true, ""},
		{"10.0.0.1:7402", true, "", false, unnamed},
		{"10.0.0.1:7402", true, "b", false, ""}, // TLS proves that it is b
		{"10.0.0.1:7402", false, "b", false, plain},
	} {
		credentials := Credentials{token: secret}
		if c.tls {
			credentials.roots = x509.NewCertPool()
		}
		client := credentials.Client(c.addr, c.node, c.named)
		require.Equal(t, c.withheld == "", client.token == secret, c)
		require.Contains(t, client.withheld, c.withheld, c)
		credentials.token = ""
		client = credentials.Client(c.addr, c.node, c.named)
		require.Equal(t, c.withheld == "", client.TakesKeys() == nil, "no more does a key: %v", c)
		if c.withheld != "" {
			_, err := client.Tell(t.Context(), GossipKeyRequest{Key: secret})
			require.ErrorContains(t, err, ": a key is not sent ", c)
		}
		require.Empty(t, client.withheld, c)
		secure := c.tls && strings.HasPrefix(c.addr, "10.")
		require.Equal(t, secure, strings.HasPrefix(client.base, "https:"), c)
		require.Equal(t, secure, client.transport.TLSClientConfig != nil, c)
	}
}

// TestServersAreKnownByTheirCertificates before they get a request.
func TestServersAreKnownByTheirCertificates(t *testing.T) {
	pki := pki{t, t.TempDir()}
	pki.issue("bmqelect", "a", time.Hour)
	for dir, wants := range map[string]map[string]string{
		pki.issue("bmqelect", "a", time.Hour): {"": "", "a": "",
			"b": "but must be for bmqelect://bmqelect/b"},
		pki.issue("bmqelect", "operator/a", time.Hour): {"": "incompatible key usage"},
		pki.issue("wasps", "a", time.Hour):             {"a": "signed by unknown authority"},
		pki.issue("bmqelect", "c", -time.Minute):       {"": "certificate has expired"},
	} {
		c := guardedBy(t, Config{TLS: shows(t, dir)}, elsewhere)
		c.base = "https://" + c.addr
		for node, want := range wants {
			c.transport.TLSClientConfig = pki.credentials("operator/alice").config(node)
			_, err := c.Status(t.Context())
			if want == "" {
				require.NoError(t, err, dir)
				continue
			}
			require.ErrorContains(t, err, want, dir)
		}
	}
}
