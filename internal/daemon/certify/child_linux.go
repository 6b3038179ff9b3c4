package certify

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// sendTimeout is the longest time that a parent may take to read a message.
const sendTimeout = 100 * time.Millisecond

// IsChild reports whether this process was started by Run.
func IsChild() bool { return os.Getenv(variable) != "" }

// Hold returns a function that hands evidence connections to the parent of this process, which Run
// has started. When the parent is gone, this process gets one SIGTERM. PR_SET_PDEATHSIG would send
// one for each thread of the parent, and a second signal ends a node before it has handed over.
// Call Hold once, before other processes are started.
func Hold() (hold func(conn net.Conn, certificate []byte) error, err error) {
	number, err := strconv.Atoi(os.Getenv(variable))
	os.Unsetenv(variable)
	if err != nil {
		return nil, fmt.Errorf("socket of the parent: %w", err)
	}
	syscall.CloseOnExec(number)
	for fd := number + 1; fd <= number+threads; fd++ {
		syscall.CloseOnExec(fd)
		if keepInThread(fd) {
			_ = syscall.Close(fd)
		} // without that, the file ends with the others of this process
	}
	file := os.NewFile(uintptr(number), "parent")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("socket of the parent: %w", err)
	}
	parent, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("socket of the parent: it is a %T", conn)
	}
	go func() {
		_, _ = parent.Read(make([]byte, 1)) // the parent writes nothing: this returns when it is gone
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
	return func(conn net.Conn, certificate []byte) error {
		return send(parent, conn, certificate)
	}, nil
}

// send hands a connection to the parent. The parent reads everything that was sent before it tells
// of the death of this process.
func send(parent *net.UnixConn, conn net.Conn, certificate []byte) error {
	source, ok := conn.(syscall.Conn)
	if certificate == nil || !ok {
		return nil // the end of this process closes it, which is proof enough
	}
	raw, err := source.SyscallConn()
	if err != nil {
		return fmt.Errorf("file of a connection to %s: %w", conn.RemoteAddr(), err)
	}
	closed := raw.Control(func(fd uintptr) {
		_ = parent.SetWriteDeadline(time.Now().Add(sendTimeout)) // an error comes with the write
		_, _, err = parent.WriteMsgUnix(certificate, syscall.UnixRights(int(fd)), nil)
	})
	if closed != nil {
		return closed
	}
	if err != nil {
		return fmt.Errorf("let the parent hold a connection to %s: %w", conn.RemoteAddr(), err)
	}
	return nil
}
