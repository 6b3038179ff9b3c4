package admin

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"github.com/bmqelect/bmqelect/internal/base/limit"
)

// A token is 16 to 4096 printable ASCII characters without spaces.
const (
	minToken     = 16
	maxToken     = 4096
	maxTokenFile = 1 << 20 // bytes
)

// Tokens are those that a node accepts, from a file that may change while it runs: a line
// each, ROLE TOKEN, where ROLE is read or operate. A token alone may operate. The methods are
// safe for concurrent use.
type Tokens struct {
	path   string
	newest atomic.Pointer[[]token]
}

type token struct {
	role role
	hash [sha256.Size]byte
}

// OpenTokens reads the file. The error names it, what is wrong and what would be right, but
// never a token.
func OpenTokens(path string) (*Tokens, error) {
	t := &Tokens{path: path}
	return t, t.Reload()
}

// errNoTokens is in the error if a file has no line.
var errNoTokens = errors.New("it has no token")

// Reload reads the file again. On an error the tokens before stay, but if the file is gone or
// has none, all are revoked.
func (t *Tokens) Reload() error {
	lines, err := readTokens(t.path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoTokens) {
		t.newest.Store(new([]token))
	}
	if err != nil {
		return err
	}
	var all []token
	for _, line := range lines {
		all = append(all, token{line.role, sha256.Sum256([]byte(line.text))})
	}
	t.newest.Store(&all)
	return nil
}

// Revoked reports whether no token is accepted.
func (t *Tokens) Revoked() bool { return len(*t.newest.Load()) == 0 }

// roleOf is the role that a token has; nobody if there is none such. Hashes take as long to
// compare for a token that is nearly right as for any other, and all are compared.
func (t *Tokens) roleOf(text string) (has role) {
	got := sha256.Sum256([]byte(text))
	for _, known := range *t.newest.Load() {
		if subtle.ConstantTimeCompare(got[:], known.hash[:]) == 1 {
			has = max(has, known.role)
		}
	}
	return has
}

// tokenLine is a line of a token file.
type tokenLine struct {
	role role
	text string
}

// readToken returns the first token of a file: that of a client.
func readToken(path string) (string, error) {
	lines, err := readTokens(path)
	if err != nil {
		return "", err
	}
	return lines[0].text, nil
}

// readTokens reads a file that only its owner, and readers of its group, can get at.
func readTokens(path string) (lines []tokenLine, err error) {
	file, err := limit.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(file, maxTokenFile))
	}
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	const foreign = fs.FileMode(0o027)
	if mode := info.Mode().Perm(); mode&foreign != 0 {
		return nil, fmt.Errorf("token file %s: other users of this machine can get at it (mode %04o); "+
			"fix it with: chmod 0600 %s", path, mode, path)
	}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		words := strings.Fields(string(line))
		if len(words) == 0 {
			continue
		}
		one, ok := parseToken(words)
		if !ok {
			return nil, tokenError(path, number)
		}
		lines = append(lines, one)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%w: %w", tokenError(path, 1), errNoTokens)
	}
	return lines, nil
}

func tokenError(path string, line int) error {
	return fmt.Errorf("token file %s: line %d must be 'read TOKEN', 'operate TOKEN', or TOKEN alone, "+
		"which may operate; TOKEN is %d to %d printable ASCII characters without spaces; make one "+
		"with: openssl rand -hex 32", path, line, minToken, maxToken)
}

// parseToken reads the words of a line.
func parseToken(words []string) (line tokenLine, ok bool) {
	line = tokenLine{operate, words[len(words)-1]}
	switch {
	case len(words) > 2, len(words) == 2 && words[0] != read.String() && words[0] != operate.String():
		return line, false
	case len(words) == 2 && words[0] == read.String():
		line.role = read
	}
	invalid := strings.ContainsFunc(line.text, func(r rune) bool { return r <= ' ' || r > '~' })
	return line, len(line.text) >= minToken && len(line.text) <= maxToken && !invalid
}
