package admin

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/base/limit"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Listen listens on addr, host:port or unix:PATH; mode is for the socket. A node listens before
// it starts, because it tells the others its admin address.
func Listen(addr string, mode fs.FileMode) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, UnixPrefix); ok {
		return listenUnix(filepath.Clean(path), mode)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("admin address %s: %w", addr, err)
	}
	return ln, nil
}

// IsHere reports whether addr is a Unix socket or on loopback, out of reach of other machines.
func IsHere(addr string) bool {
	return strings.HasPrefix(addr, UnixPrefix) || limit.IsLoopback(addr)
}

// maxSocketPath is less than the 107 bytes that Linux permits: bindUnix needs some for a moment.
const maxSocketPath = 80

// listenUnix listens on a Unix socket that never has other permissions than mode. It replaces
// the socket that a dead process left behind. A socket on which a process listens, or a file of
// another kind, is an error.
func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("admin socket %s: the path has %d bytes, but must have at most %d",
			path, len(path), maxSocketPath)
	}
	err := checkFree(path)
	var ln net.Listener
	if err == nil {
		ln, err = bindUnix(path, mode)
	}
	if err != nil {
		return nil, fmt.Errorf("admin socket %s: %w", path, err)
	}
	return ln, nil
}

func checkFree(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return errors.New("there is a file that is no socket; remove it, or name another path")
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil // nobody listens: it is left from a crash
	case err != nil:
		return fmt.Errorf("whether a process listens there is not known: %w", err)
	}
	conn.Close()
	return errors.New("another process listens there; stop it, or name another path")
}

// bindUnix makes the socket in a directory that nobody else can enter, sets its mode, and only
// then moves it to its place.
func bindUnix(path string, mode fs.FileMode) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".bmq")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false)
	l := &socketListener{UnixListener: ln, path: path}
	if err = os.Chmod(name, mode); err == nil {
		err = os.Rename(name, path)
	}
	if err == nil {
		l.info, err = os.Lstat(path)
	}
	if err != nil {
		ln.Close()
		return nil, err
	}
	return l, nil
}

// socketListener is a Unix socket that was moved to path.
type socketListener struct {
	*net.UnixListener
	path string
	info fs.FileInfo
}

// Addr is the socket's path.
func (l *socketListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close removes the socket too, unless another has taken its place.
func (l *socketListener) Close() error {
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.info) {
		_ = os.Remove(l.path) // a socket that stays is replaced at the next start
	}
	return l.UnixListener.Close()
}

// secured is a listener that speaks TLS with other machines. It speaks no TLS over loopback and
// Unix sockets, where nobody can listen in: both ends can tell by the address what to speak.
type secured struct {
	net.Listener
	config *tls.Config
}

func withTLS(ln net.Listener, newest func() *netmesh.Credentials) net.Listener {
	return secured{ln, &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &newest().Certificate, nil
		},
		ClientAuth: tls.RequestClientCert,
		// Server.byCertificate verifies the chain itself, so that it can say what is wrong.
		VerifyConnection: func(s tls.ConnectionState) error { return certs.Check(s.PeerCertificates) },
		NextProtos:       []string{"http/1.1"},
		// A session would outlive the certificate that began it.
		SessionTicketsDisabled: true,
	}}
}

// Accept returns a connection whose handshake is still to come.
func (l secured) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil || originFrom(conn) != network {
		return conn, err
	}
	return tls.Server(conn, l.config), nil
}

// closeNow closes a connection at once: a tls.Conn would wait until its other end reads.
func closeNow(conn net.Conn) {
	if c, ok := conn.(*tls.Conn); ok {
		conn = c.NetConn()
	}
	_ = conn.Close()
}
