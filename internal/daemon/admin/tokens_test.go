package admin

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tokenFile writes a file of tokens.
func tokenFile(t *testing.T, text string, mode os.FileMode) (path string) {
	path = filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

func tokensOf(t *testing.T, text string) *Tokens {
	tokens, err := OpenTokens(tokenFile(t, text, 0o600))
	require.NoError(t, err)
	return tokens
}

func TestTokensHaveRoles(t *testing.T) {
	for text, want := range map[string][2]role{
		secret:                    {operate, nobody},
		secret + "\n":             {operate, nobody},
		"read " + secret + "\r\n": {read, nobody},
		"\nread " + secret + "\n\noperate\t" + another: {read, operate},
		"read " + secret + "\noperate " + secret:       {operate, nobody},
	} {
		tokens := tokensOf(t, text)
		require.Equal(t, want, [2]role{tokens.roleOf(secret), tokens.roleOf(another)}, "%q", text)
		require.Equal(t, nobody, tokens.roleOf(""))
		_, first, err := readTokens(tokens.path)
		require.NoError(t, err)
		require.Equal(t, secret, first, "that of a client")
	}
}

func TestTokensAreReadFromFilesThatAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"all may read":    {secret, 0o644, "other users of this machine can get at it (mode 0644); fix"},
		"all may write":   {secret, 0o602, "chmod 0600 "},
		"group may write": {secret, 0o660, "chmod 0600 "},
		"empty":           {"", 0o600, "line 1 must be 'read TOKEN', 'operate TOKEN', or TOKEN alone"},
		"short":           {"password", 0o600, "make one with: openssl rand -hex 32"},
		"no such role":    {secret + "\nadmin " + secret, 0o600, "line 2 must be"},
		"long":            {strings.Repeat("x", 4097), 0o600, "TOKEN is 16 to 4096 printable"},
		"three words":     {"correct horse battery", 0o600, "without spaces"},
		"not ASCII":       {"korrektes-pf\u00e4rdchen", 0o600, "ASCII"},
		"endless":         {string(make([]byte, 1<<21)), 0o600, "line 1 must be"},
	} {
		path := tokenFile(t, c.text, c.mode)
		_, err := OpenTokens(path)
		require.ErrorContains(t, err, "token file "+path, name)
		require.ErrorContains(t, err, c.want, name)
		require.NotContains(t, err.Error(), secret, name)
	}
	_, err := OpenTokens("/nowhere")
	require.ErrorContains(t, err, "token file: open /nowhere: no such file")
}

func TestTokensBeforeStayIfTheNewOnesAreWrong(t *testing.T) {
	tokens := tokensOf(t, secret)
	require.NoError(t, os.WriteFile(tokens.path, []byte("nonsense"), 0o600))
	require.Error(t, tokens.Reload())
	require.Equal(t, operate, tokens.roleOf(secret))
	require.NoError(t, os.WriteFile(tokens.path, []byte(another), 0o600))
	require.NoError(t, tokens.Reload())
	require.Equal(t, [2]role{nobody, operate}, [2]role{tokens.roleOf(secret), tokens.roleOf(another)})
}

// TestAFileWithoutTokensRevokesAll, and what needed one is not open by that.
func TestAFileWithoutTokensRevokesAll(t *testing.T) {
	for name, empty := range map[string]func(path string) error{
		"gone":        os.Remove,
		"empty":       func(path string) error { return os.Truncate(path, 0) },
		"blank lines": func(path string) error { return os.WriteFile(path, []byte("\n \n"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			tokens := tokensOf(t, secret)
			c := guardedBy(t, Config{Tokens: tokens}, nil)
			may := func() int {
				code, _ := request(t, c, "POST", "/v1/faults", "", "Authorization", "Bearer "+secret)
				return code
			}
			require.Equal(t, http.StatusOK, may())
			require.NoError(t, empty(tokens.path))
			require.ErrorContains(t, tokens.Reload(), "token file")
			require.True(t, tokens.Revoked())
			require.Equal(t, http.StatusUnauthorized, may())
			c.says(t, http.StatusUnauthorized, "", "POST", "/v1/faults", "")
			require.NoError(t, os.WriteFile(tokens.path, []byte(secret), 0o600))
			require.NoError(t, tokens.Reload())
			require.False(t, tokens.Revoked())
			require.Equal(t, http.StatusOK, may())
		})
	}
}
