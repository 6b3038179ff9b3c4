package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/base/recording"
)

// aloneRecorder is a recorder without a node.
func aloneRecorder(t *testing.T, found func(string)) (r *recorder, dir string) {
	dir = t.TempDir()
	return &recorder{
		all: recording.New(dir, recording.Recording), history: recording.New(dir, recording.History),
		node: "a", boot: 3, dir: dir, found: found, records: make(chan recording.Record, recorderRoom),
		done: make(chan struct{}),
	}, dir
}

func TestTheHistoryOutlivesANoisyNight(t *testing.T) {
	r, dir := aloneRecorder(t, nil)
	r.write(&recording.Record{Kind: recording.Started, Age: 0})
	r.write(&recording.Record{Kind: recording.Transition, Group: "g", To: "LEADER", Leader: "a",
		Term: 7, Reason: "ELECTED", Age: 1})
	for n := range 20_000 {
		r.write(&recording.Record{Kind: recording.LinkDown, Peer: "b", Why: "timeout",
			Age: float64(n + 2)})
	}
	records, _, err := recording.Read(dir, recording.Recording)
	require.NoError(t, err)
	require.Less(t, len(records), 20_000, "the recording has turned")
	records, _, err = recording.Read(dir, recording.History)
	require.NoError(t, err)
	led := recording.Leaderships(records)
	require.Len(t, led, 1)
	require.EqualValues(t, 7, led[0].Term)
	require.Zero(t, r.lost.Load())
}

func TestADiskThatIsSlowOrRefusesCostsRecordsOnly(t *testing.T) {
	var said string
	r, dir := aloneRecorder(t, func(why string) { said = why })
	n := &Node{recorder: r, started: time.Now()}
	for range recorderRoom + 44 { // nobody writes, and nobody waits
		n.record(recording.Record{Kind: recording.Held})
	}
	require.EqualValues(t, 44, r.lost.Load())
	require.NoError(t, os.Mkdir(filepath.Join(dir, string(recording.Recording)), 0o700))
	quit := make(chan struct{})
	close(quit)
	r.run(quit)
	require.EqualValues(t, recorderRoom+44, r.lost.Load())
	require.Contains(t, said, "it cannot record what happens")
	require.Contains(t, said, string(recording.Recording))
}

// TestADiskThatTakesNothingIsFound before anything happens, and also when it takes files again.
func TestADiskThatTakesNothingIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := leadsAlone(t)
		obstacle := filepath.Join(n.cfg.DataDir, roomFile)
		require.Empty(t, n.Status().Findings)
		require.NoError(t, os.MkdirAll(filepath.Join(obstacle, "full"), 0o700))
		time.Sleep(roomEvery)
		synctest.Wait()
		found := n.Status().Findings
		require.Len(t, found, 1)
		require.Equal(t, findings.DiskFails, found[0].Kind)
		require.Contains(t, found[0].Detail, obstacle)
		require.True(t, n.IsLeader(), "elections go on")
		require.NoError(t, os.RemoveAll(obstacle))
		time.Sleep(roomEvery)
		synctest.Wait()
		require.Empty(t, n.Status().Findings)
		require.NoFileExists(t, obstacle)
	})
}

// The heartbeat path records nothing, and a node writes down its own life.
func TestANodeRecordsItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := leadsAlone(t)
		require.NoError(t, n.Default().StepDown(t.Context(), 5*time.Second))
		require.NoError(t, n.Default().SetFit(os.ErrClosed))
		synctest.Wait() // the driver takes the newest alone of what waits
		require.NoError(t, n.Default().SetFit(nil))
		n.call(func() { n.rested = n.age(); n.held(2 * time.Second); n.held(time.Millisecond) })
		meshHandler{n}.LinkDown("b", 1)
		time.Sleep(time.Minute)
		require.True(t, n.IsLeader())
		require.NoError(t, n.Close(context.Background()))

		records, damaged, err := recording.Read(n.cfg.DataDir, recording.Recording)
		require.NoError(t, err)
		require.Zero(t, damaged)
		var told []string
		for _, r := range records {
			require.EqualValues(t, "a", r.Node)
			require.EqualValues(t, 1, r.Boot)
			told = append(told, strings.TrimSpace(string(r.Kind)+" "+r.Reason+r.Why))
		}
		require.Equal(t, []string{"started", "opened", "transition STARTED", "transition PROPOSED",
			"transition ELECTED", "step-down", "transition RESIGNED", "unfit", "fit", "held",
			"link-down eof", "transition PROPOSED", "transition ELECTED", "transition STOPPED", "ended",
		}, told)
		setup := records[1].Setup
		require.Equal(t, []string{"a"}, setup.Voters)
		require.Equal(t, "1.4s", setup.Elector["lease"])
		require.InDelta(t, 5, records[5].Seconds, 0)

		past, _, err := recording.Read(n.cfg.DataDir, recording.History)
		require.NoError(t, err)
		led := recording.Leaderships(past)
		require.Len(t, led, 2)
		require.Equal(t, "RESIGNED", led[0].Reason)
		require.Equal(t, "STOPPED", led[1].Reason)
	})
}
