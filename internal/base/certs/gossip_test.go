package certs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// keysIn are the keys of a directory, by the letters that name them.
func keysIn(t *testing.T, dir string, letters map[string]string) string {
	t.Helper()
	keys, err := GossipKeys(dir)
	require.NoError(t, err)
	var all []string
	for _, key := range keys {
		if len(key) == 0 {
			all = append(all, key.Text())
		} else {
			all = append(all, letters[key.Text()])
		}
	}
	return strings.Join(all, " ")
}

// TestKeyOfGossipComesWithTheCA, and each node has it.
func TestKeyOfGossipComesWithTheCA(t *testing.T) {
	dir := t.TempDir()
	_, err := Issue(dir, "bees", []string{"n1"}, time.Hour)
	require.NoError(t, err)
	keys, err := GossipKeys(dir)
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.Len(t, keys[0], 32)
	_, err = Issue(dir, "", []string{"n2"}, time.Hour)
	require.NoError(t, err)
	for _, node := range []string{"n1", "n2"} {
		own, err := GossipKeys(filepath.Join(dir, node))
		require.NoError(t, err)
		require.Equal(t, keys, own)
	}

	require.NoError(t, os.Remove(filepath.Join(dir, "gossip.key")))
	_, err = Issue(dir, "", []string{"n3"}, time.Hour)
	require.NoError(t, err)
	require.NoFileExists(t, dir+"/n3/gossip.key",
		"a cluster whose gossip is not encrypted gets no key by a renewal")
	require.Empty(t, keysIn(t, dir+"/n3", nil))
	require.NoError(t, ChangeGossipKeys(dir+"/n3", GossipAdd, keys[0]))
	require.Equal(t, "plain A", keysIn(t, dir+"/n3", map[string]string{keys[0].Text(): "A"}))
}

// TestPKIForAMoveToTLS lets nodes speak plain.
func TestPKIForAMoveToTLS(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	require.NoError(t, AcceptPlain(dir))
	_, err := Issue(dir, "bees", []string{"n1"}, time.Hour)
	require.NoError(t, err)
	plain, err := AcceptsPlain(dir + "/n1")
	require.NoError(t, err)
	require.True(t, plain)
	require.Equal(t, "plain ", keysIn(t, dir+"/n1", nil), "plain, then a key")
}

// TestAMoveEndsForGood: a renewal lets no node accept members without TLS again. The list of
// names is for all nodes; one that a node alone has is left to it.
func TestAMoveEndsForGood(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	require.NoError(t, AcceptPlain(dir))
	require.NoError(t, os.WriteFile(dir+"/names", []byte("n1\n"), 0o600))
	_, err := Issue(dir, "bees", []string{"n1"}, time.Hour)
	require.NoError(t, err)
	for _, name := range []string{"accept-plain", "names"} {
		require.FileExists(t, filepath.Join(dir, "n1", name))
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	_, err = Issue(dir, "", nil, time.Hour)
	require.NoError(t, err)
	require.NoFileExists(t, dir+"/n1/accept-plain")
	require.FileExists(t, dir+"/n1/names")
	require.FileExists(t, dir+"/n1/gossip.key")
}

// TestRotation goes from one key to another, step by step.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	_, err := Issue(dir, "bees", []string{"n1", "n2"}, time.Hour)
	require.NoError(t, err)
	old, err := GossipKeys(dir)
	require.NoError(t, err)
	next, plain := NewGossipKey(), GossipKey{}
	letters := map[string]string{old[0].Text(): "A", next.Text(): "B"}
	for _, c := range []struct {
		step GossipStep
		key  GossipKey
		want string // an error, or the keys
	}{
		{"use", next, "does not have that key: add it first"},
		{"remove", next, "does not have that key: add it first"},
		{"add", next, "A B"},
		{"add", next, "A B"},
		{"remove", next, "encrypts with another key: use that one first"},
		{"use", next, "B A"},
		{"use", next, "B A"},
		{"remove", next, "B"},
		{"remove", next, "B"},
		{"add", plain, "B plain"},
		{"use", plain, "plain B"},
		{"remove", plain, "plain"},
		{"drop", plain, `step is "drop", but must be one of ["add" "use" "remove"]`},
	} {
		err := ChangeGossipKeys(dir+"/n1", c.step, c.key)
		if err != nil {
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), next.Text())
			continue
		}
		require.Equal(t, c.want, keysIn(t, dir+"/n1", letters), c.step)
	}
	for range maxGossipKeys - 1 {
		require.NoError(t, ChangeGossipKeys(dir, GossipAdd, NewGossipKey()))
	}
	require.ErrorContains(t, ChangeGossipKeys(dir, GossipAdd, NewGossipKey()), "has 8 keys")
}

// TestRotationOfWhatIsIssued: one that has stopped anywhere leads to the same key if repeated.
func TestRotationOfWhatIsIssued(t *testing.T) {
	dir := t.TempDir()
	_, err := Issue(dir, "bees", []string{"n1", "n2"}, time.Hour)
	require.NoError(t, err)
	old, err := GossipKeys(dir)
	require.NoError(t, err)
	next, again, err := NextGossipKey(dir)
	require.NoError(t, err)
	require.False(t, again)
	require.NotEqual(t, old[0], next)
	letters := map[string]string{old[0].Text(): "A", next.Text(): "B"}
	for _, c := range []struct {
		step  GossipStep
		key   GossipKey
		want  string
		again bool
	}{
		{"add", next, "A B", true}, {"add", next, "A B", true}, {"use", next, "A B", true},
		{"remove", next, "B", false}, {"remove", next, "B", false},
		{"add", GossipKey{}, "B plain", false}, {"use", GossipKey{}, "B plain", false},
		{"remove", GossipKey{}, "plain", false}, {"add", next, "plain B", true},
	} {
		require.NoError(t, ChangeIssuedGossipKeys(dir, c.step, c.key))
		for _, at := range []string{"", "/n1", "/n2"} {
			require.Equal(t, c.want, keysIn(t, dir+at, letters), "%s %s", c.step, at)
		}
		key, again, err := NextGossipKey(dir)
		require.NoError(t, err)
		require.Equal(t, c.again, again, c)
		require.Equal(t, c.again, key.Text() == next.Text(), c)
	}
	require.ErrorContains(t, ChangeIssuedGossipKeys(dir, "drop", next), `step is "drop"`)
}

// TestBadFileOfKeysIsExplained without showing what is in it.
func TestBadFileOfKeysIsExplained(t *testing.T) {
	key := NewGossipKey().Text()
	for text, want := range map[string]string{
		"":                      "line 1: it is neither 32 bytes in base64 nor the word",
		"\n\n":                  "line 1: it is neither",
		key + "\n" + key[:20]:   "line 2: it is neither",
		key[:43] + "\n" + key:   "line 1: it is neither",
		"plain text\n":          "line 1: it is neither",
		key + "\nc2hvcnQ=\n":    "line 2: it is neither",
		key + "\n\n" + key:      "line 2: it is neither",
		strings.Repeat("x", 50): "line 1: it is neither",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "gossip.key")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := GossipKeys(dir)
		require.ErrorContains(t, err, path+": "+want)
		require.NotContains(t, err.Error(), key[:10])
		require.Error(t, ChangeGossipKeys(dir, GossipAdd, NewGossipKey()))
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gossip.key"), []byte(key+"\n"), 0o600))
	require.NoError(t, os.Chmod(filepath.Join(dir, "gossip.key"), 0o644))
	_, err := GossipKeys(dir)
	require.ErrorContains(t, err, "gossip.key has the permissions 0644: want 0600")
}

func TestKeyIsNeverShown(t *testing.T) {
	key := NewGossipKey()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		require.Equal(t, "a gossip key", fmt.Sprintf(verb, key), verb)
	}
}

// FuzzParseGossipKey: what is a key is written as it was read, and an error shows nothing.
func FuzzParseGossipKey(f *testing.F) {
	f.Add("plain")
	f.Add(GossipKey(make([]byte, 32)).Text())
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParseGossipKey(text)
		if err == nil {
			require.Equal(t, strings.NewReplacer("\r", "", "\n", "").Replace(text), key.Text())
		} else {
			require.EqualError(t, err, `it is neither 32 bytes in base64 nor the word "plain"`)
		}
	})
}
