package loop

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// numbered are the names of n elections.
func numbered(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("e%04d", i))
	}
	return all
}

// leader is the one member that leads an election.
func leader(t testing.TB, all []*member, election string) (leads *member) {
	t.Helper()
	for _, m := range all {
		e, err := m.Lookup(election)
		require.NoError(t, err)
		if e.Leading() {
			require.Nil(t, leads, "two lead %s", election)
			leads = m
		}
	}
	return leads
}

// Beats say that leaders live: elections send no heartbeats, and all know of the beats.
func TestElectionsThatAreQuietSendNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(20)
		all := meet(t, memnet.New(), abc, elections...)
		time.Sleep(40 * time.Second)
		before := map[string]*member{}
		for _, e := range elections {
			before[e] = leader(t, all, e)
			require.NotNil(t, before[e], e)
		}
		for _, m := range all {
			m.beats.take()
		}
		for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
			for _, e := range elections {
				require.Equal(t, before[e], leader(t, all, e))
			}
		}
		for _, m := range all {
			require.Empty(t, m.beats.take(), "heartbeats to %s", m.id)
			for _, name := range elections {
				e, err := m.Lookup(name)
				require.NoError(t, err)
				s := m.Snapshot(e)
				require.Equal(t, before[name].id, s.Leader)
				if s.Role == elector.Follower {
					require.Less(t, s.Now.Sub(s.HeardAt), time.Second)
					require.Equal(t, s.Leader, s.PromisedTo)
				}
			}
		}
	})
}

// When a node dies, what it led is led again, and is as quiet as before.
func TestTheDeadAreReplacedAndThenItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(50)
		net := memnet.New()
		all := meet(t, net, abc, elections...)
		time.Sleep(40 * time.Second)
		dead := leader(t, all, elections[0])
		net.Kill(string(dead.id))
		alive := slices.DeleteFunc(slices.Clone(all), func(m *member) bool { return m == dead })
		time.Sleep(20 * time.Second)
		for _, m := range alive {
			m.beats.take()
		}
		time.Sleep(20 * time.Second)
		for _, m := range alive {
			require.Empty(t, m.beats.take(), "heartbeats to %s", m.id)
		}
		for _, e := range elections {
			require.NotNil(t, leader(t, alive, e), e)
		}
	})
}
