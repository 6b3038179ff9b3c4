package elector_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDive goes deeper into the scenes with records than a search of all states can: it plays
// SEARCH_DIVES random schedules of each, from SEARCH_SEED on.
func TestDive(t *testing.T) {
	number := func(name string, n int) int {
		if v, ok := os.LookupEnv(name); ok {
			var err error
			n, err = strconv.Atoi(v)
			require.NoError(t, err, "%s is a number", name)
		}
		return n
	}
	dives, seed := number("SEARCH_DIVES", 20), number("SEARCH_SEED", 1)
	for _, s := range scenes() {
		if len(s.asks) == 0 || s.inOrder {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			began, steps := time.Now(), 0
			for done := 0; done < dives; {
				x := &search{scene: s, t: t} // what it remembers of machines grows
				x.terms = 8
				x.prepare()
				for range min(dives-done, 500) {
					steps += x.dive(uint64(seed+done), steps)
					done++
				}
			}
			t.Logf("%s: %d schedules, %d steps, %s", s.name, dives, steps,
				time.Since(began).Round(time.Millisecond))
		})
	}
}

// deepest is how many events a schedule has at most.
const deepest = 250

// dive plays a random schedule, and makes sure that somebody leads afterwards. It returns the
// number of its steps.
func (x *search) dive(seed uint64, before int) int {
	d := diver{Rand: rand.New(rand.NewPCG(seed, 0)), x: x}
	w := x.first
	ticks, faults := d.oneOf(0.02, 0.05, 0.2), d.oneOf(0.002, 0.02, 0.1)
	var path []event
	for len(path) < deepest && x.highest(&w) <= x.terms {
		e := d.choose(&w, ticks, faults)
		path = append(path, e)
		err := x.do(&w, e)
		if err == nil {
			err = x.check(&w)
		}
		if err != nil {
			x.t.Fatalf("%s: %v; seed %d, %d steps, depth %d\n%s", x.name, err, seed,
				before+len(path), len(path), x.trace(path))
		}
	}
	if x.electable(&w) && x.highest(&w) <= x.terms {
		if err := x.lives(w); err != nil {
			x.t.Fatalf("%s: %v, although nothing goes wrong from here on; seed %d\n%s", x.name, err,
				seed, x.trace(path))
		}
	}
	return len(path)
}

// diver chooses events.
type diver struct {
	*rand.Rand
	x     *search
	muted uint32 // directed pairs of nodes, nothing of which is delivered until the next quantum
}

func (d *diver) oneOf(p ...float64) float64 { return p[d.IntN(len(p))] }

// choose is an event that may happen, with time passing and faults as likely as is said.
func (d *diver) choose(w *snapshot, ticks, faults float64) event {
	x := d.x
	all := x.events(w)
	for range 100 {
		e := all[d.IntN(len(all))]
		switch {
		case e.what == tick && d.Float64() > ticks*float64(len(all)):
			continue
		case e.what > faulty && e.what != asked && d.Float64() > faults*float64(len(all)):
			continue
		case e.what == received:
			if p := &x.parcels[e.number]; d.muted>>(p.from*maxVoters+p.to)&1 != 0 {
				continue
			}
		}
		if e.what == tick || e.what == heldUp {
			d.mute()
		}
		return e
	}
	d.mute()
	return event{what: tick, node: -1}
}

// mute chooses whose messages are lost.
func (d *diver) mute() {
	if d.IntN(3) == 0 {
		d.muted = d.Uint32() & d.Uint32()
		if d.IntN(2) == 0 {
			d.muted = 0
		}
	}
}
