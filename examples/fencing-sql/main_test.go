package main

import (
	"context"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/lsn"
)

// runAlone runs the program with one node, which leads, until done returns true.
func runAlone(t *testing.T, file string, log hclog.Logger, done func() bool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-db", file}, log) }()
	require.Eventually(t, done, testkit.Limit(30*time.Second), 10*time.Millisecond)
	stop()
	require.NoError(t, <-ended)
}

func TestTheLeaderWrites(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	table := openTable(t, file)
	runAlone(t, file, hclog.NewNullLogger(), func() bool {
		_, fence, err := table.Read(t.Context(), row)
		return err == nil && fence != lsn.LSN{}
	})
	value, fence, err := table.Read(t.Context(), row)
	require.NoError(t, err)
	require.Equal(t, "written in term "+fence.Term.String(), value)
}

// TestARefusalTellsBothTokens lets a leader find that a newer one has written.
func TestARefusalTellsBothTokens(t *testing.T) {
	refused := regexp.MustCompile(`refused: a newer leader has written: node=a token=.* newest=6\.1`)
	var log testkit.Buffer
	file := filepath.Join(t.TempDir(), "test.db")
	table := openTable(t, file)
	require.NoError(t, table.Write(t.Context(), at(6, 1), row, "by the new leader"))
	runAlone(t, file, hclog.New(&hclog.LoggerOptions{Output: &log}),
		func() bool { return refused.MatchString(log.String()) })
	requireRow(t, table, "by the new leader", at(6, 1))
}
