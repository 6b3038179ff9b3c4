package cluster_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
)

// On one CPU all that a node has to say at one moment waits before any of it is
// sent, and so do the answers: whatever is dropped then costs leaders.
func TestThreeThousandElectionsOnOneCPU(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	count := 3000
	if raceDetector { // which takes ten times as long
		count = 1500
	}
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		for i := range count {
			for id, n := range c.nodes() {
				_, err := n.Election(fmt.Sprintf("g%d", i), cluster.ElectionConfig{NotCandidate: id != "a"})
				require.NoError(t, err)
			}
		}
		time.Sleep(20 * time.Second)
		for id, n := range c.nodes() {
			st := n.Stats()
			require.Len(t, st.Elections, count+1)
			require.Equal(t, map[string]uint64{"malformed": 0, "unknown-session": 0, "forged": 0, "old": 0},
				st.DatagramsDropped)
			higher, without := 0, 0
			for _, e := range st.Elections {
				if e.Group == cluster.DefaultGroup {
					continue // in which all three stand
				}
				if e.Term > 1 {
					higher++
				}
				if e.Leader != "a" {
					without++
				}
			}
			require.Zero(t, higher, "elections in a higher term, as %s sees it", id)
			require.Zero(t, without, "elections without their leader, as %s sees it", id)
			require.Zero(t, st.LeaderChanges[elector.LeaderNoHeartbeat], id)
			require.Zero(t, st.LeaderChanges[elector.LeaseExpired], id)
		}
	})
}
