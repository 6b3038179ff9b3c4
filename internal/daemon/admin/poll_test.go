package admin

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// awaited is how long a request waits, in virtual time, for something newer than
// place in the group g, while events come every second.
func awaited(t *testing.T, place uint64, wait time.Duration, groups ...string) (waited time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{journal: newTestJournal(5)}
		went := make(chan struct{})
		go func() {
			for _, group := range groups {
				select {
				case <-time.After(time.Second):
					s.journal.add(cluster.Event{Group: group})
				case <-went:
				}
			}
		}()
		began := time.Now()
		s.await(t.Context(), "g", place, wait)
		waited = time.Since(began)
		close(went)
	})
	return waited
}

func TestARequestWaitsForSomethingNewer(t *testing.T) {
	require.Zero(t, awaited(t, 4, time.Minute), "there is something newer")
	require.Equal(t, time.Minute, awaited(t, 5, time.Minute), "nothing comes")
	require.Equal(t, time.Second, awaited(t, 5, time.Minute, "g"))
	require.Equal(t, 3*time.Second, awaited(t, 5, time.Minute, "x", "x", "g"), "other elections do not count")
	require.Equal(t, 2*time.Second, awaited(t, 5, 2*time.Second, "x", "x", "x", "g"), "nor do they make it wait for longer")
}

func TestAQuietElectionDoesNotWakeForOthers(t *testing.T) {
	busy := make([]string, 3*journalSize)
	for i := range busy {
		busy[i] = "x"
	}
	require.Equal(t, time.Hour, awaited(t, 5, time.Hour, busy...), "though all that it has seen is gone meanwhile")
}

func TestARequestDoesNotWaitForWhatIsGone(t *testing.T) {
	s := &Server{journal: newTestJournal(3 * journalSize)}
	s.await(t.Context(), "x", 5, time.Hour)
	ended, source := newTestJournal(5), make(chan cluster.Event)
	close(source)
	ended.keep(source)
	(&Server{journal: ended}).await(t.Context(), "x", 5, time.Hour)
}

func TestARequestWaitsNoLongerThanItsSender(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	(&Server{journal: newTestJournal(5)}).await(ctx, "g", 5, time.Hour)
}

// TestALongPollAnswersAtTheChange uses a real node: an election that is opened
// is a change.
func TestALongPollAnswersAtTheChange(t *testing.T) {
	node, c := serve(t, nil, "b", "c") // nothing happens by itself
	waits := map[string]string{"/v1/status": "5m", "/v1/elections": "5m", "/v1/elections/default": "50ms", "/v1/leader": "50ms"}
	resp, _ := exchange(t, c, "GET", "/v1/status?wait=5m", "") // nothing to wait for yet
	index, answered := resp.Header.Get(indexHeader), make(chan string, len(waits))
	for path, wait := range waits {
		go func() {
			resp, _ := exchange(t, c, "GET", path+"?wait="+wait+"&index="+index, "")
			answered <- resp.Header.Get(indexHeader)
		}()
	}
	_, err := node.Election("jobs", cluster.ElectionConfig{})
	require.NoError(t, err)
	for range waits {
		select {
		case <-answered:
		case <-time.After(30 * time.Second):
			require.Fail(t, "it still waits, though there is something newer, or the time is over")
		}
	}
	resp, _ = exchange(t, c, "GET", "/v1/status?wait=5m&index="+index, "")
	require.NotEqual(t, index, resp.Header.Get(indexHeader))
}

func TestAnIndexOfAnotherBootAnswersAtOnce(t *testing.T) {
	dir := t.TempDir()
	ln, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	node := start(t, dir, ln, nil, "b", "c")
	c := open(t, Config{Node: node}, ln)
	resp, _ := exchange(t, c, "GET", "/v1/status", "")
	before := resp.Header.Get(indexHeader)
	require.NoError(t, node.Close(t.Context()))

	ln, err = Listen("127.0.0.1:0")
	require.NoError(t, err)
	c = open(t, Config{Node: start(t, dir, ln, nil, "b", "c")}, ln)
	for _, index := range []string{before, "17", "nonsense", ""} {
		resp, _ = exchange(t, c, "GET", "/v1/status?wait=5m&index="+index, "")
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.NotEqual(t, before, resp.Header.Get(indexHeader))
	}
}

func TestACrowdIsTurnedAway(t *testing.T) {
	_, c := serve(t, nil, "b", "c")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for range maxWaiting {
		ready := make(chan struct{})
		go func() { ended <- c.Follow(ctx, &Stream{Ready: func() { close(ready) }}) }()
		<-ready
	}
	resp, _ := exchange(t, c, "GET", "/v1/status", "")
	require.Equal(t, http.StatusOK, resp.StatusCode, "who does not wait is served")
	index := resp.Header.Get(indexHeader)
	for _, path := range []string{"/v1/events", "/v1/leader?index=" + index} {
		resp, text := exchange(t, c, "GET", path, "")
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		require.NotEmpty(t, resp.Header.Get("Retry-After"))
		require.Contains(t, text, "which is the limit")
	}
	cancel()
	for range maxWaiting {
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	require.Eventually(t, func() bool {
		resp, _ := exchange(t, c, "GET", "/v1/leader?wait=1ms&index="+index, "")
		return resp.Header.Get(indexHeader) != ""
	}, 10*time.Second, 10*time.Millisecond, "there is room again")
}
