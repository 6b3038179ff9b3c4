package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// These tests break what the service relies on, and demand that the journals show it.

// bystander is a node that does not lead.
func (w *town) bystander() cluster.NodeID {
	leader := w.c.AwaitLeader()
	for _, id := range three {
		if id != leader {
			return id
		}
	}
	return ""
}

func (w *town) requireProblem(text string) {
	w.t.Helper()
	problems := strings.Join(w.audit().Problems, "\n")
	require.Contains(w.t, problems, text)
}

// A worker that is back within the grant is offered what it had, as if the answer
// had been lost. Its fences know better.
func TestAWorkerThatForgetsItsFencesIsFoundOut(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		inTown(t, func(t *testing.T, w *town) {
			w.settled()
			time.Sleep(10 * time.Second)
			id := w.bystander()
			w.crash(id)
			if forgets {
				require.NoError(t, os.Remove(filepath.Join(w.dirs[id], "fences.json")))
			}
			w.restart(id)
			w.c.Await("it to work again", func() bool { return len(w.at(id).hold.inForce()) > 0 })
			if forgets {
				w.requireProblem("after it accepted")
				return
			}
			w.sound()
		})
	}
}

// forger issues tokens of a leadership that is over.
type forger struct{ last lsn.LSN }

func (f *forger) NextLSN() (next lsn.LSN, err error) {
	f.last, err = f.last.Next()
	return f.last, err
}

// insist lets a leader's desk go on after its leadership, and its own worker obey.
func (w *town) insist(id cluster.NodeID) *desk {
	p := w.at(id)
	d := p.office.desk
	last, err := d.tokens.NextLSN()
	require.NoError(w.t, err)
	d.mu.Lock()
	d.tokens = &forger{last}
	d.mu.Unlock()
	go func() {
		for {
			asked := time.Now()
			if a, err := d.answer(p.hold.question(false)); err == nil {
				_ = p.hold.accept(asked, a)
			}
			select {
			case <-time.After(grant / 5):
			case <-p.ended:
				return
			}
		}
	}()
	return d
}

func TestALeaderThatGoesOnAfterItsLossIsFoundOutAndRefused(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		w.settled()
		old, other := w.c.AwaitLeader(), w.bystander()
		d := w.insist(old)
		w.c.Isolate(old)
		w.c.Await("another leader to give everything to others", func() bool {
			return w.c.Leader() != "" && w.loads() > partitions
		})
		time.Sleep(grant)
		w.requireProblem(", node " + string(old) + ") has ended")

		worker := w.at(other).hold
		a, err := d.answer(worker.question(false))
		require.NoError(t, err, "it would answer anybody")
		var stale *lsn.StaleError
		require.ErrorAs(t, worker.accept(time.Now(), a), &stale)
		require.Equal(t, a.Stamp, stale.Got)
		require.Greater(t, stale.Newest.Term, a.Stamp.Term)
	})
}
