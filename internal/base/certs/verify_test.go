package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// family makes certificates of all kinds.
type family struct {
	t      *testing.T
	number int64
}

type relative struct {
	*x509.Certificate
	key crypto.Signer
}

func (f *family) key(curve elliptic.Curve) crypto.Signer {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(f.t, err)
	return key
}

// child is a certificate that parent has signed; of itself without one.
func (f *family) child(
	name string, key crypto.Signer, parent *relative, edit func(*x509.Certificate),
) *relative {
	f.t.Helper()
	f.number++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(f.number), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if edit != nil {
		edit(template)
	}
	by, signer := template, key
	if parent != nil {
		by, signer = parent.Certificate, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), signer)
	require.NoError(f.t, err)
	made, err := x509.ParseCertificate(der)
	require.NoError(f.t, err)
	return &relative{made, key}
}

func leafOf(c *x509.Certificate) { c.IsCA, c.KeyUsage = false, x509.KeyUsageDigitalSignature }

// TestChainsBetweenACAAndAMember: which are accepted, in whatever order they come.
func TestChainsBetweenACAAndAMember(t *testing.T) {
	f := &family{t: t}
	p256 := func() crypto.Signer { return f.key(elliptic.P256()) }
	root, other := f.child("root", p256(), nil, nil), f.child("other", p256(), nil, nil)
	upper := f.child("upper", p256(), root, nil)
	lower := f.child("lower", p256(), upper, nil)
	member := f.child("member", p256(), lower, leafOf)
	crossed := f.child("upper", upper.key, other, nil) // of another root, too
	late := f.child("upper", upper.key, root, func(c *x509.Certificate) {
		c.NotAfter = time.Now().Add(-time.Minute)
	})
	below := f.child("below", p256(), member, leafOf)
	alien := f.child("member", p256(), f.child("lower", p256(), other, nil), leafOf)
	roots := x509.NewCertPool()
	roots.AddCert(root.Certificate)
	const unknown = "x509: certificate signed by unknown authority"
	for name, c := range map[string]struct {
		chain []*relative
		want  string
	}{
		"in order":           {[]*relative{member, lower, upper}, ""},
		"in the other order": {[]*relative{member, upper, lower}, ""},
		"with the root":      {[]*relative{member, lower, upper, root}, ""},
		"with another way":   {[]*relative{member, crossed, lower, upper}, ""},
		"of the root alone":  {[]*relative{upper}, ""},
		"one is missing":     {[]*relative{member, upper}, unknown},
		"one is twice":       {[]*relative{member, lower, upper, upper}, ""},
		"to another root":    {[]*relative{member, lower, crossed}, unknown},
		"of another's names": {[]*relative{alien, lower, upper}, unknown},
		"one has ended": {
			[]*relative{member, lower, late},
			"between it and the CA: x509: certificate has expired",
		},
		"a member signs": {[]*relative{below, member, lower, upper}, unknown},
		"nobody":         {nil, "there is no certificate"},
		"more than are allowed": {
			[]*relative{member, lower, upper, root, crossed},
			"the chain has 5 certificates, but must have at most 4: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var chain []*x509.Certificate
			for _, c := range c.chain {
				chain = append(chain, c.Certificate)
			}
			paths, err := Verify(chain, roots, x509.ExtKeyUsageAny)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, root.Certificate, paths[0][len(paths[0])-1])
		})
	}
}

// TestKeysThatCostMuchAreRefused, wherever they are in a chain.
func TestKeysThatCostMuchAreRefused(t *testing.T) {
	ofRSA := func(bits uint) any {
		return &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), bits-1), E: 65537}
	}
	good := &x509.Certificate{PublicKey: ed25519.PublicKey{}}
	for _, c := range []struct {
		key  any
		want string
	}{
		{ed25519.PublicKey{}, ""},
		{&ecdsa.PublicKey{Curve: elliptic.P256()}, ""},
		{&ecdsa.PublicKey{Curve: elliptic.P384()}, ""},
		{ofRSA(2048), ""},
		{ofRSA(4096), ""},
		{ofRSA(4097), "RSA of 4097 bits"},
		{ofRSA(8192), "RSA of 8192 bits"},
		{&ecdsa.PublicKey{Curve: elliptic.P521()}, "P-521"},
		{&ecdsa.PublicKey{Curve: elliptic.P224()}, "P-224"},
		{nil, "the kind <nil>"},
	} {
		for behind := range 3 {
			chain := []*x509.Certificate{good, good, good}
			chain[behind] = &x509.Certificate{PublicKey: c.key}
			err := Check(chain)
			if c.want == "" {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, c.want+", but must have one of Ed25519, P-256, P-384 or RSA of at")
			_, err = Verify(chain, x509.NewCertPool(), x509.ExtKeyUsageAny)
			require.ErrorContains(t, err, c.want, "before any signature is looked at")
		}
	}
	require.NoError(t, Check(nil))
}

// TestOwnFilesThatOthersWouldRefuse are refused where they are read, by name.
func TestOwnFilesThatOthersWouldRefuse(t *testing.T) {
	f := &family{t: t}
	big := f.child("root", f.key(elliptic.P521()), nil, nil)
	member := f.child("n1", f.key(elliptic.P256()), big, leafOf)
	der, err := x509.MarshalPKCS8PrivateKey(member.key)
	require.NoError(t, err)
	dir := t.TempDir()
	_, err = Issue(dir, "bees", []string{"n1"}, time.Hour)
	require.NoError(t, err)
	file := func(name string, text ...byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "n1", name), text, 0o600))
	}
	leaf, root := pemOf("CERTIFICATE", member.Raw), pemOf("CERTIFICATE", big.Raw)
	file(keyFile, pemOf("PRIVATE KEY", der)...)
	file(certFile, append(leaf, root...)...)
	load := func(want string) {
		_, _, err := Load(filepath.Join(dir, "n1"))
		require.ErrorContains(t, err, want)
		_, _, _, err = LoadClient(filepath.Join(dir, "n1"))
		require.ErrorContains(t, err, want)
	}
	load("tls.crt: certificate 2 has a key of P-521, but must")
	file(certFile, leaf...)
	file(caFile, root...)
	load("ca.crt: certificate 1 has a key of P-521, but must")
}

// BenchmarkVerify tells what a chain of a stranger costs beside that of a member.
func BenchmarkVerify(b *testing.B) {
	f := &family{t: &testing.T{}}
	root := f.child("root", f.key(elliptic.P256()), nil, nil)
	roots := x509.NewCertPool()
	roots.AddCert(root.Certificate)
	between := f.child("between", f.key(elliptic.P384()), root, nil)
	member := f.child("member", f.key(elliptic.P256()), between, leafOf)
	// The same key under several names of itself: each may have signed each.
	key := f.key(elliptic.P384())
	alone := f.child("alone", key, nil, nil)
	var many []*x509.Certificate
	for i := range 3 {
		many = append(many, f.child("alone", key, alone, func(c *x509.Certificate) {
			c.DNSNames = []string{string(rune('a' + i))}
		}).Certificate)
	}
	stranger := f.child("member", f.key(elliptic.P256()), alone, leafOf)
	for name, chain := range map[string][]*x509.Certificate{
		"member":   {member.Certificate, between.Certificate},
		"stranger": append([]*x509.Certificate{stranger.Certificate}, many...),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = Verify(chain, roots, x509.ExtKeyUsageAny)
			}
		})
	}
}
