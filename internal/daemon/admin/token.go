package admin

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/bmqelect/bmqelect/internal/base/regular"
)

// A token is 16 to 4096 printable ASCII characters without spaces.
const (
	minToken = 16
	maxToken = 4096
)

// ReadToken reads the token that a file holds, on a line of its own. The error
// names the file and says how to fix it, also if every user may read it.
func ReadToken(path string) (string, error) {
	file, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(file, maxToken+2))
	}
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return "", fmt.Errorf("token file %s: every user of this machine can get at it (mode %04o); "+
			"fix it with: chmod o= %s", path, mode, path)
	}
	token := strings.TrimRight(string(text), "\r\n")
	invalid := strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
	if len(token) < minToken || len(token) > maxToken || invalid {
		return "", fmt.Errorf(
			"token file %s: it must hold one line of %d to %d printable ASCII characters "+
				"without spaces; make one with: openssl rand -hex 32", path, minToken, maxToken)
	}
	return token, nil
}
