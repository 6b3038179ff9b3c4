package limit

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsNoRegularFileIsRefusedAtOnce(t *testing.T) {
	dir := t.TempDir()
	fifo, socket := filepath.Join(dir, "fifo"), filepath.Join(dir, "socket")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	ln, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer ln.Close()
	for path, want := range map[string]string{
		fifo: "is no regular file, but a pipe", "/dev/zero": "is no regular file, but a device",
		dir: "is no regular file, but a directory", socket: "no such device or address",
	} {
		_, err := ReadFile(path, 10)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, want)
	}
	_, err = OpenFile(fifo, os.O_RDWR, 0)
	require.ErrorContains(t, err, "but a pipe")
}

func TestAFileIsReadUpToItsLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString(strings.Repeat("x", 10))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	text, err := ReadFile(path, 10)
	require.NoError(t, err)
	require.Len(t, text, 10)
	_, err = ReadFile(path, 9)
	require.ErrorContains(t, err, "is too large: at most 9 bytes are read")
	_, err = ReadFile(path+"x", 9)
	require.ErrorIs(t, err, os.ErrNotExist)
}
