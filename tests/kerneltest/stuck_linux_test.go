package kerneltest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/exec/supervisor"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// beStuck lets this process get stuck in exec after a line of input: exec closes its file, which is
// on a disk that hangs by then.
func beStuck(file string) {
	f, err := os.Create(file)
	if err == nil {
		_, err = f.WriteString("to be written at the close")
	}
	if err == nil {
		fmt.Println("ready")
		_, err = bufio.NewReader(os.Stdin).ReadByte()
	}
	if err == nil {
		err = syscall.Exec("/bin/sleep", []string{"sleep", "1"}, nil)
	}
	fmt.Fprintln(os.Stderr, "not stuck:", err)
	os.Exit(1)
}

// TestAProcessStuckInExecHoldsUpNoCommand: on Linux, a read of /proc/PID/stat of such a process
// blocks. That must not block the supervisor of another command.
func TestAProcessStuckInExecHoldsUpNoCommand(t *testing.T) {
	if missing != "" {
		t.Skip(missing)
	}
	if lack := lackingDisks(); lack != "" {
		t.Skip(lack)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	// begin starts a process of this test, and returns it with its standard input when it is ready.
	begin := func(env ...string) (*exec.Cmd, io.Writer) {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), env...)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err, "%v is not ready: %q", env, line)
		return cmd, in
	}
	dir := t.TempDir()
	storage, mount := filepath.Join(dir, "storage"), filepath.Join(dir, "disk")
	require.NoError(t, os.Mkdir(storage, 0o755))
	require.NoError(t, os.Mkdir(mount, 0o755))
	disk, _ := begin(envDisk+"="+mount, envDiskOf+"="+storage)
	t.Cleanup(func() { _ = exec.Command("umount", "-l", mount).Run() })

	stuck, in := begin(envStuck + "=" + filepath.Join(mount, "file"))
	require.NoError(t, disk.Process.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { _ = disk.Process.Signal(syscall.SIGCONT) })
	_, err = in.Write([]byte("\n"))
	require.NoError(t, err)
	read := make(chan struct{})
	go func() {
		defer close(read)
		time.Sleep(time.Second) // it is in exec by then
		_, _ = os.ReadFile("/proc/" + strconv.Itoa(stuck.Process.Pid) + "/stat")
	}()
	time.Sleep(2 * time.Second)
	select {
	case <-read:
		t.Skip("this kernel lets nobody wait for a process that is stuck in exec")
	default:
	}

	c, err := new(supervisor.Evidence).Start(supervisor.Config{
		Self: []string{"/proc/self/exe", "supervisor"}, Args: []string{"/bin/sh", "-c", "exit 3"},
		Env: os.Environ(), Deadline: func() time.Time { return time.Time{} },
		Margin: time.Second, Grace: time.Second, Started: func() {},
	})
	require.NoError(t, err)
	select {
	case <-c.Done():
		require.Equal(t, 3, c.Result().Code)
	case <-time.After(testkit.Limit(20 * time.Second)):
		require.Fail(t, "the command does not end")
	}
}
