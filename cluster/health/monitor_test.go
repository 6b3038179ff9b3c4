package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// results are what a probe of a test finds, by the second of virtual time in which it is asked.
type results string

// A letter is a second: + passes, - fails, > takes half a second, H hangs until half a second
// before the next letter that is no H.
func (r results) probe(name string, began time.Time) Probe {
	at := func() int { return int(time.Since(began) / time.Second) }
	return Probe{Name: name, Check: func(ctx context.Context) error {
		now := at()
		if now >= len(r) {
			return nil
		}
		switch r[now] {
		case '-':
			return fmt.Errorf("%s broke at %d", name, now)
		case '>':
			time.Sleep(time.Second / 2)
		case 'H':
			for now < len(r) && r[now] == 'H' {
				now++
			}
			time.Sleep(time.Until(began.Add(time.Duration(now)*time.Second - time.Second/2)))
		}
		return nil
	}}
}

// Each line of want is a second in which the verdict changed, and the verdict.
func TestTheThresholds(t *testing.T) {
	for name, c := range map[string]struct {
		o      Options
		probes []results
		want   string
	}{
		"all is well":        {probes: []results{"++++"}},
		"fails at the start": {probes: []results{"-++"}, want: "0 p0: p0 broke at 0\n1 fit"},
		"never passes": {probes: []results{"---"}, want: "0 p0: p0 broke at 0\n" +
			"1 p0: p0 broke at 1\n2 p0: p0 broke at 2\n3 fit"},
		"two failures are not three": {probes: []results{"+--+--+"}},
		"three are, and five end that": {probes: []results{"+---++++++"},
			want: "3 p0: p0 broke at 3\n8 fit"},
		"a failure begins anew": {probes: []results{"+---++++-+++++"},
			want: "3 p0: p0 broke at 3\n8 p0: p0 broke at 8\n13 fit"},
		"any probe": {probes: []results{"+---++++++", "++---+++++"},
			want: "3 p0: p0 broke at 3\n4 p0: p0 broke at 3; p1: p1 broke at 4\n" +
				"8 p1: p1 broke at 4\n9 fit"},
		"own thresholds": {o: Options{Failures: 1, Successes: 1}, probes: []results{"+-+-+"},
			want: "1 p0: p0 broke at 1\n2 fit\n3 p0: p0 broke at 3\n4 fit"},
		"slow, and in time": {probes: []results{"+>>>>>"}},
		"hangs": {probes: []results{"+HHHHH++++++"},
			want: "4 p0: a check takes longer than 1s\n10 fit"},
		"hangs at the start": {probes: []results{"HHH++++++"},
			want: "1 p0: a check takes longer than 1s\n3 fit"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var told []string
				for i, r := range c.probes {
					c.o.Probes = append(c.o.Probes, r.probe(fmt.Sprintf("p%d", i), began))
				}
				m := Watch(c.o, func(unfit string) {
					text := cmp.Or(unfit, "fit")
					told = append(told, fmt.Sprintf("%d %s", time.Since(began)/time.Second, text))
				})
				time.Sleep(30 * time.Second)
				m.Close()
				require.Equal(t, c.want, strings.Join(told, "\n"))
			})
		})
	}
}

// A disk that hangs holds one goroutine, whatever the time, and holds up neither the other probes
// nor Close.
func TestACheckThatHangsIsAloneAndHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks, quick, changes atomic.Int64
		var hangs atomic.Bool
		m := Watch(Options{
			Changed: func(Status) { changes.Add(1) },
			Probes: []Probe{
				{Name: "quick", Check: func(context.Context) error { quick.Add(1); return nil }},
				{Name: "disk", Action: "a sync in /d", Timeout: 3 * time.Second, Failures: 1,
					Check: func(context.Context) error {
						checks.Add(1)
						for hangs.Load() {
							time.Sleep(time.Second / 10)
						}
						return nil
					}},
			},
		}, func(string) {})
		hangs.Store(true)
		time.Sleep(time.Hour)
		require.EqualValues(t, 2, checks.Load())
		require.InDelta(t, 3600, float64(quick.Load()), 2)
		st := m.Status()[1]
		require.False(t, st.Fit)
		require.Equal(t, "a sync in /d takes longer than 3s", st.Why)
		require.InDelta(t, 3597, float64(st.Failures), 3)
		require.InDelta(t, 3599, st.Seconds, 2)
		require.EqualValues(t, 1, changes.Load())
		hangs.Store(false)
		time.Sleep(10 * time.Second)
		require.True(t, m.Status()[1].Fit)
		require.Empty(t, m.Status()[1].Why)
		require.EqualValues(t, 2, changes.Load())

		hangs.Store(true)
		time.Sleep(3 * time.Second / 2)
		began := time.Now()
		m.Close()
		took := time.Since(began)
		hangs.Store(false)
		time.Sleep(time.Second)
		require.Equal(t, closeTime, took, "a check that hangs is left behind")
	})
}

func TestWordsAreBoundedAndPrintable(t *testing.T) {
	for words, want := range map[string]string{
		"":                              "no reason given",
		" lag is 40s\n":                 "lag is 40s",
		"a\x1b[31mb\nc":                 `a\x1b[31mb\nc`,
		strings.Repeat("x", maxWords*2): strings.Repeat("x", maxWords),
	} {
		require.Equal(t, want, wordsOf(errors.New(words)))
	}
}
