package certs

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

// What a chain may have. Whoever comes chooses it, and to verify it costs as much as its keys
// and their number say.
const (
	maxChain = 4
	maxRSA   = 4096 // bits
)

// Check says why a chain is not worth verifying: it has too many certificates, or keys that
// cost too much. An empty one is worth it.
func Check(chain []*x509.Certificate) error {
	if len(chain) > maxChain {
		return fmt.Errorf("the chain has %d certificates, but must have at most %d: that of the "+
			"owner, and those between it and the CA", len(chain), maxChain)
	}
	return checkKeys(chain)
}

func checkKeys(all []*x509.Certificate) error {
	for i, cert := range all {
		if problem := keyProblem(cert.PublicKey); problem != "" {
			return fmt.Errorf("certificate %d has a key of %s, but must have one of Ed25519, "+
				"P-256, P-384 or RSA of at most %d bits", i+1, problem, maxRSA)
		}
	}
	return nil
}

// keyProblem says what kind of key is not accepted; "" if it is.
func keyProblem(public any) string {
	switch key := public.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() {
			return key.Params().Name
		}
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits > maxRSA {
			return fmt.Sprintf("RSA of %d bits", bits)
		}
	default:
		return fmt.Sprintf("the kind %T", public)
	}
	return ""
}

// Verify returns the ways from the first certificate of a chain to a root, if Check accepts
// the chain and its first certificate is fit for that use now.
func Verify(
	chain []*x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage,
) ([][]*x509.Certificate, error) {
	if len(chain) == 0 {
		return nil, errors.New("there is no certificate")
	}
	if err := Check(chain); err != nil {
		return nil, err
	}
	between, problem := signedBy(roots, chain[1:])
	paths, err := verify(chain[0], roots, between, usage)
	if err != nil && problem != nil {
		err = fmt.Errorf("%w; a certificate between it and the CA: %w", err, problem)
	}
	return paths, err
}

// signedBy returns those of the certificates between a leaf and its root that lead to a root
// themselves, and what is wrong with another one that a root has signed. It begins at the roots:
// so no signature is checked with a key that a stranger has chosen.
func signedBy(
	roots *x509.CertPool, all []*x509.Certificate,
) (known *x509.CertPool, problem error) {
	known = x509.NewCertPool()
	leads := func(c *x509.Certificate) bool {
		_, err := verify(c, roots, known, x509.ExtKeyUsageAny)
		var invalid x509.CertificateInvalidError
		if err == nil {
			known.AddCert(c)
		} else if errors.As(err, &invalid) {
			problem = err
		}
		return err == nil
	}
	for rest := slices.Clone(all); ; {
		before := len(rest)
		if rest = slices.DeleteFunc(rest, leads); len(rest) == before {
			return known, problem
		}
	}
}

func verify(
	c *x509.Certificate, roots, between *x509.CertPool, usage x509.ExtKeyUsage,
) ([][]*x509.Certificate, error) {
	return c.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{usage},
	})
}
