package credentials_test

import (
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/credentials"
	"github.com/bmqelect/bmqelect/cluster/internal/gossip"
	"github.com/bmqelect/bmqelect/internal/base/certs"
)

// source is where a test's node has its credentials from.
type source struct {
	credentials.Set

	found string // what is wrong, as a finding says
}

func open(t *testing.T, s *source, read func() (credentials.Set, error)) *credentials.Newest {
	t.Helper()
	dir := t.TempDir()
	_, err := certs.Issue(dir, certs.DefaultCluster, []string{"a"}, 24*365*time.Hour)
	require.NoError(t, err)
	s.Certificate, s.Roots, err = certs.Load(filepath.Join(dir, "a"))
	require.NoError(t, err)
	c, err := credentials.Open(credentials.Config{
		Cluster: certs.DefaultCluster, Node: "a", Read: read, Log: hclog.NewNullLogger(),
		Found: func(why string) { s.found = why },
	})
	require.NoError(t, err)
	return c
}

// What is gone or wrong never ends encryption, and never lets in those whom the names keep out.
// The rest is taken.
func TestEachReloadKeepsWhatItMust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, plain := make([]byte, gossip.KeySize), []byte{}
		s := &source{}
		c := open(t, s, func() (credentials.Set, error) { return s.Set, nil })
		certificate := s.Certificate
		for _, step := range []struct {
			change       func()
			encryption   string
			names        int
			acceptsPlain time.Duration
			wrong        string
		}{
			{func() {}, "none", 0, 0, ""},
			{func() { s.GossipKeys = [][]byte{plain, key} }, "accepted", 0, 0, ""},
			{func() { s.GossipKeys = [][]byte{key, plain} }, "preferred", 0, 0, ""},
			{func() { s.GossipKeys = [][]byte{key} }, "required", 0, 0, ""},
			{func() { s.AcceptPlain = true }, "required", 0, time.Nanosecond, ""},
			{func() {}, "required", 0, time.Hour, ""},
			{func() { s.GossipKeys, s.AcceptPlain = nil, false }, "required", 0, 0, "file gossip.key"},
			{func() {}, "required", 0, 0, "write the word plain to stop encrypting"},
			{func() { s.GossipKeys = [][]byte{key[:16]} }, "required", 0, 0,
				"gossip key 0 has 16 bytes; want 32, or 0 for no encryption"},
			{func() { s.GossipKeys = [][]byte{plain} }, "none", 0, 0, ""},
			{func() { s.GossipKeys = nil }, "none", 0, 0, ""}, // it has no key to lose
			{func() { s.Names = []string{"a", "b"} }, "none", 2, 0, ""},
			{func() { s.Names, s.AcceptPlain = nil, true }, "none", 2, time.Nanosecond, "file names"},
			{func() { s.Certificate.Certificate = nil }, "none", 2, time.Hour, "a certificate or the roots"},
			{func() { s.Certificate, s.Names, s.AcceptPlain = certificate, []string{"a"}, false },
				"none", 1, 0, ""},
		} {
			step.change()
			err := c.Reload(nil)
			if step.wrong == "" {
				require.NoError(t, err)
				require.Empty(t, s.found)
			} else {
				require.ErrorIs(t, err, credentials.ErrUnusable)
				require.ErrorContains(t, err, step.wrong)
				require.Contains(t, s.found, `node "a" goes on with the certificate that ends at 2000-12-31`)
				require.Contains(t, s.found, step.wrong)
			}
			require.Equal(t, step.encryption, c.Gossip().Encryption())
			require.Len(t, c.Mesh().Names, step.names)
			time.Sleep(time.Nanosecond)
			accepts, since := c.AcceptsPlain()
			require.Equal(t, accepts, c.Mesh().AcceptPlain)
			require.Equal(t, step.acceptsPlain, since.Truncate(max(step.acceptsPlain, 1)))
			time.Sleep(time.Hour)
		}
	})
}

// A reload that read before the change of its files ends before another one reads.
func TestNobodyBringsOldCredentialsBack(t *testing.T) {
	var reloads sync.WaitGroup
	var c *credentials.Newest
	s, read := &source{}, 0
	c = open(t, s, func() (credentials.Set, error) {
		set := s.Set
		if read++; read == 2 {
			s.AcceptPlain = true
			reloads.Go(func() { _ = c.Reload(nil) })
			time.Sleep(20 * time.Millisecond) // more than the other reload would need
		}
		return set, nil
	})
	require.NoError(t, c.Reload(nil))
	reloads.Wait()
	require.True(t, c.Mesh().AcceptPlain)
}
