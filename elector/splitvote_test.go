package elector_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// splitVote is the probability that the first election fails, if n members, of which s are
// up, wait uniformly, and a message takes the part l of the longest wait: too many ask for
// votes before they hear of each other (Ongaro's dissertation, chapter 9).
func splitVote(n, s int, l float64) (p float64) {
	binomial := func(k int) float64 {
		c := 1.0
		for i := range k {
			c *= float64(s-i) / float64(i+1)
		}
		return c
	}
	for k := s - n/2; k <= s; k++ {
		p += binomial(k) * math.Pow(l, float64(k)) * math.Pow(1-l, float64(s-k))
	}
	return p
}

// A round is the first election of a cluster, in virtual time: real machines, links that all
// take the same time, a disk that takes none.
type round struct {
	machines []*elector.Machine // those that are up
	wakes    []elector.Time
	mail     []letter // in the order of sending, so of arrival as well
	latency  time.Duration
	rng      *rand.Rand
	led      bool
	term     lsn.Term // the highest
}

type letter struct {
	at       elector.Time
	from, to int
	message  elector.Message
}

func nodeID(i int) elector.NodeID { return elector.NodeID(rune('a' + i)) }

func newRound(t *testing.T, n, s int, timing elector.Timing, latency time.Duration,
	seed uint64) *round {
	cfg := elector.Config{Timing: timing, UnsafeNoScouting: true}
	for i := range n {
		cfg.Voters = append(cfg.Voters, nodeID(i))
	}
	r := &round{wakes: make([]elector.Time, s), latency: latency, rng: rand.New(rand.NewPCG(seed, 9))}
	for i := range s {
		cfg.Self = nodeID(i)
		m, err := elector.New(cfg)
		require.NoError(t, err)
		r.machines = append(r.machines, m)
	}
	for i := range s {
		r.step(i, 1, elector.Start{})
		for peer := range s {
			if peer != i {
				r.step(i, 1, elector.LinkUp{Peer: nodeID(peer)})
			}
		}
	}
	return r
}

func (r *round) step(i int, now elector.Time, in elector.Input) {
	m := r.machines[i]
	e := m.Step(now, r.rng.Uint64(), in)
	for _, out := range e.Messages {
		for to := range r.machines {
			if to != i && (out.To == nodeID(to) || out.To == elector.AllMembers) {
				r.mail = append(r.mail, letter{now.Add(r.latency), i, to, out.Message})
			}
		}
	}
	r.wakes[i] = e.Wake
	r.led = r.led || m.Status().Role == elector.Leader
	r.term = max(r.term, m.State().Term)
	if e.Persist != 0 {
		r.step(i, now, elector.Persisted{Term: e.Persist})
	}
}

// splits plays on until there is a leader, or somebody asks for votes a second time.
func (r *round) splits() bool {
	for !r.led && r.term < 2 {
		next := 0
		for i, wake := range r.wakes {
			if wake < r.wakes[next] {
				next = i
			}
		}
		if len(r.mail) > 0 && r.mail[0].at <= r.wakes[next] {
			l := r.mail[0]
			r.mail = r.mail[1:]
			r.step(l.to, l.at, elector.Received{From: nodeID(l.from), Message: l.message})
		} else {
			r.step(next, r.wakes[next], elector.Tick{})
		}
	}
	return r.term > 1
}

// Votes split as often as theory says. The figures for 5 members are those that Ongaro
// prints; so the longest random wait should be 10 to 20 times what a message takes.
func TestSplitVotes(t *testing.T) {
	const longestWait = time.Second
	timing := elector.Article()
	timing.InitialWait, timing.MaxRandomWait = 2*time.Second, longestWait
	for _, c := range []struct {
		n, s    int
		l, want float64
	}{
		{3, 2, 0.1, 0.19}, {5, 4, 0.01, 0.000592}, {5, 4, 0.1, 0.0523}, {5, 4, 0.2, 0.1808},
		{5, 3, 0.2, 0.488}, {7, 6, 0.1, 0.01585}, {7, 4, 0.1, 0.3439}, {9, 8, 0.1, 0.005024},
		{9, 5, 0.1, 0.40951}, {9, 5, 0.2, 0.67232},
	} {
		p := splitVote(c.n, c.s, c.l)
		require.InEpsilon(t, c.want, p, 2e-3, "%+v", c)
		const rounds = 1000
		split := 0
		latency := time.Duration(c.l * float64(longestWait))
		for seed := range uint64(rounds) {
			if newRound(t, c.n, c.s, timing, latency, seed).splits() {
				split++
			}
		}
		require.InDelta(t, p, float64(split)/rounds, 3.5*math.Sqrt(p/rounds)+1e-3, "%+v", c)
	}
}
