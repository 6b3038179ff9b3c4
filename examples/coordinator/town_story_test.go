package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestPartitionsAreSharedOut(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		w.settled()
		w.c.Await("equal shares", func() bool {
			for _, p := range w.all() {
				if len(p.hold.inForce()) != partitions/len(three) {
					return false
				}
			}
			return true
		})
		time.Sleep(time.Minute)
		report := w.sound()
		require.Equal(t, 1, report.Terms)
		require.Less(t, report.Assigned, 2*partitions, "what is shared out stays")
		require.Greater(t, report.Worked, 60*partitions)
	})
}

// A new leader takes over what is in force: nobody's work is interrupted but the
// dead one's.
func TestANewLeaderInterruptsNobody(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		w.settled()
		time.Sleep(10 * time.Second)
		old := w.c.AwaitLeader()
		before := map[cluster.NodeID]map[int]lsn.LSN{}
		for _, id := range three {
			before[id] = w.at(id).hold.inForce()
			require.NotEmpty(t, before[id])
		}
		require.NoError(t, w.c.Node(old).Transfer(t.Context(), ""))
		time.Sleep(5 * grant)
		require.NotEqual(t, old, w.c.Leader())
		for _, id := range three {
			require.Equal(t, before[id], w.at(id).hold.inForce())
		}
		w.sound()
	})
}

func TestADeadWorkersPartitionsGoToOthersWhenItsGrantsHaveExpired(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		w.settled()
		time.Sleep(10 * time.Second)
		dead := w.c.AwaitLeader()
		w.crash(dead)
		began := time.Now()
		w.settled()
		require.Greater(t, time.Since(began), grant/2)
		w.restart(dead)
		w.c.Await("it to have a share again", func() bool { return len(w.at(dead).hold.inForce()) > 0 })
		w.sound()
	})
}

func TestOneThatLeavesIsNotWaitedFor(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		w.settled()
		time.Sleep(10 * time.Second)
		leader := w.c.AwaitLeader()
		var worker cluster.NodeID
		for _, id := range three {
			if id != leader {
				worker = id
			}
		}
		w.leave(worker)
		began := time.Now()
		w.settled()
		require.Less(t, time.Since(began), grant/2)
		w.leave(leader)
		w.c.Await("the last one to work alone, which is no quorum", func() bool { return w.loads() == 0 })
		w.sound()
	})
}

func TestADrainedNodeLetsAnotherLead(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		w.settled()
		old := w.c.AwaitLeader()
		w.drain(old, true)
		w.c.Await("another leader", func() bool { return w.c.Leader() != "" && w.c.Leader() != old })
		require.Contains(t, w.c.Node(old).Default().Status().Unfit, "drained: ")
		require.NotEmpty(t, w.at(old).hold.inForce(), "it works on")
		require.False(t, w.at(old).office.leads(), "but answers nobody")
		w.drain(old, false)
		w.c.Await("it to be fit again", func() bool { return w.c.Node(old).Default().Status().Unfit == "" })
		w.sound()
	})
}

// TestNothingIsEverInForceTwice lets everything happen to everybody.
func TestNothingIsEverInForceTwice(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		random := rand.New(rand.NewPCG(rand.Uint64(), 0)) // time is not the same twice anyway
		for range 60 {
			w.mishap(three[random.IntN(len(three))], random.IntN(6), time.Duration(random.Int64N(int64(4*grant))))
		}
		w.c.Heal()
		w.settled()
		report := w.sound()
		require.Greater(t, report.Terms, 5, "leaders came and went")
		require.Greater(t, report.Begun, 5*partitions)
	})
}

// mishap does something to a node, for a time.
func (w *town) mishap(id cluster.NodeID, kind int, last time.Duration) {
	if leader := w.c.Leader(); leader != "" && kind > 2 {
		id = leader
	}
	switch kind {
	case 0, 3:
		w.crash(id)
		time.Sleep(last)
		w.restart(id)
	case 1, 4:
		w.c.Pause(id)
		time.Sleep(last)
		w.c.Resume(id)
	case 2:
		w.c.Isolate(id)
		time.Sleep(last)
	default:
		w.c.Isolate(id)
		time.Sleep(last)
		w.c.Heal()
	}
	time.Sleep(last / 2)
}
