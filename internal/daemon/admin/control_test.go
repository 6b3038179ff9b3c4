package admin

import (
	"net/http"
	"testing"
	"time"

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
	code, _ := request(t, c, "GET", "/v1/leader", "")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.False(t, node.IsLeader())

	code, text := request(t, c, "POST", "/v1/step-down", "")
	require.Equal(t, http.StatusConflict, code, text)
	require.Contains(t, text, cluster.ErrNotLeader.Error())
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
		code, text := request(t, c, "POST", "/v1/forget", body)
		require.Equal(t, http.StatusConflict, code)
		require.Contains(t, text, want)
	}
}
