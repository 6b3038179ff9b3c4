package store

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// Identity, peers, emergencies and boot can be read while the disk hangs.
func TestReadersDoNotWaitForADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang, release := false, make(chan struct{})
		s, err := OpenOn(filepath.Join(t.TempDir(), "a"), Owner{"c", "a"},
			func(write func() error) error {
				if hang {
					<-release
				}
				return write()
			})
		require.NoError(t, err)
		_, err = s.Group("g")
		require.NoError(t, err)
		hang = true
		written := make(chan error)
		go func() { written <- s.Persist(exact{"g": 7}.terms()) }()
		synctest.Wait()
		read := make(chan uint64, 1)
		go func() { s.Identity(); s.Peers(); s.Emergencies(); read <- s.Boot() }()
		require.EqualValues(t, 1, <-read)
		close(release)
		require.NoError(t, <-written)
		require.NoError(t, s.Close())
	})
}
