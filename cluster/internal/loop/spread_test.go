package loop

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/netmesh"
)

// What happens while elections are being told something else they learn in the order in which it
// happened, also those that are told in the last batch.
func TestElectionsLearnNewsInOrder(t *testing.T) {
	b := netmesh.PeerInfo{Node: "b", Identity: uuid.New(), Boot: 1}
	up := func(l *Loop) { l.LinkUp(b) }
	down := func(l *Loop) { l.LinkDown("b", elector.Evidence(0)) }
	pause := func(length time.Duration) func(*Loop) {
		return func(l *Loop) { require.NoError(t, l.Pause(context.Background(), length)) }
	}
	for _, tc := range []struct {
		name           string
		do             []func(*Loop)
		linked, paused bool
	}{
		{"a link comes back", []func(*Loop){down, up}, true, false},
		{"a link comes back and is lost", []func(*Loop){down, up, down}, false, false},
		{"a pause ends", []func(*Loop){pause(time.Hour), pause(0)}, true, false},
		{"a pause begins again", []func(*Loop){pause(0), pause(time.Hour)}, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, first := run(t, clock.Process(), abc...)
				for _, name := range numbered(10 * batch) {
					_, err := l.Open(name, Setup{Elector: *first.Config})
					require.NoError(t, err)
				}
				up(l)
				time.Sleep(time.Minute)
				for _, do := range tc.do {
					do(l)
				}
				time.Sleep(time.Second)
				l.view(func(d *Driver) {
					require.Empty(t, d.news)
					for name, g := range d.groups {
						linked := len(g.machine.Status().Linked) > 0
						require.Equal(t, tc.linked, linked, "%s is linked", name)
						paused := g.machine.State().PauseEnd > d.Now()
						require.Equal(t, tc.paused, paused, "%s is paused", name)
					}
				})
			})
		})
	}
}

// However much happens, it takes two rounds at most until an election has learned it.
func TestNobodyWaitsLongForNewsWhileMoreCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, first := run(t, clock.Process(), abc...)
		const rounds = 10 // each of so many batches
		for _, name := range numbered(rounds * batch) {
			_, err := l.Open(name, Setup{Elector: *first.Config})
			require.NoError(t, err)
		}
		l.view(func(d *Driver) {
			begun := false
			d.greetings.wait(d, turn{group: first.g}, func(*Driver, *group) { begun = true })
			for range 5 * rounds {
				d.tellAll(func(*Driver, *group) {})
				require.LessOrEqual(t, len(d.news), 2*(rounds+1))
				d.takeTurns()
			}
			require.True(t, begun, "nor does a turn wait until there are no more")
			for name, g := range d.groups {
				told := max(g.told, d.toldBefore)
				require.GreaterOrEqual(t, told, d.toldBefore+len(d.news)-2*(rounds+1), name)
			}
		})
		time.Sleep(time.Second)
		l.view(func(d *Driver) { require.Empty(t, d.news) })
	})
}
