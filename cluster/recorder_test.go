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

// TestADiskThatTakesNothingIsFound before there is anything to record. It is also found that the
// disk takes files again.
func TestADiskThatTakesNothingIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := leadsAlone(t)
		obstacle := filepath.Join(n.cfg.DataDir, "room.tmp")
		require.Empty(t, n.Status().Findings)
		require.NoError(t, os.MkdirAll(filepath.Join(obstacle, "full"), 0o700))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		found := n.Status().Findings
		require.Len(t, found, 1)
		require.Equal(t, findings.DiskFails, found[0].Kind)
		require.Contains(t, found[0].Detail, obstacle)
		require.True(t, n.IsLeader(), "elections go on")
		require.NoError(t, os.RemoveAll(obstacle))
		time.Sleep(10 * time.Second)
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
		n.Do(func() { time.Sleep(time.Minute) })
		n.loop.LinkDown("b", 1)
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
