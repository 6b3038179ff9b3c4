// Package certs makes, renews and reads the certificates by which the members of a cluster
// know each other, and their operators, and the keys of gossip. A node's directory has the
// names of files that others use, too: ca.crt, tls.crt and tls.key, in PEM. Beside them are
// gossip.key, which has the keys of gossip, accept-plain, which is there while the cluster
// moves to TLS, and names, if not everybody with a certificate is let in. No function prints a
// key or puts one into an error.
package certs

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// scheme is that of the URI by which a certificate names a member.
const scheme = "bmqelect"

// operators begins the names of operators, as Issue takes them and as URIs have them:
// bmqelect://CLUSTER/operator/NAME. No node has such a name.
const operators = "operator/"

// Operators are the names of operators as Issue takes them.
func Operators(names []string) (full []string) {
	for _, name := range names {
		full = append(full, operators+name)
	}
	return full
}

// uri names a member, or a cluster if node is "".
func uri(cluster, node string) *url.URL {
	u := &url.URL{Scheme: scheme, Host: cluster}
	if node != "" {
		u.Path = "/" + node
	}
	return u
}

// clusterOf is the cluster that a certificate of Issue is bound to; "" if it is of another
// origin.
func clusterOf(cert *x509.Certificate) string {
	for _, u := range cert.URIs {
		if u.Scheme == scheme {
			return u.Host
		}
	}
	return ""
}

// NamesIn are those that a certificate has in a cluster: of nodes, and of operators as Issue
// takes them. The URI bmqelect://CLUSTER/NAME binds a certificate to both. One without such a
// URI is bound by its DNS names, each the name of a node, exactly: then nothing except its CA
// tells the cluster.
func NamesIn(cert *x509.Certificate, cluster string) (all []string) {
	bound := false
	for _, u := range cert.URIs {
		bound = bound || u.Scheme == scheme
		if u.Scheme == scheme && u.Host == cluster && len(u.Path) > 1 {
			all = append(all, u.Path[1:])
		}
	}
	if !bound {
		all = slices.DeleteFunc(slices.Clone(cert.DNSNames), IsOperator)
	}
	return all
}

// IsOperator reports whether a name of NamesIn is that of an operator.
func IsOperator(name string) bool {
	name, is := strings.CutPrefix(name, operators)
	return is && name != ""
}

// Problem says why a certificate is not that of a node of a cluster, or of any of its nodes
// if node is ""; "" if it is.
func Problem(cert *x509.Certificate, cluster, node string) string {
	fits := func(name string) bool { return !IsOperator(name) && (node == "" || name == node) }
	if slices.ContainsFunc(NamesIn(cert, cluster), fits) {
		return ""
	}
	if node == "" {
		node = "NODE"
	}
	return fmt.Sprintf("the certificate is for %s, but must be for %s, or have the DNS name %q",
		names(cert), uri(cluster, node), node)
}

// names lists the owners of a certificate, cut to a log line.
func names(cert *x509.Certificate) string {
	var all []string
	for _, u := range cert.URIs {
		all = append(all, u.String())
	}
	all = append(all, cert.DNSNames...)
	if len(all) == 0 {
		return "nobody: it has neither URI nor DNS name"
	}
	return fmt.Sprintf("%.300q", all)
}
