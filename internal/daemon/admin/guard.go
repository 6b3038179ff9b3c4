package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// door is a kind of listener, as far as it decides whom to obey.
type door int

const (
	network  door = iota // anybody may knock
	loopback             // processes of this machine, and what its browsers are led to
	socket               // those whom the file's mode admits; no browser
)

type doorKey struct{}

// atDoor notes in the context of requests by which listener they came in.
func atDoor(ctx context.Context, ln net.Listener) context.Context {
	d := network
	switch addr := ln.Addr().(type) {
	case *net.UnixAddr:
		d = socket
	case *net.TCPAddr:
		if addr.IP.IsLoopback() {
			d = loopback
		}
	}
	return context.WithValue(ctx, doorKey{}, d)
}

func doorOf(r *http.Request) door {
	d, _ := r.Context().Value(doorKey{}).(door)
	return d
}

var (
	errForeignOrigin = errors.New("a browser sent this for a page of another origin; only programs may drive a node")
	errNoToken       = errors.New("this needs the node's token: send 'Authorization: Bearer TOKEN', or give bmqnode --admin-token-file")
	errWrongToken    = errors.New("the token is not this node's; see the file that its --admin-token-file names")
	errOpenNetwork   = errors.New("refused without a token, because this address is not loopback: start the node with --admin-token-file, or ask it over loopback or --admin-socket")
)

// guarded lets through what may be asked: no page of a browser can reach the node
// by a name of its own or drive it from another origin, and nobody can change
// anything who may not.
func (s *Server) guarded(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, errForeignOrigin)
	}))
	return s.namedRight(cross.Handler(s.entitled(next)))
}

// namedRight refuses a name that is not the listener's: to a browser, a page whose
// name was made to resolve to loopback is of the same origin as the node.
func (s *Server) namedRight(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if doorOf(r) == loopback && !s.isOurs(hostOf(r.Host)) {
			refuse(w, http.StatusMisdirectedRequest, fmt.Errorf(
				"the request is for %q, but this node listens on loopback: ask localhost, 127.0.0.1 or the name in --admin-addr", r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOurs reports whether a node on loopback may be asked under that name. No
// browser sends an empty one; health checks do.
func (s *Server) isOurs(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || host == "localhost" || err == nil && ip.IsLoopback() || slices.Contains(s.Hosts, host)
}

// hostOf is the name without a port, in lower case.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return strings.ToLower(host)
}

// entitled demands the token where one is needed.
func (s *Server) entitled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !s.needsToken(r):
			next.ServeHTTP(w, r)
		case s.Token == "":
			refuse(w, http.StatusForbidden, errOpenNetwork)
		default:
			s.checkToken(w, r, next)
		}
	})
}

// needsToken goes by the method, so that no route can be forgotten.
func (s *Server) needsToken(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions {
		return s.Token != "" || doorOf(r) == network
	}
	return s.TokenReads && r.URL.Path != "/healthz" && r.URL.Path != "/readyz"
}

func (s *Server) checkToken(w http.ResponseWriter, r *http.Request, next http.Handler) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		w.Header().Set("WWW-Authenticate", `Bearer realm="bmqnode"`)
		refuse(w, http.StatusUnauthorized, errNoToken)
	case !sameToken(strings.TrimSpace(token), s.Token):
		w.Header().Set("WWW-Authenticate", `Bearer realm="bmqnode", error="invalid_token"`)
		refuse(w, http.StatusUnauthorized, errWrongToken)
	default:
		next.ServeHTTP(w, r)
	}
}

// sameToken takes as long for a token that is nearly right as for any other.
func sameToken(got, want string) bool {
	g, w := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(g[:], w[:]) == 1
}
