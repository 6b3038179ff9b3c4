package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/bmqelect/bmqelect/internal/peers/node"
)

const longLived = 24 * time.Hour

// authority makes certificates that all systems take: their owners are known by name and address.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority() (a *authority, err error) {
	a = &authority{cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gray failures"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(2 * longLived),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

// issue writes a certificate of a host, its key and that of the authority; each file at once.
func (a *authority) issue(h *host, valid time.Duration) error {
	name := node.Name(h.index)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid),
		DNSNames: []string{name}, IPAddresses: []net.IP{net.ParseIP(h.ip)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if err := os.MkdirAll(h.tlsDir(), 0o700); err != nil {
		return err
	}
	// The key stays, so that it fits to the old certificate and to the new one.
	if h.key == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return err
		}
		h.key = key
		if err := h.put(node.KeyFile, "PRIVATE KEY", der); err != nil {
			return err
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, h.key.Public(), a.key)
	if err != nil {
		return err
	}
	if err := h.put(node.CAFile, "CERTIFICATE", a.cert.Raw); err != nil {
		return err
	}
	return h.put(node.CertFile, "CERTIFICATE", der)
}

// put writes a file of the host's directory of certificates at once, in PEM.
func (h *host) put(file, kind string, der []byte) error {
	path := filepath.Join(h.tlsDir(), file)
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
