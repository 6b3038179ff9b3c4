package certify

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

var patience = testkit.Limit(20 * time.Second)

const certificate = "the child is dead"

// TestMain is also the child (see beChild), its parent, and what the child becomes.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "parent" {
		code, err := Run([]string{"child", os.Args[2], os.Args[3]})
		check(err)
		os.Exit(code)
	}
	if len(os.Args) == 3 && os.Args[1] == "another" {
		beAnother(os.Args[2])
	}
	if len(os.Args) == 4 && os.Args[1] == "child" {
		beChild(os.Args[2], os.Args[3])
	}
	goleak.VerifyTestMain(m)
}

var memory []byte

// beChild has two connections to addr held, of which it resets the first, says on the second
// who it is, and ends as the order says.
func beChild(addr, order string) {
	hold, err := Hold()
	check(err)
	conns := [2]net.Conn{}
	for i := range conns {
		conns[i], err = net.Dial("tcp", addr)
		check(err)
		check(hold(conns[i], []byte(certificate)))
		if i == 0 {
			check(conns[0].(*net.TCPConn).SetLinger(0))
			check(conns[0].Close())
		}
	}
	unheld, err := net.Dial("tcp", addr)
	check(err)
	check(hold(unheld, nil))
	if order == "fill memory" {
		memory, err = unix.Mmap(-1, 0, 256<<20, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANON)
		check(err)
		check(unix.Madvise(memory, unix.MADV_NOHUGEPAGE)) // those are given back in no time
		for i := 0; i < len(memory); i += os.Getpagesize() {
			memory[i] = 1
		}
	}
	_, err = fmt.Fprintf(conns[1], "%d %t\n", os.Getpid(), IsChild())
	check(err)
	switch {
	case order == "exit":
		os.Exit(7)
	case strings.HasPrefix(order, "become another"):
		becomeAnother(addr, order)
	}
	select {}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// family is a parent that runs, and the other ends of its child's connections.
type family struct {
	t                  *testing.T
	reset, held, alone net.Conn
	pid                int
	code               chan int
}

func start(t *testing.T, order string) *family {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	f := &family{t: t, code: make(chan int, 1)}
	go func() {
		code, err := Run([]string{"child", l.Addr().String(), order})
		if err != nil {
			t.Error(err)
		}
		f.code <- code
	}()
	for _, conn := range []*net.Conn{&f.reset, &f.held, &f.alone} {
		*conn, err = l.Accept()
		require.NoError(t, err)
		require.NoError(t, (*conn).SetDeadline(time.Now().Add(patience)))
		t.Cleanup(func() { _ = (*conn).Close() })
	}
	said := make([]byte, 0, 32)
	for b := [1]byte{}; b[0] != '\n'; said = append(said, b[0]) {
		_, err := io.ReadFull(f.held, b[:])
		require.NoError(t, err)
	}
	number, child, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
	require.Equal(t, "false", child, "what the child starts is no child of its parent")
	f.pid, err = strconv.Atoi(number)
	require.NoError(t, err)
	return f
}

// ends checks what the other ends see of the end of the child.
func (f *family) ends(code int) {
	said, err := io.ReadAll(f.held)
	require.NoError(f.t, err)
	require.Equal(f.t, certificate, string(said))
	said, err = io.ReadAll(f.alone)
	require.NoError(f.t, err)
	require.Empty(f.t, said, "it was not handed over")
	_, err = io.ReadAll(f.reset)
	require.ErrorIs(f.t, err, syscall.ECONNRESET)
	require.Equal(f.t, code, <-f.code)
}

func TestADeadChildIsCertified(t *testing.T) {
	f := start(t, "wait")
	require.NoError(t, syscall.Kill(f.pid, syscall.SIGSTOP))
	require.NoError(t, f.held.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := f.held.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "a process that hangs is not dead")
	require.NoError(t, f.held.SetReadDeadline(time.Now().Add(patience)))
	require.NoError(t, syscall.Kill(f.pid, syscall.SIGKILL))
	f.ends(128 + int(syscall.SIGKILL))
}

func TestSignalsAndTheExitCodeArePassedOn(t *testing.T) {
	start(t, "exit").ends(7)
	f := start(t, "wait")
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	f.ends(128 + int(syscall.SIGTERM))
}

// TestADeathIsCertifiedBeforeTheMemoryIsGivenBack, which takes 25 ms and more here. The child
// gives it back after all other processes, so that its parent runs first on a busy machine, too.
// Once in twenty times something else holds the parent up for longer.
func TestADeathIsCertifiedBeforeTheMemoryIsGivenBack(t *testing.T) {
	for range 5 {
		if before := certifiedBefore(t); before > 0 {
			return
		}
	}
	t.Fatal("five times the certificate came after the end of the child")
}

// certifiedBefore is the time from a child's certificate to the end of its files.
func certifiedBefore(t *testing.T) time.Duration {
	f := start(t, "fill memory")
	certified := make(chan time.Time)
	go func() {
		_, _ = f.held.Read(make([]byte, len(certificate)))
		certified <- time.Now()
	}()
	threads, err := threadsOf(f.pid)
	require.NoError(t, err)
	for _, id := range threads {
		id, err := strconv.Atoi(id)
		require.NoError(t, err)
		require.NoError(t, unix.SchedSetAttr(id, &unix.SchedAttr{Policy: unix.SCHED_IDLE}, 0))
	}
	require.NoError(t, syscall.Kill(f.pid, syscall.SIGKILL))
	_, err = f.alone.Read(make([]byte, 1)) // the kernel closes the child's files
	closed := time.Now()
	require.ErrorIs(t, err, io.EOF)
	before := closed.Sub(<-certified)
	t.Logf("certified %v before its files were closed", before)
	require.Equal(t, 128+int(syscall.SIGKILL), <-f.code)
	return before
}

func TestALivingProcessHasMemory(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	require.False(t, hasNoMemory(os.Getpid()))
	require.False(t, hasNoMemory(cmd.Process.Pid))
	require.NoError(t, cmd.Process.Kill())
	dead := func() bool { return hasNoMemory(cmd.Process.Pid) }
	require.Eventually(t, dead, patience, time.Millisecond)
	require.Error(t, cmd.Wait())
	require.False(t, dead(), "a child without a directory may be hidden")
}
