package guarded

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
)

// leads is a machine of a node that leads without a lease, and its campaign's leadership.
func leads(t *testing.T) (m *Machine, id leadership.ID, over <-chan struct{}) {
	m = &Machine{}
	m.Init(leadership.Config{MayStand: true}, NewWatcher(clock.Process()), func() {})
	id = m.NewID()
	over, refused := m.Campaign(leadership.Campaign{ID: id},
		func(leadership.Effects, leadership.State) {})
	require.Equal(t, leadership.NotRefused, refused)
	steps(m)
	m.Leads(elector.Lease{Term: 1, End: elector.Never}, elector.Handover{}, false)
	require.Equal(t, leadership.Serving, m.State().Phase)
	return m, id, over
}

// steps takes the requests, as the driver does.
func steps(m *Machine) (asked []elector.Input) {
	for in, ok := m.NextRequest(); ok; in, ok = m.NextRequest() {
		asked = append(asked, in)
	}
	return asked
}

// TestWhatIsAskedOfAStuckDriverIsBounded, and the newest of each counts when it goes on.
func TestWhatIsAskedOfAStuckDriverIsBounded(t *testing.T) {
	m, _, _ := leads(t)
	const calls = 100_000
	for i := range calls {
		for _, in := range []leadership.Input{
			leadership.Fitness{Unfit: "closed"}, leadership.Candidacy{MayStand: i%2 == 1},
			leadership.Fitness{}, leadership.Prefer{Priority: i},
		} {
			_, err := m.Change(in)
			require.NoError(t, err)
		}
		m.Feed(leadership.Resign{})
		require.Less(t, len(m.requests), 8, "after %d calls", i)
	}
	require.Contains(t, steps(m), elector.Prefer{Priority: calls - 1})
	require.Equal(t, calls-1, m.State().Priority)
	require.Empty(t, m.State().Unfit)
}

// A step of the elector that was under way when the campaign began does not know the requests of
// the campaign: it must not grant it.
func TestACampaignIsNotGrantedByAStepThatBeganBefore(t *testing.T) {
	m, id, over := leads(t)
	m.Feed(leadership.GiveUp{ID: id})
	var granted leadership.ID
	next := m.NewID()
	_, refused := m.Campaign(leadership.Campaign{ID: next, After: id},
		func(e leadership.Effects, _ leadership.State) { granted = e.Granted })
	require.Equal(t, leadership.NotRefused, refused)
	<-over
	lease := elector.Lease{Term: 1, End: elector.Never}
	m.Leads(lease, elector.Handover{}, false)
	require.Zero(t, granted)
	require.NotEmpty(t, steps(m))
	m.Leads(lease, elector.Handover{}, false)
	require.Equal(t, next, granted)
}

// A leader with guarded work renews its lease with each ack.
func TestARenewedLeaseTakesNoMemory(t *testing.T) {
	m, _, _ := leads(t)
	steps(m)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		m.Leads(elector.Lease{Term: 1, End: elector.Never}, elector.Handover{}, false)
	}))
}
