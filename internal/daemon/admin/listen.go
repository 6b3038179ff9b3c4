package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Listen binds addr (host:port). It is apart from Serve so that a node can tell
// the others its admin address before it starts.
func Listen(addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("admin address %s: %w", addr, err)
	}
	return ln, nil
}

const (
	// maxSocketPath is what the name of a Unix socket may have, less what
	// ListenUnix adds to it for a moment.
	maxSocketPath = 80
	dialSocket    = time.Second
)

// ListenUnix binds a Unix socket at path, with the given permissions from the
// first moment on. A socket that a process left behind when it died is replaced;
// one on which somebody listens, or a file of another kind, is an error.
func ListenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("admin socket %s: the path has %d bytes, but must have at most %d", path, len(path), maxSocketPath)
	}
	if err := vacant(path); err != nil {
		return nil, fmt.Errorf("admin socket %s: %w", path, err)
	}
	ln, err := bindUnix(path, mode)
	if err != nil {
		return nil, fmt.Errorf("admin socket %s: %w", path, err)
	}
	return ln, nil
}

// vacant returns why nothing may be bound at path.
func vacant(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return errors.New("there is a file that is no socket; remove it, or name another path")
	}
	conn, err := net.DialTimeout("unix", path, dialSocket)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil // nobody listens: it is left from a crash
	case err != nil:
		return fmt.Errorf("whether somebody listens there is not known: %w", err)
	}
	conn.Close()
	return errors.New("another process listens there; stop it, or name another path")
}

// bindUnix binds in a directory that nobody else can enter, sets the mode and
// only then moves the socket to its place.
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
	info, err := place(name, path, mode)
	if err != nil {
		ln.Close()
		return nil, err
	}
	return &socketListener{UnixListener: ln, path: path, info: info}, nil
}

func place(name, path string, mode fs.FileMode) (fs.FileInfo, error) {
	if err := os.Chmod(name, mode); err != nil {
		return nil, err
	}
	if err := os.Rename(name, path); err != nil {
		return nil, err
	}
	return os.Lstat(path)
}

// socketListener knows the path to which its socket was moved.
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
		_ = os.Remove(l.path) // one that stays is found to be stale
	}
	return l.UnixListener.Close()
}
