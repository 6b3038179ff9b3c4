package admin

import (
	"bytes"
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
	_, err = c.Tell(t.Context(), StepDownRequest{For: "1ms"})
	require.NoError(t, err, "one that does not lead rests")
	require.Eventually(t, node.IsLeader, testkit.Limit(30*time.Second), 10*time.Millisecond,
		"the last word counts")
}

func TestANodeIsToldToForgetAnother(t *testing.T) {
	st, err := guardedBy(t, Config{}, socketAddr).Tell(t.Context(), ForgetRequest{Node: "b"})
	require.NoError(t, err, "nothing is known of it")
	require.Equal(t, "a", string(st.Node))
}

func TestElectionsArePausedAndResumed(t *testing.T) {
	node, c := serve(t, nil)
	leads(t, node)
	st, err := c.Tell(t.Context(), PauseRequest{For: "1h"})
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), st.PausedUntil,
		testkit.Limit(10*time.Second))
	st, err = c.Tell(t.Context(), ResumeRequest{})
	require.NoError(t, err)
	require.Zero(t, st.PausedUntil)
}

func TestSettingsChangeAtRunTime(t *testing.T) {
	ln := listen(t)
	var out bytes.Buffer
	log := hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Info})
	node := start(t, t.TempDir(), ln, nil)
	_, err := node.Election("jobs", cluster.ElectionConfig{Priority: 2})
	require.NoError(t, err)
	c := open(t, Config{Node: node, Logger: log.Named("admin")}, ln)
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
