package admin

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/limit"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// slowly opens a connection from a source and sends the beginning of a request.
func slowly(t *testing.T, c *Client, source, text string) net.Conn {
	t.Helper()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	conn, err := from.DialContext(t.Context(), "tcp", c.addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	return conn
}

// limitedHost serves on a network in memory, and returns how to connect to it.
func limitedHost(t *testing.T, handler http.HandlerFunc) (dial func() net.Conn) {
	t.Helper()
	network := memnet.New()
	ln, err := network.Host("s").Listen("s:80")
	require.NoError(t, err)
	s := &Server{Config: Config{Logger: hclog.NewNullLogger()},
		conns: limit.NewCrowd[net.Conn](maxConns)}
	server := s.limited(handler)
	done := make(chan error)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
		synctest.Wait()
		require.Empty(t, s.conns.All())
	})
	return func() net.Conn {
		conn, err := network.Host("c").Dial(t.Context(), "s:80")
		require.NoError(t, err)
		return conn
	}
}

// Who sends a body, or reads answers, as slowly as can be holds no connection for long.
func TestWhoIsSlowLosesTheConnection(t *testing.T) {
	read := posted(func(w http.ResponseWriter, _ *http.Request, _ TransferRequest) {
		answer(w, "done")
	})
	ignore := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
	}
	const begun = " / HTTP/1.1\r\nHost: s\r\nContent-Length: 60000\r\n\r\n{"
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		head    string
		more    string
	}{
		"a body that is read": {read, "POST" + begun, "x"},
		"a body that is not":  {ignore, "GET" + begun, "x"},
		"answers":             {ignore, "", "GET / HTTP/1.1\r\nHost: s\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := limitedHost(t, c.handler)()
				_, err := io.WriteString(conn, c.head)
				for began := time.Now(); err == nil; time.Sleep(time.Second) {
					require.Less(t, time.Since(began), time.Minute)
					_ = conn.SetWriteDeadline(time.Now().Add(time.Minute))
					_, err = io.WriteString(conn, c.more)
				}
				require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
				_ = conn.Close()
			})
		})
	}
}

// Work that takes longer than its body may, and than an answer may, is not given up.
func TestWorkThatTakesLongIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := limitedHost(t, posted(func(w http.ResponseWriter, r *http.Request, _ TransferRequest) {
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
				answer(w, "done")
			}
		}))()
		_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\n\r\n{}")
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Contains(t, string(text), "done")
		_ = conn.Close()
	})
}

// Who holds many connections loses its oldest; everybody else is answered.
func TestManyConnectionsKeepNobodyOut(t *testing.T) {
	_, c := serve(t, nil, "b", "c")
	oldest := slowly(t, c, "127.0.0.1", "GET")
	for range maxConns {
		slowly(t, c, "127.0.0.1", "GET")
	}
	code, _ := request(t, c, "GET", "/v1/status", "")
	require.Equal(t, http.StatusOK, code)
	_ = oldest.SetReadDeadline(time.Now().Add(headerTimeout / 2))
	_, err := io.ReadAll(oldest)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

// Streams that one machine opens and never reads leave room for others'.
func TestUnreadStreamsKeepNoOtherMachineOut(t *testing.T) {
	if conn, err := net.ListenPacket("udp", "127.0.0.2:0"); err != nil {
		t.Skip("this machine has no second address: ", err)
	} else {
		_ = conn.Close()
	}
	_, c := serve(t, nil, "b", "c")
	const ask = "GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
	answer := func(conn net.Conn) string {
		status := make([]byte, len("HTTP/1.1 200"))
		_ = conn.SetReadDeadline(time.Now().Add(testkit.Limit(10 * time.Second)))
		_, err := io.ReadFull(conn, status)
		require.NoError(t, err)
		return string(status)
	}
	oldest := slowly(t, c, "127.0.0.1", ask)
	answer(oldest)
	for range maxStreams - 1 {
		answer(slowly(t, c, "127.0.0.1", ask))
	}
	require.Equal(t, "HTTP/1.1 503", answer(slowly(t, c, "127.0.0.1", ask)))
	require.Equal(t, "HTTP/1.1 200", answer(slowly(t, c, "127.0.0.2", ask)))
	lines := bufio.NewScanner(oldest)
	for lines.Scan() && lines.Text() != "0" { // the last chunk
	}
	require.NoError(t, lines.Err(), "the oldest ends")
}

// A client leaves no connection behind that somebody would have to close.
func TestARequestTakesItsConnectionAlong(t *testing.T) {
	ended := make(chan struct{}, 9)
	node := httptest.NewUnstartedServer(http.NotFoundHandler())
	node.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			ended <- struct{}{}
		}
	}
	node.Start()
	defer node.Close()
	for range 2 {
		_, err := NewClient(node.Listener.Addr().String()).Status(t.Context())
		require.ErrorContains(t, err, "404")
		select {
		case <-ended:
		case <-time.After(testkit.Limit(10 * time.Second)):
			require.Fail(t, "the connection is still there")
		}
	}
}

// The token goes to the address that was named and to none to which that one points.
func TestARedirectGetsNoToken(t *testing.T) {
	asked := make(chan string, 1)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
	}))
	defer thief.Close()
	named := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer named.Close()
	c := Credentials{token: "0123456789abcdef"}.Client(named.Listener.Addr().String(), "", true)
	_, err := c.Status(t.Context())
	require.ErrorContains(t, err, "307")
	require.Empty(t, asked)
}
