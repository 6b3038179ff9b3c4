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

// TestTheLeaderWrites runs the program with a node that is alone, and leads.
func TestTheLeaderWrites(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	table, err := open(t.Context(), file)
	require.NoError(t, err)
	defer table.db.Close()

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-db", file}, hclog.NewNullLogger()) }()
	require.Eventually(t, func() bool {
		_, fence, err := table.Read(t.Context(), row)
		return err == nil && fence != lsn.LSN{}
	}, testkit.Limit(30*time.Second), 10*time.Millisecond)
	stop()
	require.NoError(t, <-ended)
	value, fence, err := table.Read(t.Context(), row)
	require.NoError(t, err)
	require.Equal(t, "written in term "+fence.Term.String(), value)
}

// TestARefusalTellsBothTokens lets a leader find that a newer one has written.
func TestARefusalTellsBothTokens(t *testing.T) {
	refused := regexp.MustCompile(`refused: a newer leader has written: node=a token=.* newest=6\.1`)
	var log testkit.Buffer
	file := filepath.Join(t.TempDir(), "test.db")
	table, err := open(t.Context(), file)
	require.NoError(t, err)
	defer table.db.Close()
	require.NoError(t, table.Write(t.Context(), at(6, 1), row, "by the new leader"))

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-db", file},
			hclog.New(&hclog.LoggerOptions{Output: &log}))
	}()
	require.Eventually(t, func() bool {
		return refused.MatchString(log.String())
	}, testkit.Limit(30*time.Second), 10*time.Millisecond)
	stop()
	require.NoError(t, <-ended)
	requireRow(t, table, "by the new leader", at(6, 1))
}
