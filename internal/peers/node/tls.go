package node

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
)

// Files of Spec.TLSDir.
const (
	CAFile   = "ca.crt"
	CertFile = "tls.crt"
	KeyFile  = "tls.key"
)

// TLS demands a certificate of the same CA from whoever connects, and checks that of whom this node
// connects to by its address. It reads its own for each connection, as etcd does. Without a TLSDir
// it returns nil.
func (s Spec) TLS() (*tls.Config, error) {
	if s.TLSDir == "" {
		return nil, nil
	}
	file := func(name string) string { return filepath.Join(s.TLSDir, name) }
	roots := x509.NewCertPool()
	if text, err := os.ReadFile(file(CAFile)); err != nil || !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("no certificate in %s: %w", file(CAFile), err)
	}
	own := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(file(CertFile), file(KeyFile))
		return &pair, err
	}
	return &tls.Config{
		RootCAs: roots, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own() },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return own()
		},
	}, nil
}
