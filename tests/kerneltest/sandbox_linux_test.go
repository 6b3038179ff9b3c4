package kerneltest

import (
	"github.com/bmqelect/bmqelect/internal/daemon/exec/supervisor"

	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The environment says which part a process of this test binary plays.
const (
	envInside  = "KERNELTEST_INSIDE" // the tests, in the sandbox
	envVoter   = "KERNELTEST_VOTER"  // a voter; the value is its configuration
	envProxy   = "KERNELTEST_PROXY"  // a proxy; the value is where it connects to, and
	envProxyAt = "KERNELTEST_AT"     // where it listens
	envDisk    = "KERNELTEST_DISK"   // a file system at this directory, of what lies in
	envDiskOf  = "KERNELTEST_OF"     // this one
	envCommand = "KERNELTEST_RUNS"   // a command of bmqnode exec
	envStuck   = "KERNELTEST_STUCK"  // a process that is to be stuck in exec, by this file
)

// missing is why the tests cannot run here; "" if they can.
var missing string

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(envVoter) != "":
		beVoter(os.Getenv(envVoter))
	case os.Getenv(envProxy) != "":
		beProxy(os.Getenv(envProxy))
	case os.Getenv(envDisk) != "":
		beDisk(os.Getenv(envDiskOf), os.Getenv(envDisk))
	case os.Getenv(envStuck) != "":
		beStuck(os.Getenv(envStuck))
	case len(os.Args) > 1 && os.Args[1] == "supervisor":
		os.Exit(supervisor.Main(os.Args[2:]))
	case os.Getenv(envCommand) != "":
		beCommand()
	case os.Getenv(envInside) != "":
		if err := prepare(); err != nil {
			fmt.Fprintln(os.Stderr, "cannot set the sandbox up:", err)
			os.Exit(1)
		}
	default:
		if missing = lacking(); missing == "" {
			os.Exit(enter())
		}
	}
	os.Exit(m.Run())
}

// lacking returns what the machine lacks for a sandbox.
func lacking() string {
	if os.Getuid() != 0 {
		return "needs root, for network namespaces and firewalls"
	}
	for _, tool := range []string{"ip", "ss", "nsenter", "iptables-restore"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "needs " + tool + " (packages iproute2, util-linux, iptables)"
		}
	}
	if err := sandboxed("true").Run(); err != nil {
		return "needs the right to make namespaces: " + err.Error()
	}
	if out, err := sandboxed("iptables-restore", "--test", "/dev/null").CombinedOutput(); err != nil {
		return fmt.Sprintf("needs iptables in network namespaces: %v: %s", err, out)
	}
	return ""
}

func sandboxed(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	return cmd
}

// enter runs the same tests again as the first process of a sandbox. When it ends, the kernel
// ends all others there.
func enter() int {
	runtime.LockOSThread() // or the end of the thread would kill the child
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := sandboxed(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), envInside+"="+strconv.Itoa(os.Getpid()))
	if err = cmd.Start(); err != nil {
		panic(err)
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-told
		_ = cmd.Process.Kill()
	}()
	err = cmd.Wait()
	_ = os.Remove(cgroup(strconv.Itoa(os.Getpid()))) // there is none, as a rule
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		panic(err)
	}
	return cmd.ProcessState.ExitCode()
}

// prepare gives the sandbox its own /proc, and a /run for the names of namespaces.
func prepare() error {
	return errors.Join(
		unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""),
		unix.Mount("tmpfs", "/run", "tmpfs", 0, ""),
		exec.Command("ip", "link", "set", "lo", "up").Run(),
	)
}

// cgroup is the memory control group (version 1) of the sandbox of that process.
func cgroup(outside string) string {
	return filepath.Join("/sys/fs/cgroup/memory", "bmqelect-kerneltest-"+outside)
}

// beProxy is a TCP proxy.
func beProxy(to string) {
	l, err := net.Listen("tcp", os.Getenv(envProxyAt))
	if err != nil {
		panic(err)
	}
	for {
		in, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			defer in.Close()
			out, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer out.Close()
			go func() {
				_, _ = io.Copy(out, in)
				_ = out.(*net.TCPConn).CloseWrite()
			}()
			_, _ = io.Copy(in, out)
		}()
	}
}
