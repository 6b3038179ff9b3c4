package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/internal/base/regular"
)

// listenerKind decides which requests of a listener are trusted.
type listenerKind int

const (
	network  listenerKind = iota // any machine may send them
	loopback                     // processes of this machine, and pages that its browsers show
	socket                       // processes that the file's mode admits; no browser
)

type listenerKey struct{}

// withListener notes in the context of requests by which listener they came in.
func withListener(ctx context.Context, ln net.Listener) context.Context {
	kind := network
	switch addr := ln.Addr().(type) {
	case *net.UnixAddr:
		kind = socket
	case *net.TCPAddr:
		if addr.IP.IsLoopback() {
			kind = loopback
		}
	}
	return context.WithValue(ctx, listenerKey{}, kind)
}

var (
	errForeignOrigin = errors.New("a browser sent this for a page of another origin; " +
		"only programs may drive a node")
	errNoToken = errors.New("this needs the node's token: send 'Authorization: Bearer TOKEN', " +
		"or give bmqnode --admin-token-file")
	errWrongToken = errors.New(
		"the token is not this node's; see the file that its --admin-token-file names")
	errOpenNetwork = errors.New("refused without a token, because this address is not loopback: " +
		"start the node with --admin-token-file, or ask it over loopback or --admin-socket")
)

// guarded refuses requests of browser pages, by another name or from another origin, and
// changes without the right to make them.
func (s *Server) guarded(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, errForeignOrigin)
	}))
	authorized := cross.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.authorize(w, r) {
			next.ServeHTTP(w, r)
		}
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, _ := r.Context().Value(listenerKey{}).(listenerKind)
		// To a browser, a page whose name was made to resolve to loopback is of the same
		// origin as the node.
		if kind == loopback && !s.isOwnHost(r.Host) {
			refuse(w, http.StatusMisdirectedRequest,
				fmt.Errorf("the request is for %q, but this node listens on "+
					"loopback: ask localhost, 127.0.0.1 or the name in --admin-addr", r.Host))
			return
		}
		authorized.ServeHTTP(w, r)
	})
}

// isOwnHost reports whether a node on loopback may be asked under that name. No
// browser sends an empty one; health checks do.
func (s *Server) isOwnHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	host = strings.ToLower(host)
	ip, err := netip.ParseAddr(host)
	return host == "" || host == "localhost" || err == nil && ip.IsLoopback() ||
		slices.Contains(s.Hosts, host)
}

// authorize demands the token where one is needed; it answers the request itself if that
// is missing. It goes by the method, so that no route can be forgotten.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) bool {
	kind, _ := r.Context().Value(listenerKey{}).(listenerKind)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions:
		if s.Token == "" && kind != network {
			return true
		}
	case !s.TokenReads || r.URL.Path == "/healthz" || r.URL.Path == "/readyz":
		return true
	}
	if s.Token == "" {
		refuse(w, http.StatusForbidden, errOpenNetwork)
		return false
	}
	const challenge = `Bearer realm="bmqnode"`
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		w.Header().Set("WWW-Authenticate", challenge)
		refuse(w, http.StatusUnauthorized, errNoToken)
		return false
	}
	// Hashes take as long to compare for a token that is nearly right as for any other.
	got, want := sha256.Sum256([]byte(strings.TrimSpace(token))), sha256.Sum256([]byte(s.Token))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		w.Header().Set("WWW-Authenticate", challenge+`, error="invalid_token"`)
		refuse(w, http.StatusUnauthorized, errWrongToken)
		return false
	}
	return true
}

// A token is 16 to 4096 printable ASCII characters without spaces.
const (
	minToken = 16
	maxToken = 4096
)

// ReadToken reads the token that a file holds, on a line of its own. The error
// names the file and says how to fix it, also if every user may read it.
func ReadToken(path string) (string, error) {
	file, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(file, maxToken+2))
	}
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return "", fmt.Errorf("token file %s: every user of this machine can get at it (mode %04o); "+
			"fix it with: chmod o= %s", path, mode, path)
	}
	token := strings.TrimRight(string(text), "\r\n")
	invalid := strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
	if len(token) < minToken || len(token) > maxToken || invalid {
		return "", fmt.Errorf(
			"token file %s: it must hold one line of %d to %d printable ASCII characters "+
				"without spaces; make one with: openssl rand -hex 32", path, minToken, maxToken)
	}
	return token, nil
}
