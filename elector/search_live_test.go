package elector_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// allLive makes sure that every state leads to a leader if nothing goes wrong any more. For most
// states the search itself shows that: one event leads to the next state, until all follow a
// leader. States that were not followed further were tried when they were visited. States that
// lead in a circle are tried here.
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
		w := x.again(at)
		x.mustLive(&w, at)
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

// calm lets quanta pass in which everything that is down comes up and everything that is sent
// arrives, until all follow one leader or known reports that the rest is known.
func (x *search) calm(w *snapshot, longest func(node int) bool, known func() bool) error {
	defer func(may []event) { x.may = may }(x.may) // somebody looks at them
	x.may = nil
	for range maxQuanta {
		for range 100 {
			next := slices.IndexFunc(x.events(w), func(e event) bool { return e.what < tick })
			if next < 0 {
				break
			}
			e := x.may[next]
			e.longest = longest(int(e.node))
			if err := x.do(w, e); err != nil {
				return err
			}
		}
		if x.agreed(w) || known() {
			return nil
		}
		e := event{what: tick}
		for i := range x.nodes {
			e.number |= uint32(truth(longest(i))) << i
		}
		if err := x.do(w, e); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s", errNobodyLeads, x.situation(w))
}

// maxQuanta is far more than any timer of a scene.
const maxQuanta = 400

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
	return leader >= 0 && followers == x.nodes-1 && x.settled(w, leader) &&
		(!x.pairs || x.misses > 0 || x.quiet(w, leader))
}
