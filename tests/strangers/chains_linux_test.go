package strangers

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// hostileChain is what a stranger shows to make a node work: a certificate, and many others that
// may have signed it, as far as their names go.
type hostileChain struct {
	name    string
	leaf    elliptic.Curve
	between int
	curve   elliptic.Curve // of their keys
	ofRoot  bool           // all name the cluster's CA as their issuer

	once  sync.Once
	shown *tls.Certificate
}

var chains = []*hostileChain{
	{name: "100-p256", leaf: elliptic.P256(), between: 100, curve: elliptic.P256()},
	{name: "100-p384", leaf: elliptic.P256(), between: 100, curve: elliptic.P384()},
	{name: "100-p521", leaf: elliptic.P256(), between: 100, curve: elliptic.P521()},
	{name: "3-p384", leaf: elliptic.P384(), between: 3, curve: elliptic.P384()},
	{name: "3-p521", leaf: elliptic.P256(), between: 3, curve: elliptic.P521()},
	{name: "p521", leaf: elliptic.P521()},
	{name: "3-of-the-root", leaf: elliptic.P256(), between: 3, curve: elliptic.P256(), ofRoot: true},
}

// made is the chain with the key of its first certificate. No signature is right: a node finds
// that out by checking each.
func (c *hostileChain) made(x *target) *tls.Certificate {
	c.once.Do(func() {
		t := x.t
		var signer crypto.Signer
		signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		issuer, between := pkix.Name{CommonName: "between"}, pkix.Name{CommonName: "between"}
		if c.ofRoot {
			issuer = memberOf(x).Issuer
			_, signer, err = ed25519.GenerateKey(rand.Reader) // the kind of the CA's key
			require.NoError(t, err)
		}
		add := func(key *ecdsa.PublicKey, subject pkix.Name, ca bool, number int) {
			now := time.Now()
			template := &x509.Certificate{
				SerialNumber: big.NewInt(int64(1 + number)), Subject: subject,
				NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
				IsCA: ca, BasicConstraintsValid: ca, KeyUsage: x509.KeyUsageDigitalSignature,
			}
			if ca {
				template.KeyUsage = x509.KeyUsageCertSign
			}
			parent := &x509.Certificate{Subject: issuer}
			der, err := x509.CreateCertificate(rand.Reader, template, parent, key, signer)
			require.NoError(t, err)
			c.shown.Certificate = append(c.shown.Certificate, der)
		}
		own, err := ecdsa.GenerateKey(c.leaf, rand.Reader)
		require.NoError(t, err)
		c.shown = &tls.Certificate{PrivateKey: own}
		add(&own.PublicKey, pkix.Name{CommonName: "n2"}, false, 0)
		for i := range c.between {
			key, err := ecdsa.GenerateKey(c.curve, rand.Reader)
			require.NoError(t, err)
			add(&key.PublicKey, between, true, 1+i)
		}
	})
	return c.shown
}

// memberOf is the certificate of a member of the cluster.
func memberOf(x *target) *x509.Certificate {
	c, err := x509.ParseCertificate(x.own.Certificate[0])
	require.NoError(x.t, err)
	return c
}
