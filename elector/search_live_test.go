package elector_test

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// allLive makes sure that a leader follows from every state if nothing goes wrong any more. From
// most it does by what the search has visited: one event leads to the next state, until all
// follow a leader. What was visited and not followed was tried. So is what goes in circles.
func (x *search) allLive() {
	known := make([]bool, len(x.calmly))
	var path []int32
	for at := range int32(len(x.calmly)) {
		path = path[:0]
		for ; !known[at] && x.calmly[at] >= 0; at = x.calmly[at] {
			known[at] = true
			path = append(path, at)
		}
		if i := slices.Index(path, at); i < 0 || i == len(path)-1 && x.calmly[at] == at {
			continue // what follows is live
		}
		if err := x.lives(x.again(at)); err != nil {
			x.broken(err, at)
		}
	}
}

// again is a state that was visited.
func (x *search) again(at int32) snapshot {
	w := x.first
	for _, e := range x.path(at) {
		require.NoError(x.t, x.do(&w, e))
	}
	return w
}

// lives returns why no leader is reached if nothing goes wrong from here on; nil if one is.
func (x *search) lives(w snapshot) error {
	draw := rand.New(rand.NewPCG(1, 2))
	var passed []uint64
	err := x.calm(&w, func(int) bool { return draw.Uint64()&1 != 0 }, func() bool {
		h := x.hash(&w)
		passed = append(passed, h)
		return x.lived[h]
	})
	if err == nil {
		for _, h := range passed {
			x.lived[h] = true
		}
	}
	return err
}

var errNobodyLeads = errors.New("nobody ever leads")

// calm lets quanta pass in which all that is down comes up and all that is sent arrives, until
// all follow one leader, or the end is known.
func (x *search) calm(w *snapshot, longest func(node int) bool, known func() bool) error {
	w.cut = 0
	for range maxQuanta {
		if known() {
			return nil
		}
		for i := range x.nodes {
			p := &w.peers[i]
			if p.machine >= 0 && x.state(w, i).Role == elector.Dormant {
				x.end(w, i)
			}
			if p.machine < 0 {
				if err := x.boot(w, i, longest(i)); err != nil {
					return err
				}
			}
		}
		if err := x.connectAll(w); err != nil {
			return err
		}
		if err := x.settle(w, longest); err != nil {
			return err
		}
		if err := x.pass(w, -1, longest); err != nil {
			return err
		}
		if err := x.settle(w, longest); err != nil {
			return err
		}
		if x.agreed(w) {
			return nil
		}
	}
	return errNobodyLeads
}

// connectAll makes every link that is not up.
func (x *search) connectAll(w *snapshot) error {
	for i := range x.nodes {
		for j := range i {
			p, q := &w.peers[i], &w.peers[j]
			both := p.linked >> j & 1 & (q.linked >> i)
			if both != 0 && p.down>>j&1 == 0 && q.down>>i&1 == 0 {
				continue
			}
			if err := x.connect(w, i, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxQuanta is far more than any timer of a scene.
const maxQuanta = 400

// settle lets all arrive that is on its way, and all be written.
func (x *search) settle(w *snapshot, longest func(node int) bool) error {
	for range 100 {
		for i := range x.nodes {
			if p := &w.peers[i]; p.writing != (terms{}) {
				if err := x.persisted(w, i, longest(i)); err != nil {
					return err
				}
			}
		}
		if w.traffic.n == 0 {
			return nil
		}
		if err := x.deliver(w, 0, longest); err != nil {
			return err
		}
	}
	return nil
}

// agreed reports whether all voters follow one leader.
func (x *search) agreed(w *snapshot) bool {
	leader, followers := -1, 0
	for i := range x.nodes {
		if w.peers[i].machine < 0 {
			return false
		}
		s := x.state(w, i)
		switch {
		case s.Role == elector.Leader:
			leader = i
		case s.Follower.Leader != "":
			followers++
		}
	}
	return leader >= 0 && followers == x.nodes-1
}

// deliver lets the parcel at an index of the traffic arrive.
func (x *search) deliver(w *snapshot, at int, longest func(int) bool) error {
	number := w.traffic.flights[at].number
	w.traffic.remove(at)
	to := x.parcels[number].to
	return x.step(w, to, received, number, longest(to))
}

// persisted lets a write end.
func (x *search) persisted(w *snapshot, node int, longest bool) error {
	p := &w.peers[node]
	p.disk, p.writing, p.waits = p.writing, terms{}, 0
	return x.step(w, node, persisted, uint16(p.disk.reserved), longest)
}
