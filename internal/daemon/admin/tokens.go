package admin

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"sync/atomic"

	"github.com/bmqelect/bmqelect/internal/base/limit"
)

// A token is 16 to 4096 printable ASCII characters without spaces.
const (
	minToken     = 16
	maxToken     = 4096
	maxTokenFile = 1 << 20 // bytes
)

var tokenLine = regexp.MustCompile(fmt.Sprintf(`^(?:(read|operate)\s+)?([!-~]{%d,})$`, minToken))

// Tokens are the tokens that a node accepts, from a file that may change while it runs: a line
// each, ROLE TOKEN, where ROLE is read or operate. A token without a role may operate. The
// methods are safe for concurrent use.
type Tokens struct {
	path   string
	newest atomic.Pointer[[]token]
}

type token struct {
	role role
	hash [sha256.Size]byte
}

// OpenTokens reads the file. The error says what is wrong and what would be right; it never
// contains a token.
func OpenTokens(path string) (*Tokens, error) {
	t := &Tokens{path: path}
	return t, t.Reload()
}

// errNoTokens is in the error if a file has no line.
var errNoTokens = errors.New("it has no token")

// Reload reads the file again. If the file is gone or has no token, all tokens are revoked. After
// any other error the tokens from before stay.
func (t *Tokens) Reload() error {
	all, _, err := readTokens(t.path)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoTokens) {
		t.newest.Store(&all)
	}
	return err
}

// Revoked reports whether all tokens are revoked.
func (t *Tokens) Revoked() bool { return len(*t.newest.Load()) == 0 }

// roleOf is the role that a token has; nobody if it is unknown. The time that it takes says
// nothing of how much of a token is right.
func (t *Tokens) roleOf(text string) (has role) {
	got := sha256.Sum256([]byte(text))
	for _, known := range *t.newest.Load() {
		if subtle.ConstantTimeCompare(got[:], known.hash[:]) == 1 {
			has = max(has, known.role)
		}
	}
	return has
}

// readTokens reads a file to which only its owner and readers of its group have access. A client
// sends the first token. With an error there are no tokens.
func readTokens(path string) (all []token, first string, err error) {
	file, err := limit.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, "", fmt.Errorf("token file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(file, maxTokenFile))
	}
	if err != nil {
		return nil, "", fmt.Errorf("token file: %w", err)
	}
	const foreign = fs.FileMode(0o027)
	if mode := info.Mode().Perm(); mode&foreign != 0 {
		return nil, "", fmt.Errorf("token file %s: other users of this machine can get at it (mode %04o); "+
			"fix it with: chmod 0600 %s", path, mode, path)
	}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSpace(line)
		match := tokenLine.FindSubmatch(line)
		switch {
		case len(line) == 0:
			continue
		case match == nil || len(match[2]) > maxToken:
			return nil, "", tokenError(path, number)
		}
		one := token{operate, sha256.Sum256(match[2])}
		if string(match[1]) == read.String() {
			one.role = read
		}
		all, first = append(all, one), cmp.Or(first, string(match[2]))
	}
	if len(all) == 0 {
		return nil, "", fmt.Errorf("%w: %w", tokenError(path, 1), errNoTokens)
	}
	return all, first, nil
}

func tokenError(path string, line int) error {
	return fmt.Errorf("token file %s: line %d must be 'read TOKEN', 'operate TOKEN', or TOKEN alone, "+
		"which may operate; TOKEN is %d to %d printable ASCII characters without spaces; make one "+
		"with: openssl rand -hex 32", path, line, minToken, maxToken)
}
