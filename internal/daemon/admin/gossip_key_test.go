package admin

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/certs"
)

// TestGossipKeysChangeStepByStep: the file has them, and no answer.
func TestGossipKeysChangeStepByStep(t *testing.T) {
	ln := listen(t)
	dir, key := t.TempDir(), certs.NewGossipKey().Text()
	c := open(t, Config{Node: start(t, t.TempDir(), ln, nil), TLSDir: dir},
		seemsAt{ln, socketAddr})
	for _, r := range []struct {
		step string
		code int
		want string // of the file, or of the answer
	}{
		{"use", http.StatusConflict, "does not have that key: add it first"},
		{"add", http.StatusOK, "plain\n" + key + "\n"},
		{"remove", http.StatusConflict, "encrypts with another key: use that one first"},
		{"use", http.StatusOK, key + "\nplain\n"},
		{"remove", http.StatusOK, key + "\n"},
	} {
		resp, text := exchange(t, c, "POST", "/v1/gossip-key", `{"step":"`+r.step+`","key":"`+key+`"}`)
		require.Equal(t, r.code, resp.StatusCode, text)
		require.NotContains(t, text, key)
		if r.code != http.StatusOK {
			require.Contains(t, text, r.want)
			continue
		}
		file, err := os.ReadFile(filepath.Join(dir, "gossip.key"))
		require.NoError(t, err)
		require.Equal(t, r.want, string(file))
	}
	file := filepath.Join(dir, "gossip.key")
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	c.says(t, http.StatusConflict, file+" is no regular file, but a directory",
		"POST", "/v1/gossip-key", `{"step":"add","key":"plain"}`)
}

// TestNoStepBeginsFromAFileThatIsGone: it would turn encryption off.
func TestNoStepBeginsFromAFileThatIsGone(t *testing.T) {
	ln := listen(t)
	issued, err := certs.Issue(t.TempDir(), cluster.DefaultCluster, []string{"a"}, time.Hour)
	require.NoError(t, err)
	dir := issued[0].Dir
	node := startWith(t, ln, func(c *cluster.Config) { c.TLS = cluster.TLSDir(dir) })
	c := open(t, Config{Node: node, TLSDir: dir}, seemsAt{ln, socketAddr})
	require.NoError(t, os.Remove(filepath.Join(dir, "gossip.key")))
	c.says(t, http.StatusConflict, "write the word plain to stop encrypting",
		"POST", "/v1/gossip-key", `{"step":"add","key":"`+certs.NewGossipKey().Text()+`"}`)
	require.NoFileExists(t, filepath.Join(dir, "gossip.key"))
	require.Equal(t, "required", node.Status().GossipEncryption)
}
