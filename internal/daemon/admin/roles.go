package admin

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/certs"
)

// role is what a request may do. A higher role includes the lower ones.
type role int

const (
	nobody  role = iota
	read         // ask
	operate      // change something
)

func (r role) String() string { return [...]string{"none", "read", "operate"}[r] }

// roleFor is the role that a request needs. It depends on the method alone, so that a new route
// needs a role without anybody thinking of it.
func roleFor(r *http.Request) role {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return read
	}
	return operate
}

// Openable are what Config.Open may name.
var Openable = []string{"leader", "health", "metrics"}

// topic is the one of Openable to which a path belongs; "" if it belongs to none.
func topic(path string) string {
	switch {
	case path == "/v1/leader",
		strings.HasPrefix(path, "/v1/elections/") && strings.HasSuffix(path, "/leader"):
		return "leader"
	case path == "/healthz", path == "/readyz":
		return "health"
	case path == "/metrics":
		return "metrics"
	}
	return ""
}

var (
	errNoToken = errors.New("this needs the node's token: send 'Authorization: Bearer TOKEN', " +
		"or give bmqnode --admin-token-file")
	errWrongToken = errors.New(
		"the token is not this node's; see the file that its --admin-token-file names")
	errPlain = errors.New("refused over a network without TLS: give the node --tls-dir, " +
		"or ask it over loopback or a Unix socket")
	errPlainToken = errors.New("a token came over a network without TLS, where others can read it: " +
		"replace it in the node's --admin-token-file, and give the node --tls-dir")
)

// authorize reports whether a request may do what it asks for. It answers a request that may not.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) bool {
	code, err := s.denial(r)
	if err == nil {
		return true
	}
	if code == http.StatusUnauthorized {
		challenge := `Bearer realm="bmqnode"`
		if errors.Is(err, errWrongToken) {
			challenge += `, error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
	}
	refuse(w, code, err)
	return false
}

// denial is the status code and the reason of a refusal; nil if the request is admitted.
func (s *Server) denial(r *http.Request) (code int, err error) {
	from, need := originOf(r), roleFor(r)
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	hasToken := strings.EqualFold(scheme, "Bearer")
	plain := from == network && r.TLS == nil
	if hasToken && plain {
		return http.StatusForbidden, errPlainToken
	}
	if need == read && s.isOpen(topic(r.URL.Path), from) {
		return 0, nil
	}
	has, shown, invalid := s.byConnection(r)
	if has >= need {
		return 0, nil
	}
	if hasToken && s.Tokens != nil {
		if has = s.Tokens.roleOf(strings.TrimSpace(text)); has >= need {
			return 0, nil
		}
		if has == nobody {
			return http.StatusUnauthorized, errWrongToken
		}
		shown = "the token"
	}
	switch {
	case plain:
		return http.StatusForbidden, errPlain
	case from != network && shown == "":
		return http.StatusUnauthorized, errNoToken
	case invalid != nil:
		return http.StatusForbidden, fmt.Errorf(
			"the certificate that was shown is not accepted: %w", invalid)
	case has == nobody:
		return http.StatusUnauthorized, fmt.Errorf("this needs the role %s: show a "+
			"certificate of 'bmqnode certs --operator NAME' (bmqnode --tls-dir), or send a token of the "+
			"node's --admin-token-file as 'Authorization: Bearer TOKEN'", need)
	}
	return http.StatusForbidden, fmt.Errorf("this needs the role %s, and %s has the role %s: show a "+
		"certificate of 'bmqnode certs --operator NAME', or a token with that role", need, shown, has)
}

// isOpen reports whether everybody may ask for a topic.
func (s *Server) isOpen(topic string, from origin) bool {
	return from != network && topic == "health" || topic != "" && slices.Contains(s.Open, topic)
}

// byConnection is the role that a request has by its connection, what gives that role, and why
// a certificate that was shown gives none.
func (s *Server) byConnection(r *http.Request) (has role, shown string, invalid error) {
	from := originOf(r)
	switch {
	case from == network && r.TLS != nil:
		return s.byCertificate(r.TLS.PeerCertificates, &arrivalOf(r).chain)
	case s.TokenReads:
		return nobody, "", nil
	case from == network, s.Tokens != nil:
		return read, "", nil
	}
	return operate, "", nil
}

// byCertificate is the role of a certificate: operators operate, nodes read. The handshake has
// proven only that the other end has the key: so an error here can say what is wrong.
func (s *Server) byCertificate(chain []*x509.Certificate, v *verified) (role, string, error) {
	if len(chain) == 0 {
		return nobody, "", nil
	}
	if err := v.by(s.TLS().Roots, chain); err != nil {
		return nobody, "", err
	}
	cluster := s.Node.StatusOf(just).Cluster
	names := certs.NamesIn(chain[0], cluster)
	off := func(name string) bool { return !s.TLS().Lists(name) }
	listed := slices.DeleteFunc(slices.Clone(names), off)
	switch {
	case len(names) == 0:
		return nobody, "", fmt.Errorf("%s; that of an operator is for bmqelect://%s/operator/NAME",
			certs.Problem(chain[0], cluster, ""), cluster)
	case len(listed) == 0:
		return nobody, "", fmt.Errorf("%.300q is not in the list of names of this node", names)
	case slices.ContainsFunc(listed, certs.IsOperator):
		return operate, "the operator's certificate", nil
	}
	return read, "the certificate of a node", nil
}

// verified is the result of verifying the chain that a connection shows. To verify it for each
// request would cost more than the request: a stranger could name the CA as the issuer of all.
type verified struct {
	roots *x509.CertPool // those that were used; the node reads its own again and again
	err   error
}

// by verifies a chain, unless these roots verified it before and it has not expired since.
func (v *verified) by(roots *x509.CertPool, chain []*x509.Certificate) error {
	if v.roots != roots || v.err == nil && time.Now().After(chain[0].NotAfter) {
		v.roots = roots
		_, v.err = certs.Verify(chain, roots, x509.ExtKeyUsageClientAuth)
	}
	return v.err
}
