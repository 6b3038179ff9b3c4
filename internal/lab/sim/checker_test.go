package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestCheckerSeesTwoLeasesAndTwoLeaders(t *testing.T) {
	c := spec.NewCluster(nil, 0, spec.Checks{})
	require.Nil(t, c.Lease(time.Second, "a", 1, 3*time.Second))
	require.Equal(t, "I2", c.Lease(2*time.Second, "b", 2, 4*time.Second).Rule)
	require.Nil(t, c.Lease(3*time.Second, "b", 2, 4*time.Second))

	c = spec.NewCluster(nil, 0, spec.Checks{NoLeases: true})
	beat := elector.Message{Kind: elector.LeaderHeartbeat, Term: 1}
	says := func(id elector.NodeID) *spec.Violation {
		return c.Step(&spec.Step{Node: id, State: &elector.State{}, Effects: &elector.Effects{
			Messages: []elector.Envelope{{To: elector.AllMembers, Message: beat}},
		}}, elector.Tick{})
	}
	exact := func(term lsn.Term) elector.Terms { return elector.Terms{Entered: term, Reserved: term} }
	require.Equal(t, "persist", says("a").Rule)
	require.Nil(t, c.Durable("a", exact(1)))
	require.Nil(t, c.Durable("b", exact(1)))
	require.Nil(t, says("a"))
	require.Equal(t, "I1", says("b").Rule)
	require.Equal(t, "I3", c.Booted("a", exact(0)).Rule)

	require.Nil(t, c.Durable("a", elector.Terms{Entered: 1, Reserved: 9}))
	beat.Term = 9
	require.Nil(t, says("a"))
	require.Equal(t, "I3", c.Durable("a", exact(8)).Rule)
	require.Nil(t, c.Durable("a", exact(9)))
	require.Equal(t, "I3", c.Booted("a", elector.Terms{Reserved: 8}).Rule)
	require.Nil(t, c.Booted("a", elector.Terms{Reserved: 9}), "it has forgotten the election")
}

func TestCheckerSeesWorkOverlap(t *testing.T) {
	c := spec.NewCluster(nil, 0, spec.Checks{})
	require.Nil(t, c.Work(1, "a", 10))
	require.Nil(t, c.Work(10, "b", 20), "that of a is over")
	require.Equal(t, "work", c.Work(19, "a", 25).Rule)
	c = spec.NewCluster(nil, 0, spec.Checks{NoLeases: true})
	require.Nil(t, c.Work(1, "a", 10))
	require.Nil(t, c.Work(1, "b", 20))
}
