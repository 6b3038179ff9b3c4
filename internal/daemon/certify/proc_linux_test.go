package certify

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// becomeAnother replaces this child, whose threads end with that, by a program that lives for as
// long as the other end of its connection does not close that.
func becomeAnother(addr, order string) {
	if order == "become another without /proc" {
		check(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		self, err := os.Executable()
		check(err)
		check(unix.Mount("none", "/proc", "tmpfs", 0, ""))
		check(syscall.Exec(self, []string{self, "another", addr}, os.Environ()))
	}
	check(syscall.Exec("/proc/self/exe", []string{"exe", "another", addr}, os.Environ()))
}

func beAnother(addr string) {
	conn, err := net.Dial("tcp", addr)
	check(err)
	_, err = fmt.Fprint(conn, "here")
	check(err)
	_, _ = conn.Read(make([]byte, 1))
	os.Exit(5)
}

// A thread that ends may end because its process becomes another program. What /proc tells then
// must be of that process: in a namespace of process IDs without a /proc of its own, the number
// means another process, and without any /proc every process looks gone.
func TestAChildThatLivesIsNotCertified(t *testing.T) {
	for name, c := range map[string]struct {
		order      string
		namespaces uintptr
	}{
		"own proc":     {"become another", 0},
		"another proc": {"become another", unix.CLONE_NEWPID},
		"no proc":      {"become another without /proc", unix.CLONE_NEWNS},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			require.NoError(t, l.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
			var said strings.Builder
			parent := exec.Command("/proc/self/exe", "parent", l.Addr().String(), c.order)
			parent.Stdout, parent.Stderr = &said, &said
			parent.SysProcAttr = &syscall.SysProcAttr{Cloneflags: c.namespaces,
				Pdeathsig: syscall.SIGTERM}
			if err := parent.Start(); errors.Is(err, syscall.EPERM) {
				t.Skip("namespaces are not permitted here")
			} else {
				require.NoError(t, err)
			}
			defer func() { _ = parent.Process.Kill(); _ = parent.Wait() }()
			var conns [4]net.Conn // as of family, and that of the other program
			for i := range conns {
				conns[i], err = l.Accept()
				require.NoError(t, err, &said)
				defer conns[i].Close()
				require.NoError(t, conns[i].SetDeadline(time.Now().Add(patience)))
			}
			held, another := conns[1], conns[3]
			_, err = another.Read(make([]byte, len("here")))
			require.NoError(t, err)
			line := make([]byte, 64)
			n, err := held.Read(line)
			require.NoError(t, err)
			require.True(t, strings.HasSuffix(string(line[:n]), "false\n"), "%q", line[:n])
			require.NoError(t, held.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
			n, err = held.Read(line)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded, "%q of a process that lives", line[:n])

			require.NoError(t, another.Close())
			require.NoError(t, held.SetReadDeadline(time.Now().Add(patience)))
			n, err = held.Read(line)
			require.NoError(t, err)
			require.Equal(t, certificate, string(line[:n]))
			require.Error(t, parent.Wait())
			require.Equal(t, 5, parent.ProcessState.ExitCode(), &said)
		})
	}
}
