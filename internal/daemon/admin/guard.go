package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/internal/base/limit"
)

// origin is where a request comes from.
type origin int

const (
	network origin = iota // another machine
	local                 // a process of this machine, or a page that its browser shows
	socket                // a Unix socket: its file mode admits the process, no browser opens it
)

// arrival is what the requests of a connection share. They come one after the other.
type arrival struct {
	from  origin
	chain verified
}

type arrivalKey struct{}

// originFrom is the origin of the requests on a connection.
func originFrom(conn net.Conn) origin {
	switch {
	case conn.LocalAddr().Network() == "unix":
		return socket
	case limit.OnLoopback(conn):
		return local
	}
	return network
}

// withArrival puts the arrival of a connection into the context of its requests.
func withArrival(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, arrivalKey{}, &arrival{from: originFrom(conn)})
}

func arrivalOf(r *http.Request) *arrival {
	if a, ok := r.Context().Value(arrivalKey{}).(*arrival); ok {
		return a
	}
	return &arrival{from: network}
}

func originOf(r *http.Request) origin { return arrivalOf(r).from }

var errForeignOrigin = errors.New("a browser sent this for a page of another origin; " +
	"only programs may drive a node")

// guarded refuses requests of browser pages, by another name or from another origin, and
// those without the role that they need.
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
		// DNS rebinding: if the name of a page is made to resolve to loopback, the browser takes
		// the node for the page's own origin.
		if originOf(r) == local && !s.isOwnHost(r.Host) {
			refuse(w, http.StatusMisdirectedRequest,
				fmt.Errorf("the request is for %q, but it came over "+
					"loopback: ask localhost, 127.0.0.1 or the name in --admin-addr", r.Host))
			return
		}
		authorized.ServeHTTP(w, r)
	})
}

var errAnyUser = errors.New("every user of this machine can ask over loopback, so this needs a " +
	"token or the Unix socket: give the node --admin-socket PATH, and ask it with " +
	"--admin unix:PATH; or give it and this command the same --admin-token-file")

// notAnyUser refuses requests of any user of this machine to a route that decides who may take
// part. If the node has tokens, authorize has checked one already.
func (s *Server) notAnyUser(guarded route) route {
	next := guarded.handle
	guarded.handle = func(w http.ResponseWriter, r *http.Request) {
		if originOf(r) == local && s.Tokens == nil {
			refuse(w, http.StatusForbidden, errAnyUser)
			return
		}
		next(w, r)
	}
	return guarded
}

// isOwnHost reports whether a node on loopback may be asked under that name. Health checks send
// an empty one; browsers never do.
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
