package certs

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// DefaultCluster is the cluster of a new CA, and of a node, if no other is named.
	DefaultCluster = "bmqelect"

	caKeyFile = "ca.key" // beside ca.crt, in the directory of all nodes'

	caValid = 10 * 365 * 24 * time.Hour
	// backdated is how far a machine's wall clock may be behind that of the issuer.
	backdated = time.Hour
)

// hostName is what the host of a URI in a certificate may be, and a DNS name.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// Issued is a certificate that was made.
type Issued struct {
	Node, Dir string
	Until     time.Time
}

// Issue makes, for each node, a key and a certificate of that cluster in the node's directory
// below dir, in place of what is there; a name of Operators is that of an operator. dir has the
// CA, which is made if it is not there, with a key of gossip; every node gets a copy of that.
// An empty cluster is that of the CA, or DefaultCluster for a new one; no nodes are all that
// have a directory. The files accept-plain and names of a node are as in dir, or gone if dir
// has none. A certificate holds for valid, or as long as its CA. All files have the permissions
// 0600.
func Issue(dir, cluster string, nodes []string, valid time.Duration) ([]Issued, error) {
	if err := check(cluster, nodes); err != nil {
		return nil, err
	}
	ca, err := openCA(dir, cluster)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		if nodes, err = issuedBefore(dir); err != nil {
			return nil, err
		}
	}
	var all []Issued
	for _, node := range nodes {
		made, err := ca.issue(filepath.Join(dir, node), node, valid)
		if err != nil {
			return all, fmt.Errorf("certificate of node %s: %w", node, err)
		}
		all = append(all, made)
	}
	return all, nil
}

func check(cluster string, nodes []string) error {
	if cluster != "" && !hostName.MatchString(cluster) {
		return fmt.Errorf("cluster %q: a certificate can name one of letters, digits, '-', '_' "+
			"and single dots only", cluster)
	}
	for _, node := range nodes {
		name, isOperator := strings.CutPrefix(node, operators)
		reserved := []string{
			".", caFile, caKeyFile, gossipFile, plainFile, namesFile, strings.TrimSuffix(operators, "/"),
		}
		if name != filepath.Base(name) || !filepath.IsLocal(name) ||
			!isOperator && slices.Contains(reserved, name) {
			return fmt.Errorf("node %q: it cannot be the name of a directory", node)
		}
	}
	return nil
}

// issuedBefore are the nodes and the operators that have a certificate.
func issuedBefore(dir string) (nodes []string, err error) {
	for _, kind := range []string{"", operators} {
		var found []string
		found, err = filepath.Glob(filepath.Join(dir, kind, "*", certFile))
		for _, path := range found {
			nodes = append(nodes, kind+filepath.Base(filepath.Dir(path)))
		}
	}
	if err == nil && len(nodes) == 0 {
		err = fmt.Errorf("%s has no certificate to renew: name the nodes", dir)
	}
	return nodes, err
}

// authority signs certificates of one cluster.
type authority struct {
	tls.Certificate

	cluster string
	bundle  []byte            // what nodes get as ca.crt
	shared  map[string][]byte // what else all nodes get
}

// openCA reads the CA of a directory, or makes one for a cluster.
func openCA(dir, cluster string) (*authority, error) {
	certPath, keyPath := filepath.Join(dir, caFile), filepath.Join(dir, caKeyFile)
	_, noCert := os.Lstat(certPath)
	_, noKey := os.Lstat(keyPath)
	if errors.Is(noCert, fs.ErrNotExist) && errors.Is(noKey, fs.ErrNotExist) {
		if err := makeCA(dir, cluster); err != nil {
			return nil, fmt.Errorf("new CA: %w", err)
		}
	}
	key, err := readKey(keyPath)
	if err != nil {
		return nil, err
	}
	certs, err := readCerts(certPath)
	if err != nil {
		return nil, err
	}
	ca := &authority{}
	for _, cert := range certs { // while CAs change the file has two
		ca.bundle = append(ca.bundle, pemOf("CERTIFICATE", cert.Raw)...)
		pair, err := tls.X509KeyPair(pemOf("CERTIFICATE", cert.Raw), key)
		if err == nil && ca.Leaf == nil {
			ca.Certificate, ca.cluster = pair, clusterOf(cert)
		}
	}
	switch {
	case ca.Leaf == nil:
		return nil, fmt.Errorf("%s is not the key of a certificate in %s", keyPath, certPath)
	case ca.cluster == "":
		ca.cluster = cluster
	case cluster != "" && cluster != ca.cluster:
		return nil, fmt.Errorf("%s is of cluster %q, not %q: use another directory",
			certPath, ca.cluster, cluster)
	}
	if ca.cluster == "" {
		return nil, fmt.Errorf("%s names no cluster: name it", certPath)
	}
	ca.shared, err = readShared(dir)
	return ca, err
}

func makeCA(dir, cluster string) error {
	now, cluster := time.Now(), cmp.Or(cluster, DefaultCluster)
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "CA of bmqelect cluster " + cluster},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(caValid),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	template.URIs = append(template.URIs, uri(cluster, ""))
	key, text, err := newKey()
	if err != nil {
		return err
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	err = writeFiles(dir, map[string][]byte{
		caFile: pemOf("CERTIFICATE", cert), caKeyFile: text,
	})
	if err != nil {
		return err
	}
	keys := []GossipKey{NewGossipKey()}
	if plain, err := AcceptsPlain(dir); plain || err != nil {
		keys = append([]GossipKey{{}}, keys...)
	}
	return writeGossipKeys(dir, keys)
}

// issue makes the files of one node.
func (ca *authority) issue(dir, node string, valid time.Duration) (Issued, error) {
	now := time.Now()
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: node},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(valid),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	template.URIs = append(template.URIs, uri(ca.cluster, node))
	files := maps.Clone(ca.shared)
	switch {
	case strings.HasPrefix(node, operators):
		clear(files) // they take no part in gossip
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	case hostName.MatchString(node): // for clients that look for a name
		template.DNSNames = []string{node}
	}
	if template.NotAfter.After(ca.Leaf.NotAfter) {
		template.NotAfter = ca.Leaf.NotAfter
	}
	key, text, err := newKey()
	if err != nil {
		return Issued{}, err
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, key.Public(), ca.PrivateKey)
	if err != nil {
		return Issued{}, err
	}
	files[caFile], files[certFile], files[keyFile] = ca.bundle, pemOf("CERTIFICATE", cert), text
	err = errors.Join(writeFiles(dir, files), endMove(dir, files))
	return Issued{Node: node, Dir: dir, Until: template.NotAfter}, err
}

// endMove lets a node demand TLS, once the CA's directory does not say otherwise.
func endMove(dir string, files map[string][]byte) error {
	if _, moves := files[plainFile]; moves {
		return nil
	}
	err := os.Remove(filepath.Join(dir, plainFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// newKey returns a key, and the text of its file.
func newKey() (ed25519.PrivateKey, []byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return key, pemOf("PRIVATE KEY", der), err
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writeFiles replaces files one by one. A reader that comes between finds a certificate and a
// key that do not match, and reads again later.
func writeFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, text := range files {
		if err := replaceFile(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile puts text in the place of a file, all of it or nothing.
func replaceFile(path string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
