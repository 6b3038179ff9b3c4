package admin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

func TestWhatANodeRecordedOutlivesIt(t *testing.T) {
	dir := t.TempDir()
	ln := listen(t)
	node := start(t, dir, ln, nil)
	c := open(t, Config{Node: node, DataDir: dir}, ln)
	leads(t, node)
	require.Eventually(t, func() bool { // the recorder writes beside the node
		h, err := c.History(t.Context())
		require.NoError(t, err)
		return len(h.Leaderships) == 1 && h.Leaderships[0].Leader == "a"
	}, testkit.Limit(10*time.Second), time.Millisecond)
	before, err := c.Recording(t.Context())
	require.NoError(t, err)
	require.Equal(t, recording.Started, before.Records[0].Kind)
	require.Equal(t, []string{"a"}, before.Records[1].Setup.Voters)
	c.says(t, http.StatusOK, `"kind": "transition"`, "GET", "/v1/recording", "")

	require.NoError(t, node.Close(context.Background()))
	h, err := c.History(t.Context())
	require.NoError(t, err)
	require.Equal(t, "STOPPED", h.Leaderships[0].Reason)

	require.NoError(t, os.Remove(filepath.Join(dir, string(recording.History))))
	h, err = c.History(t.Context())
	require.NoError(t, err, "nothing is there")
	require.Empty(t, h.Leaderships)
	require.NoError(t, os.Mkdir(filepath.Join(dir, string(recording.History)), 0o700))
	_, err = c.History(t.Context())
	require.ErrorContains(t, err, "a directory")
	answer := httptest.NewRecorder()
	(&Server{}).getRecording(answer, nil)
	require.Equal(t, http.StatusServiceUnavailable, answer.Code, "it knows no directory")
}
