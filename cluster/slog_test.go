package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// slogged returns a logger on top of slog, and what it has written since the last call.
func slogged(level slog.Leveler) (hclog.Logger, func(t *testing.T) []map[string]any) {
	var out bytes.Buffer
	to := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level, AddSource: true}))
	return cluster.LoggerFromSlog(to), func(t *testing.T) (lines []map[string]any) {
		for text := range strings.Lines(out.String()) {
			var line map[string]any
			require.NoError(t, json.Unmarshal([]byte(text), &line))
			for key := range line {
				require.Equal(t, 1, strings.Count(text, fmt.Sprintf("%q:", key)), text)
			}
			lines = append(lines, line)
		}
		out.Reset()
		return lines
	}
}

func TestSlogGetsTheLinesWithTheirAttributes(t *testing.T) {
	log, written := slogged(slog.LevelInfo)
	mesh := log.With("node", "z").With("node", "a", "peer", "b").Named("mesh")
	mesh.Warn("odd", "error", errors.New("why"), "after", 2*time.Second, "peer", "c")
	mesh.Debug("left out")
	lines := written(t)
	require.Len(t, lines, 1)
	require.Contains(t, lines[0]["source"].(map[string]any)["file"], "slog_test.go")
	delete(lines[0], "source")
	delete(lines[0], "time")
	require.Equal(t, map[string]any{"level": "WARN", "msg": "odd", "node": "a", "logger": "mesh",
		"error": "why", "after": 2e9, "peer": "c"}, lines[0])

	require.Equal(t, "mesh", mesh.Name())
	require.Equal(t, "mesh.link", mesh.Named("link").Name())
	require.Equal(t, []any{"node", "a", "peer", "b"}, mesh.ImpliedArgs())
	require.False(t, mesh.IsDebug())
	require.True(t, mesh.IsInfo())
	require.Equal(t, hclog.Info, mesh.GetLevel())
}

func TestTheLevelOfSlogAndTheOwnOneBothCount(t *testing.T) {
	var level slog.LevelVar
	log, written := slogged(&level)
	level.Set(slog.LevelDebug - 4)
	log.Trace("t")
	require.Equal(t, "DEBUG-4", written(t)[0]["level"])
	require.True(t, log.IsTrace())
	named := log.Named("mesh")
	log.SetLevel(hclog.Error)
	named.Warn("left out")
	named.Log(hclog.Error, "e")
	require.Len(t, written(t), 1)
	require.Equal(t, hclog.Error, named.GetLevel())
	log.SetLevel(hclog.Off)
	named.Error("left out")
	require.Empty(t, written(t))
	require.Equal(t, hclog.Off, named.GetLevel())
}

func TestSlogGetsTheLinesOfStandardLoggers(t *testing.T) {
	log, written := slogged(slog.LevelDebug)
	log.StandardLogger(nil).Print("plain")
	log.StandardLogger(&hclog.StandardLoggerOptions{InferLevels: true}).Print("[ERR] read")
	log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}).Print("[::1]:80 forced")
	var got []any
	for _, line := range written(t) {
		got = append(got, line["level"], line["msg"])
	}
	require.Equal(t, []any{"INFO", "plain", "ERROR", "read", "DEBUG", "[::1]:80 forced"}, got)
}

// A node says through slog what it says through hclog.
func TestANodeLogsToSlog(t *testing.T) {
	log, written := slogged(slog.LevelInfo)
	node, err := cluster.Start(t.Context(), cluster.Config{
		Node: "a", Voters: []cluster.NodeID{"a"}, DataDir: t.TempDir(), Logger: log,
		GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0",
	})
	require.NoError(t, err)
	require.NoError(t, node.Close(context.WithoutCancel(t.Context())))
	var messages []any
	for _, line := range written(t) {
		messages = append(messages, line["msg"])
	}
	require.Contains(t, messages, "transition")
}
