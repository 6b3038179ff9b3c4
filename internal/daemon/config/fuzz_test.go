package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

// FuzzFile reads anything as a configuration: it ends soon, and what is wrong
// is the user's mistake.
func FuzzFile(f *testing.F) {
	f.Add([]byte("node: a\nvoters: [a, b]\nlease: 2s\n"))
	f.Add([]byte("a: &a [*a, *a]\n--- \n? [[[{}]]]: !!binary x\n"))
	f.Add([]byte("voters: [[[[[[["))
	path := filepath.Join(f.TempDir(), "config.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(path, text, 0o600))
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.String("node", "", "")
		flags.Duration("lease", 0, "")
		flags.StringSlice("voters", nil, "")
		began := time.Now()
		if err := ApplyFile(path, flags); err != nil {
			require.ErrorAs(t, err, new(UsageError))
			require.NotEmpty(t, err.Error())
		}
		require.Less(t, time.Since(began), testkit.Limit(10*time.Second))
	})
}
