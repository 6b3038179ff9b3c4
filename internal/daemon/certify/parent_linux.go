package certify

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// signaled is added to the number of the signal that ended a process.
const signaled = 128

// maxCertificate is the most bytes of a certificate.
const maxCertificate = 256

// holder has the evidence connections of the child. It is safe for concurrent use.
type holder struct {
	mu    sync.Mutex
	conns []held
}

type held struct {
	fd          int
	certificate []byte
}

// forwarded are the signals that a parent passes on. The child has a process group of its own, so
// the signals of a terminal reach only the parent.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGABRT,
	syscall.SIGUSR1, syscall.SIGUSR2,
}

// Run starts this program again with args, passes signals on, and returns when that process is gone
// and the other members have been told. The code is its exit code, or 128 and the number of the
// signal that ended it.
func Run(args []string) (code int, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("make a pair of sockets: %w", err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		return 0, fmt.Errorf("use a pair of sockets: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "child"), os.NewFile(uintptr(ends[1]), "parent")
	defer ours.Close()
	raw, err := ours.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("use a pair of sockets: %w", err)
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = filepath.Base(os.Args[0])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{theirs}
	pipes, err := addPipes(cmd)
	if err != nil {
		return 0, err
	}
	cmd.Env = append(environment(), variable+"=3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, forwarded...)
	defer func() { signal.Stop(signals); close(signals) }()
	err = cmd.Start()
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	if err != nil {
		return 0, fmt.Errorf("start the node: %w", err)
	}
	var h holder
	go func() { _ = raw.Read(func(fd uintptr) bool { return !h.receive(int(fd)) }) }()
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // an error means that it has ended, which Wait says
		}
	}()
	tell := func() {
		_ = raw.Control(func(fd uintptr) { h.receive(int(fd)) })
		h.tell()
	}
	for _, pipe := range pipes {
		defer pipe.Close()
		go tellEarly(pipe, cmd.Process.Pid, tell)
	}
	err = cmd.Wait()             // the child has no threads then
	if cmd.ProcessState != nil { // otherwise the child may live
		tell()
	}
	return codeOf(cmd.ProcessState, err)
}

// environment is that of this process, without what reserves signs of life to this process: the
// child gives them to the service manager.
func environment() []string {
	own := fmt.Sprint("WATCHDOG_PID=", os.Getpid())
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return v == own })
}

func codeOf(state *os.ProcessState, err error) (int, error) {
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) {
		return 0, fmt.Errorf("wait for the node: %w", err)
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return signaled + int(status.Signal()), nil
	}
	return state.ExitCode(), nil
}

// receive takes what the child has sent, and reports whether more may come.
func (h *holder) receive(socket int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	var packet [maxCertificate]byte
	control := make([]byte, unix.CmsgSpace(4))
	for {
		n, size, _, _, err := unix.Recvmsg(socket, packet[:], control,
			unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return true
		case err != nil || n == 0:
			return false
		}
		h.keep(slices.Clone(packet[:n]), control[:size])
	}
}

// keep adds the connection that came with a certificate, and closes those that have ended.
func (h *holder) keep(certificate, control []byte) {
	ended := func(c held) bool { return over(c.fd) && unix.Close(c.fd) == nil }
	h.conns = slices.DeleteFunc(h.conns, ended)
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return
	}
	for _, m := range messages {
		files, _ := unix.ParseUnixRights(&m)
		for _, fd := range files {
			h.conns = append(h.conns, held{fd, certificate})
		}
	}
}

// tell writes every certificate, and closes its connection.
func (h *holder) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		if !over(c.fd) {
			_, _ = unix.Write(c.fd, c.certificate) // a peer that does not get it finds out by itself
		}
		_ = unix.Close(c.fd)
	}
	h.conns = nil
}

// over reports whether one end of a connection has ended it. The child ends one by a reset, which
// the kernel sends when nobody holds the connection any more.
func over(fd int) bool {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return true
	}
	linger, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_LINGER)
	return err == nil && linger != 0 || info.State != unix.BPF_TCP_ESTABLISHED
}
