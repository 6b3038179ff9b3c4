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

func TestALeaderStepsDownAndRests(t *testing.T) {
	node, c := serve(t, nil)
	leads(t, node)
	st, err := c.Tell(t.Context(), StepDownRequest{For: "1h", Group: cluster.DefaultGroup})
	require.NoError(t, err)
	require.False(t, st.Groups[0].Leading)
	require.False(t, node.IsLeader())
	c.says(t, http.StatusConflict, cluster.ErrNotLeader.Error(), "POST", "/v1/step-down", "")
	_, err = c.Tell(t.Context(), StepDownRequest{For: "1ms"})
	require.NoError(t, err, "one that does not lead rests")
	require.Eventually(t, node.IsLeader, testkit.Limit(30*time.Second), 10*time.Millisecond,
		"the last word counts")
}

func TestANodeIsToldToForgetAnother(t *testing.T) {
	c := guardedBy(t, Config{}, socketAddr)
	st, err := c.Tell(t.Context(), ForgetRequest{Node: "b"})
	require.NoError(t, err, "nothing is known of it")
	require.Equal(t, "a", string(st.Node))
	for body, want := range map[string]string{
		`{"node": "a"}`: "that is this node",
		`{"node": "x"}`: "no member has that name",
		`{}`:            "no member has that name",
	} {
		c.says(t, http.StatusConflict, want, "POST", "/v1/forget", body)
	}
}

func TestElectionsArePausedAndResumed(t *testing.T) {
	node, c := serve(t, nil)
	leads(t, node)
	st, err := c.Tell(t.Context(), PauseRequest{For: "1h"})
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), st.PausedUntil,
		testkit.Limit(10*time.Second))
	c.says(t, http.StatusConflict, "resume them, or transfer to a named node",
		"POST", "/v1/step-down", "")
	st, err = c.Tell(t.Context(), ResumeRequest{})
	require.NoError(t, err)
	require.Zero(t, st.PausedUntil)
	for body, want := range map[string]int{
		`{}`: http.StatusBadRequest, `{"for": "1"}`: http.StatusBadRequest,
		`{"for": "25h"}`: http.StatusConflict, `{"for": "0s"}`: http.StatusConflict,
	} {
		c.says(t, want, "", "POST", "/v1/pause", body)
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
		c.says(t, http.StatusBadRequest, want, "POST", "/v1/settings", body)
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
	c.says(t, http.StatusConflict, "it has no vote", "POST", "/v1/settings", `{"candidate": true}`)
}
