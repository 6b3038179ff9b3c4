package admin

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/certs"
)

// role is what a request may do; a higher one may do all that a lower one may.
type role int

const (
	nobody  role = iota
	read         // ask
	operate      // change something
)

func (r role) String() string { return [...]string{"none", "read", "operate"}[r] }

// roleFor is the role that a request needs. It goes by the method, so that no route can be
// forgotten.
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

// denial is why a request may not do what it asks for.
type denial struct {
	code      int
	challenge string // of WWW-Authenticate; "" without
	err       error
}

const bearer = `Bearer realm="bmqnode"`

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

// authorize answers a request itself if that may not do what it asks for.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) bool {
	d := s.denial(r)
	if d == nil {
		return true
	}
	if d.challenge != "" {
		w.Header().Set("WWW-Authenticate", d.challenge)
	}
	refuse(w, d.code, d.err)
	return false
}

// denial is why a request is refused; nil if it is not.
func (s *Server) denial(r *http.Request) *denial {
	from, need := originOf(r), roleFor(r)
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	hasToken := strings.EqualFold(scheme, "Bearer")
	plain := from == network && r.TLS == nil
	if hasToken && plain {
		return &denial{http.StatusForbidden, "", errPlainToken}
	}
	if need == read && s.isOpen(topic(r.URL.Path), from) {
		return nil
	}
	has, shown, invalid := s.byConnection(r)
	if has >= need {
		return nil
	}
	if hasToken && s.Tokens != nil {
		if has = s.Tokens.roleOf(strings.TrimSpace(text)); has >= need {
			return nil
		}
		if has == nobody {
			return &denial{http.StatusUnauthorized, bearer + `, error="invalid_token"`, errWrongToken}
		}
		shown = "the token"
	}
	switch {
	case plain:
		return &denial{http.StatusForbidden, "", errPlain}
	case from != network && shown == "":
		return &denial{http.StatusUnauthorized, bearer, errNoToken}
	case invalid != nil:
		return &denial{http.StatusForbidden, "", fmt.Errorf(
			"the certificate that was shown is not accepted: %w", invalid)}
	case has == nobody:
		return &denial{http.StatusUnauthorized, bearer, fmt.Errorf("this needs the role %s: show a "+
			"certificate of 'bmqnode certs --operator NAME' (bmqnode --tls-dir), or send a token of the "+
			"node's --admin-token-file as 'Authorization: Bearer TOKEN'", need)}
	}
	return &denial{http.StatusForbidden, "", fmt.Errorf("this needs the role %s, and %s has the role "+
		"%s: show a certificate of 'bmqnode certs --operator NAME', or a token with that role",
		need, shown, has)}
}

// isOpen reports whether all may ask for a topic.
func (s *Server) isOpen(topic string, from origin) bool {
	return from != network && topic == "health" || topic != "" && slices.Contains(s.Open, topic)
}

// byConnection is the role that a request has by the way it came, what gives that role, and
// why a certificate that was shown gives none.
func (s *Server) byConnection(r *http.Request) (has role, shown string, invalid error) {
	from := originOf(r)
	switch {
	case from == network && r.TLS != nil:
		return s.byCertificate(r.TLS, &arrivalOf(r).chain)
	case s.TokenReads:
		return nobody, "", nil
	case from == network, s.Tokens != nil:
		return read, "", nil
	}
	return operate, "", nil
}

// byCertificate is the role of a certificate: operators operate, nodes read. TLS has proven
// that the other end has its key, and nothing else: so an error can say what is wrong.
func (s *Server) byCertificate(state *tls.ConnectionState, v *verified) (role, string, error) {
	chain := state.PeerCertificates
	if len(chain) == 0 {
		return nobody, "", nil
	}
	if err := v.by(s.TLS().Roots, chain); err != nil {
		return nobody, "", err
	}
	cluster := s.Node.Status().Cluster
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

// verified is what became of the chain that a connection shows. To verify it for each request
// would cost more than the request.
type verified struct {
	roots *x509.CertPool // by which it was verified; a node reads its own again all the time
	err   error
}

// by verifies a chain, unless that was done by the same roots and has not ended since.
func (v *verified) by(roots *x509.CertPool, chain []*x509.Certificate) error {
	if v.roots != roots || v.err == nil && time.Now().After(chain[0].NotAfter) {
		v.roots = roots
		_, v.err = certs.Verify(chain, roots, x509.ExtKeyUsageClientAuth)
	}
	return v.err
}
