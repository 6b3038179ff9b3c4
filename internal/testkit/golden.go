package testkit

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Golden requires that a file holds what was made: a generated page of the docs, or what a test
// once wrote. With the flag -rewrite or -update, whichever the package's tests have, it writes the
// file.
func Golden(t testing.TB, file, made string) {
	t.Helper()
	for _, name := range []string{"rewrite", "update"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() == "true" {
			require.NoError(t, os.WriteFile(file, []byte(made), 0o644))
		}
	}
	held, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(held), made, "%s is out of date: go test -run %s -rewrite, or -update",
		file, t.Name())
}
