package remote

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// A node that shows another algorithm follows a leader that cannot be asked: that is no answer.
func TestALeaderOfADemonstrationIsNotNamed(t *testing.T) {
	nodes := trio(t, nil)
	follower := nodes[1]
	follower.Members = nil
	leader, err := at(follower.AdminAddr).Leader(t.Context(), cluster.DefaultGroup)
	require.NoError(t, err)
	require.Equal(t, cluster.NodeID("n1"), leader.Leader)

	follower.Algorithm, follower.Groups[0].Explanation = "bully", "bully elects here"
	leader, err = at(follower.AdminAddr).Leader(t.Context(), cluster.DefaultGroup)
	require.ErrorAs(t, err, &NoLeaderError{})
	require.ErrorContains(t, err, "bully elects here")
	require.Empty(t, leader.Leader)
	err = at(follower.AdminAddr).AtLeader(t.Context(), cluster.DefaultGroup, nil)
	require.EqualError(t, err, "no node leads with a lease; n2 says: bully elects here")

	answers, err := at(follower.AdminAddr).All(t.Context())
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, PrintStatus(&out, answers))
	require.Contains(t, out.String(), "n2: bully elects here\n")
}
