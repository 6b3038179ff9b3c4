package certs

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/bmqelect/bmqelect/internal/base/limit"
)

// The files of a node's directory.
const (
	caFile   = "ca.crt"  // those who sign the certificates of members; several while they change
	certFile = "tls.crt" // the node's certificate, then those between it and the CA
	keyFile  = "tls.key"
	// namesFile, if it is there, lists who is let in.
	namesFile = "names"

	maxFile = 1 << 20 // bytes
)

// Load reads a node's directory: its certificate with the key, and the CAs of its peers. It
// does not look at names and dates. The error names the file, and what would be right.
func Load(dir string) (own tls.Certificate, roots *x509.CertPool, err error) {
	cas, err := readCerts(filepath.Join(dir, caFile))
	if err != nil {
		return own, nil, err
	}
	roots = poolOf(cas)
	certPath, keyPath := filepath.Join(dir, certFile), filepath.Join(dir, keyFile)
	cert, err := limit.ReadFile(certPath, maxFile)
	if err != nil {
		return own, nil, err
	}
	key, err := readKey(keyPath)
	if err != nil {
		return own, nil, err
	}
	if own, err = tls.X509KeyPair(cert, key); err != nil {
		return own, nil, fmt.Errorf("%s with %s: %w", certPath, keyPath, err)
	}
	chain, err := ChainOf(own)
	if err == nil {
		err = Check(chain)
	}
	if err != nil {
		return own, nil, fmt.Errorf("%s: %w", certPath, err)
	}
	return own, roots, nil
}

// ChainOf returns the certificates that own shows.
func ChainOf(own tls.Certificate) (chain []*x509.Certificate, err error) {
	for _, der := range own.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		chain = append(chain, cert)
	}
	return chain, nil
}

// LoadClient reads a directory as Load does, but ca.crt may be alone there: then own is nil.
// cluster is the one that the certificate names, or else a CA; "" if none does.
func LoadClient(dir string) (
	own *tls.Certificate, roots *x509.CertPool, cluster string, err error,
) {
	cas, err := readCerts(filepath.Join(dir, caFile))
	if err != nil {
		return nil, nil, "", err
	}
	if _, none := os.Lstat(filepath.Join(dir, certFile)); errors.Is(none, fs.ErrNotExist) {
		return nil, poolOf(cas), cmp.Or(clustersOf(cas)...), nil
	}
	pair, roots, err := Load(dir)
	if err != nil {
		return nil, nil, "", err
	}
	return &pair, roots, cmp.Or(clustersOf(append([]*x509.Certificate{pair.Leaf}, cas...))...), nil
}

func poolOf(cas []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, ca := range cas {
		pool.AddCert(ca)
	}
	return pool
}

func clustersOf(all []*x509.Certificate) (names []string) {
	for _, cert := range all {
		names = append(names, clusterOf(cert))
	}
	return names
}

// Names reads the names of those who are let in: nodes, and OPERATOR of operators as
// operator/OPERATOR, one a line. None: there is no such file.
func Names(dir string) (names []string, err error) {
	path := filepath.Join(dir, namesFile)
	text, err := limit.ReadFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names = strings.Fields(string(text))
	if len(names) == 0 {
		return nil, fmt.Errorf("%s lists nobody: want a name a line, or no such file", path)
	}
	return names, nil
}

// readKey reads the PEM of a key that nobody except its owner, and readers of its group, can
// read.
func readKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	const foreign = fs.FileMode(0o027)
	if mode := info.Mode().Perm(); mode&foreign != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s has the permissions %04o: want 0600, or 0640 at most", path, mode)
	}
	return limit.ReadFile(path, maxFile)
}

// readCerts reads a PEM file of at least one certificate.
func readCerts(path string) (all []*x509.Certificate, err error) {
	rest, err := limit.ReadFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		switch {
		case block == nil && len(all) == 0:
			return nil, fmt.Errorf("%s has no certificate; want PEM", path)
		case block == nil:
			if err := checkKeys(all); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			return all, nil
		case block.Type != "CERTIFICATE":
			return nil, fmt.Errorf("%s: a PEM block is %.40q, want CERTIFICATE", path, block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, cert)
	}
}
