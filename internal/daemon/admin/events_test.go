package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// diary is a stream that notes what it is told.
type diary struct {
	Stream
	events []Event
	resets []Reset
}

func newDiary(after string) *diary {
	d := &diary{Stream: Stream{After: after}}
	d.Event = func(e Event) { d.events = append(d.events, e) }
	d.Reset = func(r Reset) { d.resets = append(d.resets, r) }
	return d
}

func TestANewReaderBeginsWithThePresentState(t *testing.T) {
	node, c := serve(t, nil)
	leads(t, node)
	resp, err := c.send(t.Context(), http.MethodGet, "/v1/events", nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	var first []string
	for lines.Scan() && lines.Text() != "" {
		first = append(first, lines.Text())
	}
	require.Len(t, first, 3)
	require.Regexp(t, "^id: 1\\.[0-9a-f]{8}-[0-9]+$", first[0])
	require.Equal(t, "event: status", first[1])
	var st cluster.Status
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(first[2], "data: ")), &st))
	require.Equal(t, "LEADER", st.Groups[0].Role)
	require.Equal(t, "http://a.example", st.Groups[0].LeaderMeta)

	// It may have led before the journal began, so it is to lead once more.
	require.NoError(t, node.Default().StepDown(t.Context(), 0))
	leads(t, node)
	require.NoError(t, node.Close(t.Context()))
	boot, _, _ := strings.Cut(strings.TrimPrefix(first[0], "id: "), "-")
	_, text := exchange(t, c, "GET", "/v1/events?after="+boot+"-0", "")
	require.NotContains(t, text, "event: status", "who comes back has it")
	require.Contains(t, text, `"leader":"a","leader_meta":"http://a.example"`)
}

// placeOf is the id with which a stream begins.
func placeOf(t *testing.T, c *Client) string {
	resp, err := c.send(t.Context(), http.MethodGet, "/v1/events", nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	require.NoError(t, err)
	id, ok := strings.CutPrefix(line, "id: ")
	require.True(t, ok, line)
	return strings.TrimSpace(id)
}

// TestAReaderThatComesBackMissesNothing opens an election while nobody reads.
func TestAReaderThatComesBackMissesNothing(t *testing.T) {
	node, c := serve(t, nil, "b", "c")
	d := newDiary(placeOf(t, c))
	e, err := node.Election("jobs", cluster.ElectionConfig{})
	require.NoError(t, err)
	require.NoError(t, e.Close(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit(10*time.Second))
	note := d.Event
	d.Event = func(e Event) {
		note(e)
		if e.Group == "jobs" && e.Reason == "STOPPED" {
			cancel()
		}
	}
	require.ErrorIs(t, c.Follow(ctx, &d.Stream), context.Canceled)
	require.Equal(t, "STARTED", d.events[0].Reason)

	resumed := len(d.events)
	require.NoError(t, node.Close(t.Context()))
	require.NoError(t, c.Follow(t.Context(), &d.Stream), "the stream ends with the node")
	require.Len(t, d.events, resumed+1, "each once")
	last := d.events[resumed]
	require.Equal(t, []string{"a", "default", "DORMANT", "STOPPED"},
		[]string{string(last.Node), last.Group, last.To, last.Reason})
	require.Empty(t, d.resets)
}

func TestAReaderFromBeforeIsToldThatEventsAreGone(t *testing.T) {
	_, c := serve(t, nil, "b", "c")
	d := newDiary("1.0badcafe-7")
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit(10*time.Second))
	note := d.Reset
	d.Reset = func(r Reset) { note(r); cancel() }
	require.ErrorIs(t, c.Follow(ctx, &d.Stream), context.Canceled)
	require.Equal(t, `"1.0badcafe-7" is not of this start of node a: events before it are gone`,
		d.resets[0].Reason)
	require.Equal(t, cluster.NodeID("a"), d.resets[0].Status.Node)
	require.NotEmpty(t, d.resets[0].Status.Groups)
	require.NotEqual(t, "1.0badcafe-7", d.After, "from here it goes on")
	require.True(t, strings.HasPrefix(d.After, "1."))
}

// Every reader has the newest record of each election, whenever it came, and the steps of changes.
func TestAReaderIsToldOfRecordsAndVoters(t *testing.T) {
	node, c := serve(t, nil)
	leads(t, node)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit(10*time.Second))
	publish := func() {
		_, err := node.Default().Publish(t.Context(), []byte("x"), cluster.PublishOptions{})
		require.NoError(t, err)
	}
	publish()
	var records []RecordEvent
	var steps []VotersEvent
	s := Stream{
		Record: func(e RecordEvent) {
			records = append(records, e)
			if len(records) == 1 {
				publish()
				return
			}
			require.NoError(t, c.ChangeVoters(ctx, VotersRequest{Add: "a"}, func(cluster.VoterStep) {}))
			require.NoError(t, c.ChangeVoters(ctx, VotersRequest{Add: "a", DryRun: true},
				func(cluster.VoterStep) {}))
		},
		Voters: func(e VotersEvent) {
			steps = append(steps, e)
			require.NoError(t, node.Default().StepDown(ctx, 0))
		},
		Event: func(Event) { cancel() },
	}
	require.ErrorIs(t, c.Follow(ctx, &s), context.Canceled)
	require.Len(t, records, 2)
	require.Len(t, steps, 1)
	require.Equal(t, cluster.NodeID("a"), records[1].Leader)
	require.True(t, records[0].Record.Committed.Less(records[1].Record.Committed))
	require.Equal(t, 1, records[1].Record.ValueSize)
	require.Equal(t, cluster.VoterStep{Group: "default", Text: "a is a voter", Done: true},
		steps[0].VoterStep)

	rec, err := c.Record(t.Context(), "default", false)
	require.NoError(t, err)
	require.Equal(t, "x", string(rec.Value))
	require.Equal(t, records[1].Record.Voters, rec.Voters)
	ctx, cancel = context.WithTimeout(t.Context(), testkit.Limit(10*time.Second))
	again := Stream{After: s.After, Record: func(e RecordEvent) { cancel() }}
	require.ErrorIs(t, c.Follow(ctx, &again), context.Canceled, "without a new one, too")
}

func TestErrorsOfTheRecordHaveTheirStatus(t *testing.T) {
	for err, want := range map[error]int{
		cluster.ErrClosed: 503, cluster.ErrNotLeader: 503, context.Canceled: 503,
		cluster.ErrUnknown: 504, context.DeadlineExceeded: 504, cluster.ErrConflict: 412,
		cluster.ErrRefused: 409, errOneChange: 400,
	} {
		require.Equal(t, want, statusOf(fmt.Errorf("so: %w", err)), err)
	}
}

// TestAReaderThatIsTooSlowIsToldSo reads from a journal that has moved on.
func TestAReaderThatIsTooSlowIsToldSo(t *testing.T) {
	var out strings.Builder
	w := responseTo{&out}
	o := &stream{w: w, control: http.NewResponseController(w), journal: newTestJournal(
		3 * journalSize), status: func() cluster.Status { return cluster.Status{Node: "a"} }}
	o.begin("3.9f86d081-5")
	o.forward()
	require.Contains(t, out.String(), "id: 3.9f86d081-3072\nevent: reset\n")
	require.Contains(t, out.String(),
		`"reason":"events after \"3.9f86d081-5\" are gone: only the newest are kept"`)
	require.NotContains(t, out.String(), "event: transition")
	o.journal.add(cluster.Event{Group: "g"})
	o.forward()
	require.Contains(t, out.String(), "id: 3.9f86d081-3073\nevent: transition\n")
}

// responseTo writes a body to a string.
type responseTo struct{ *strings.Builder }

func (responseTo) Header() http.Header { return http.Header{} }
func (responseTo) WriteHeader(int)     {}

// TestABrowsersHeaderCountsBeforeItsAddress: when it reconnects, it repeats the
// address of the first time.
func TestABrowsersHeaderCountsBeforeItsAddress(t *testing.T) {
	node, c := serve(t, nil, "b", "c")
	first := placeOf(t, c)
	require.NoError(t, node.Close(t.Context())) // the stream ends with the node, and has an event
	_, text := exchange(t, c, "GET", "/v1/events?after="+first, "")
	require.Contains(t, text, "event: transition\n")
	require.NotContains(t, text, "event: reset\n")
	_, text = exchange(t, c, "GET", "/v1/events?after="+first, "", "Last-Event-ID", "1.x-1")
	require.Contains(t, text, "event: reset\n")
	resp, text := exchange(t, c, "HEAD", "/v1/events", "")
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	require.Empty(t, text)
}

func TestAStreamThatIsNoneIsAnError(t *testing.T) {
	s := newDiary("")
	require.ErrorContains(t, s.read(strings.NewReader("id: 1-1\nevent: transition\ndata: {\n\n"),
		func() {}), `transition "1-1": unexpected EOF`)
	require.Empty(t, s.After, "what was not understood was not seen")
	require.NoError(t, s.read(strings.NewReader(
		": alive\n\nid: 1-2\n\nevent: news\ndata: 7\n\nid: 1-3\nevent: cut off"), func() {}))
	require.Equal(t, "1-2", s.After)
	require.Empty(t, s.events)
}

func TestTooManyStreamsAreRefused(t *testing.T) {
	_, c := serve(t, nil, "b", "c")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for range maxStreams {
		ready := make(chan struct{})
		go func() {
			ended <- c.Follow(ctx, &Stream{Ready: func() { close(ready) },
				Event: func(Event) {}})
		}()
		<-ready
	}
	c.says(t, http.StatusOK, "", "GET", "/v1/status", "") // other requests are answered
	resp, text := exchange(t, c, "GET", "/v1/events", "")
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.NotEmpty(t, resp.Header.Get("Retry-After"))
	require.Contains(t, text, "which is the limit")
	cancel()
	for range maxStreams {
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	require.Eventually(t, func() bool {
		resp, _ := exchange(t, c, "HEAD", "/v1/events", "")
		return resp.StatusCode == http.StatusOK
	}, testkit.Limit(10*time.Second), 10*time.Millisecond, "there is room again")
}
