package health

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

// said is what a check of a probe says; "" if it passes.
func said(t *testing.T, p Probe, limit time.Duration) string {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := p.Check(ctx); err != nil {
		return err.Error()
	}
	return ""
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		require.Empty(t, said(t, Disk(dir), time.Minute))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "nothing stays")
	file := filepath.Join(dir, diskFile)
	require.NoError(t, os.WriteFile(file, []byte("of a process that was killed"), 0o600))
	require.Empty(t, said(t, Disk(dir), time.Minute))
	require.NoFileExists(t, file)
	require.NoError(t, os.Mkdir(file, 0o700))
	require.Contains(t, said(t, Disk(dir), time.Minute), "is a directory")
	require.Contains(t, said(t, Disk(filepath.Join(dir, "gone")), time.Minute), "no such file")
}

func TestURL(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			w.WriteHeader(http.StatusNoContent)
		case "/moved":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/down":
			http.Error(w, "queue is full\nsecond line", http.StatusServiceUnavailable)
		case "/silent":
			w.WriteHeader(http.StatusInternalServerError)
		case "/hangs":
			<-hang
		}
	}))
	defer server.Close()
	defer close(hang)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for path, want := range map[string]string{
		"/ok":     "",
		"/down":   "503 Service Unavailable: queue is full",
		"/silent": "500 Internal Server Error",
	} {
		require.Equal(t, want, said(t, URL(server.URL+path), time.Minute), path)
	}
	require.Contains(t, said(t, URL(server.URL+"/moved"), time.Minute), "302 Found",
		"where it leads to may be a page that always answers")
	require.Contains(t, said(t, URL(server.URL+"/hangs"), 50*time.Millisecond), "deadline")
	refused := said(t, URL("http://user:secret@"+closed.Addr().String()+"/x?key=secret"), time.Minute)
	require.Contains(t, refused, "refused")
	require.NotContains(t, refused, "secret")
}

func TestCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands of this test need sh")
	}
	for script, want := range map[string]string{
		"echo fine": "", "exit 3": "exit status 3",
		"echo first; echo lag is 40s >&2; exit 1": "lag is 40s",
		"echo $WORDS; exit 1":                     "of the environment",
		"sleep 60 & exit 0":                       "",
	} {
		p := Command(append(os.Environ(), "WORDS=of the environment"), "sh", "-c", script)
		require.Equal(t, want, said(t, p, testkit.Limit(30*time.Second)), script)
	}
	require.Contains(t, said(t, Command(nil, "no-such-command"), time.Minute), "not found")
	began := time.Now()
	require.NotEmpty(t, said(t, Command(nil, "sh", "-c", "sleep 60; true"), 100*time.Millisecond))
	require.Less(t, time.Since(began), testkit.Limit(30*time.Second), "all of its group is killed")
	require.Equal(t, strings.Repeat("x", 4096),
		said(t, Command(nil, "sh", "-c", "head -c 9999 /dev/zero | tr '\\0' x; exit 1"), time.Minute))
}
