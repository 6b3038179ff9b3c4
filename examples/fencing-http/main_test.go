package main

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

// TestTheLeaderWrites runs the resource, and a node that is alone and leads, as main does.
func TestTheLeaderWrites(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	ln, err := net.Listen("tcp", "127.0.0.1:0") // to know a port that is free
	require.NoError(t, err)
	addr, dir := ln.Addr().String(), t.TempDir()
	require.NoError(t, ln.Close())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for _, args := range [][]string{
		{"resource", "-addr", addr, "-file", filepath.Join(dir, "value.json")},
		{"node", "-data", dir + "/a", "-resource", "http://" + addr + "/value", "-every", "50ms"},
	} {
		go func() { ended <- run(ctx, args, hclog.NewNullLogger()) }()
	}
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + addr + "/value")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.Header.Get(tokenHeader) != "0.0"
	}, testkit.Limit(30*time.Second), 10*time.Millisecond, "the leader writes")
	stop()
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
	require.ErrorContains(t, run(ctx, nil, nil), `want "resource" or "node"`)
}
