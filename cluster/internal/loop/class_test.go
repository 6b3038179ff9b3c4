package loop

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// What elections of one configuration have in common is forgotten with the last of them, on
// the leader and on those who follow it, also if there is another configuration each time.
func TestAClassIsForgottenWithItsLastElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := meet(t, memnet.New(), abc)
		time.Sleep(40 * time.Second)
		kept := func(m *member) (n [5]int) {
			m.view(func(d *Driver) {
				n = [5]int{len(m.classes), len(d.entered), len(d.led)}
				for _, s := range d.sessions {
					n[3] += len(s.watchers)
				}
				for _, alarm := range d.alarms {
					if alarm.At != elector.Never {
						n[4]++
					}
				}
			})
			return n
		}
		var before [][5]int
		for _, m := range all {
			before = append(before, kept(m))
		}
		for i := range 20 {
			timing := elector.Article()
			timing.InitialWait += time.Duration(i+1) * time.Microsecond
			for _, m := range all {
				for _, name := range []string{"one", "two"} {
					_, err := m.Open(name, Setup{
						Elector: elector.Config{Self: m.id, Voters: abc, Timing: timing}, StopMargin: ms,
					})
					require.NoError(t, err)
				}
			}
			time.Sleep(40 * time.Second)
			for _, name := range []string{"one", "two"} {
				leads := leader(t, all, name)
				leads.view(func(d *Driver) { require.NotNil(t, d.groups[name].lease, "beats speak for it") })
				for _, m := range all {
					require.Equal(t, 2, kept(m)[0], "classes")
					require.NoError(t, m.CloseElection(t.Context(), lookup(t, m, name)))
				}
			}
			time.Sleep(5 * time.Second)
		}
		for i, m := range all {
			require.Equal(t, before[i], kept(m), "classes, entered, led, watchers and alarms of %s", m.id)
		}
	})
}
