package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/lsn"
)

// proof is a proof of leadership that a node was asked for.
type proof struct {
	node    elector.NodeID
	term    lsn.Term      // that it led in
	at      elector.Time  // by its clock
	called  time.Duration // when it was asked
	elected lsn.Term      // the highest term in which anybody had been elected by then
}

// proofs watches who is elected, and asks for proofs.
type proofs struct {
	open    []proof
	elected lsn.Term
	given   int    // proofs
	stale   int    // calls at a node with a valid lease, while another had been elected
	wrong   string // the first proof of a leader that had been replaced
}

func (p *proofs) watch(cfg *sim.Config) {
	cfg.Observer = func(e *sim.Event) {
		if e.Kind == sim.EventTransition && e.Transition.To == elector.Leader {
			p.elected = max(p.elected, e.Transition.Term)
		}
	}
}

// ask asks every node that leads, as far as it knows.
func (p *proofs) ask(s *sim.Sim) {
	for _, id := range s.Nodes() {
		elected, valid := p.elected, s.View(id).LeaseValid
		if term, at := s.Confirm(id); term != 0 {
			p.open = append(p.open, proof{id, term, at, s.Now(), elected})
			if valid && elected > term {
				p.stale++
			}
		}
	}
}

// collect looks which calls have their proof. It forgets those of a term that the node no longer
// leads in.
func (p *proofs) collect(s *sim.Sim) {
	open := p.open[:0]
	for _, c := range p.open {
		term, until := s.Confirmed(c.node)
		switch {
		case term != c.term:
		case until <= c.at:
			open = append(open, c)
		default:
			p.given++
			if c.elected > c.term && p.wrong == "" {
				p.wrong = fmt.Sprintf("%s proves at %s that it led at %s in term %d, but a leader of term "+
					"%d had been elected", c.node, s.Now(), c.called, c.term, c.elected)
			}
		}
	}
	p.open = open
}

// run is RunFor, with calls every few milliseconds.
func (p *proofs) run(s *sim.Sim, d time.Duration) error {
	for end := s.Now() + d; s.Now() < end; {
		p.ask(s)
		if err := s.RunFor(min(10*ms, end-s.Now())); err != nil {
			return err
		}
		p.collect(s)
	}
	return nil
}

// TestAProofOfLeadershipNeedsNoClock: clocks run at rates that differ by half, far beyond what the
// leases are made for. So two nodes may lead at once, and both believe in their leases. But none of
// them gets a proof that was replaced when it asked.
func TestAProofOfLeadershipNeedsNoClock(t *testing.T) {
	given, stale := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		cfg := eager(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(2, 5).Draw(t, "voters"))
		cfg.Begin = sim.Begin{}
		for i := range cfg.Nodes {
			n := &cfg.Nodes[i]
			n.ClockRatePPM = pick[int64](t, "rate", -250_000, 0, 250_000)
			n.Elector.Timing.HeartbeatMissCount = 2
			n.Elector.Timing.Lease = 2*n.Elector.Timing.HeartbeatBroadcast - ms
			n.Elector.Timing.ClockDriftPPM = 0
		}
		cfg.Checks.NoLeases = true
		p := &proofs{}
		p.watch(&cfg)
		s := start(t, cfg)
		require.NoError(t, s.RunFor(20*time.Second))
		often := []string{"publish", "isolate", "rejoin", "stall", "bounce"}
		do := slices.Concat(often, often, often, everything)
		for _, st := range rapid.SliceOfN(drawStep(targets(s), do), 1, 60).Draw(t, "schedule") {
			require.NoError(t, p.run(s, st.Wait))
			p.ask(s)
			require.NoError(t, aim(s, st).attempt(s))
			p.ask(s)
		}
		require.NoError(t, p.run(s, time.Second))
		require.Empty(t, p.wrong)
		given, stale = given+p.given, stale+p.stale
	})
	t.Logf("%d proofs; %d calls at a leader with a valid lease that had been replaced", given, stale)
}
