package admin

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

func TestElectionsArePausedAndResumed(t *testing.T) {
	node, c := serve(t, nil)
	leads(t, node)
	st, err := c.Tell(t.Context(), PauseRequest{For: "1h"})
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), st.PausedUntil,
		testkit.Limit(10*time.Second))
	code, text := request(t, c, "POST", "/v1/step-down", "")
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, text, "resume them, or transfer to a named node")
	st, err = c.Tell(t.Context(), ResumeRequest{})
	require.NoError(t, err)
	require.Zero(t, st.PausedUntil)
	for body, want := range map[string]int{
		`{}`: http.StatusBadRequest, `{"for": "1"}`: http.StatusBadRequest,
		`{"for": "25h"}`: http.StatusConflict, `{"for": "0s"}`: http.StatusConflict,
	} {
		code, text := request(t, c, "POST", "/v1/pause", body)
		require.Equal(t, want, code, text)
	}
}

func TestSettingsChangeAtRunTime(t *testing.T) {
	ln := listen(t)
	var out bytes.Buffer
	log := hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Info})
	node := start(t, t.TempDir(), ln, nil)
	_, err := node.Election("jobs", cluster.ElectionConfig{Priority: 2})
	require.NoError(t, err)
	c := open(t, Config{Node: node, Logger: log.Named("admin")}, ln)
	before := node.Status()
	for body, want := range map[string]string{
		`{}`:                                  "name priority, candidate or log_level",
		`{"log_level": "loud", "priority":9}`: "must be trace, debug, info, warn or error",
		`{"log_level": "off"}`:                "must be trace, debug, info, warn or error",
		`{"priority": 1.5}`:                   "priority",
		`{"prio": 1}`:                         "prio",
	} {
		code, text := request(t, c, "POST", "/v1/settings", body)
		require.Equal(t, http.StatusBadRequest, code)
		require.Contains(t, text, want)
	}
	require.Equal(t, before.Groups[0].Priority, node.Status().Groups[0].Priority)

	five, no := 5, false
	st, err := c.Tell(t.Context(), SettingsRequest{Priority: &five, Candidate: &no, LogLevel: "debug"})
	require.NoError(t, err)
	require.Len(t, st.Groups, 2)
	for _, g := range st.Groups {
		require.Equal(t, 5, g.Priority)
		require.False(t, g.Candidate)
	}
	require.True(t, log.IsDebug())
}

func TestAnObserverCannotBeMadeACandidate(t *testing.T) {
	ln := listen(t)
	node, err := cluster.Start(t.Context(), cluster.Config{
		Node: "o", Voters: []cluster.NodeID{"a"}, DataDir: t.TempDir(),
		GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0", AdminAddr: ln.Addr().String(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, node.Close(context.Background())) })
	c := open(t, Config{Node: node}, ln)
	code, text := request(t, c, "POST", "/v1/settings", `{"candidate": true}`)
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, text, "it has no vote")
}
