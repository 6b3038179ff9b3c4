package published

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/lsn"
)

const raftTrials = 200 // elections of each row

// raftElection is how sections 9.3 and 9.4 of Ongaro's dissertation measure the time without a
// leader: of five servers, whose timeouts are uniform between least and most, the leader fails at
// a random moment between two heartbeats, of which it sends two in the least timeout. Published is
// what the text says, or a median read off a curve. What it leaves open is chosen.
type raftElection struct {
	least, most   time.Duration
	failed        int              // servers, the leader among them
	wan           bool             // as simulated there: time counts from the last heartbeat
	mean          bool             // published is a mean, not a median
	published     time.Duration    // of 1,000 trials, "approximately" where it is text
	worst         time.Duration    // published, if not 0: no election took longer
	request, vote [2]time.Duration // the least that they take, and how much more at most
}

func raftElections() (all []raftElection) {
	const ms = time.Millisecond
	for _, e := range []raftElection{
		{least: 150 * ms, most: 155 * ms, published: 287 * ms},
		{least: 150 * ms, most: 175 * ms, published: 141 * ms},
		{least: 150 * ms, most: 200 * ms, published: 146 * ms, worst: time.Second},
		{least: 150 * ms, most: 300 * ms, published: 171 * ms, worst: time.Second},
		{least: 12 * ms, most: 24 * ms, published: 35 * ms, mean: true, worst: 2 * 152 * ms},
		{least: 25 * ms, most: 50 * ms, published: 44 * ms},
		{least: 50 * ms, most: 100 * ms, published: 67 * ms},
		{least: 100 * ms, most: 200 * ms, published: 121 * ms},
		{least: 300 * ms, most: 600 * ms, published: 475 * ms, mean: true, wan: true,
			worst: 1500 * ms},
		{least: 300 * ms, most: 600 * ms, published: 650 * ms, mean: true, wan: true, failed: 2,
			worst: 3 * time.Second},
	} {
		e.failed = max(e.failed, 1)
		// Roughly 15 ms are published for request, disk and answer. Up to 5 ms of that are chosen
		// for the request: that decides how many elections split with timeouts of 150 to 155 ms.
		// With timeouts of 12 to 24 ms one more millisecond matters: candidates give up too early.
		e.request, e.vote = [2]time.Duration{0, 5 * ms}, [2]time.Duration{11500 * time.Microsecond}
		if e.wan {
			e.request, e.vote = [2]time.Duration{30 * ms, 10 * ms}, [2]time.Duration{30 * ms, 10 * ms}
		}
		all = append(all, e)
	}
	return all
}

func (e raftElection) name() string {
	return fmt.Sprintf("%d-%d ms, %d failed", e.least.Milliseconds(), e.most.Milliseconds(), e.failed)
}

// algorithm is Raft, but with timeouts up to most and not up to twice the least.
func (e raftElection) algorithm() algorithm.Algorithm {
	a := raft.Etcd
	a.New = func(cfg algorithm.Config) algorithm.Machine { return narrow{raft.Etcd.New(cfg), e} }
	return a
}

type narrow struct {
	algorithm.Machine
	raftElection
}

// Step scales the entropy down, so that timeouts end at most.
func (n narrow) Step(now algorithm.Time, entropy uint64, in algorithm.Input) algorithm.Effects {
	hi, lo := bits.Mul64(entropy, uint64(n.most-n.least))
	part, _ := bits.Div64(hi, lo, uint64(n.least))
	return n.Machine.Step(now, part, in)
}

// raftFailure is one failure of a leader, and the election that follows.
type raftFailure struct {
	raftElection
	t       testing.TB
	sim     *sim.Sim
	rng     *rand.Rand
	crashed bool
	term    lsn.Term      // of the last leader
	gone    time.Duration // since when there is no leader
	took    time.Duration // until there was one
	terms   int           // that were begun for that
}

// play plays one failure until there is a leader again.
func (e raftElection) play(t testing.TB, seed uint64) *raftFailure {
	f := &raftFailure{raftElection: e, t: t, rng: rand.New(rand.NewPCG(seed, 3))}
	ids := members(5)
	f.sim = start(t, sim.Config{
		Seed: seed, Algorithm: e.algorithm(), LinkTimeout: time.Hour, Observer: f.observe,
		Network: sim.Faults{Delay: 100 * time.Microsecond},
	}, ids, elector.Config{Timing: elector.Timing{
		InitialWait: time.Second, MaxRandomWait: time.Second, ScoutingResult: time.Second,
		ElectionResult: time.Second, HeartbeatBroadcast: e.least / 2, HeartbeatMissCount: 2,
		Lease: e.least,
	}})
	require.NoError(t, f.sim.RunUntil(30*e.most+time.Duration(f.rng.Int64N(int64(e.least/2)))))
	leader, ok := f.sim.Leader()
	require.True(t, ok, "seed %d", seed)
	for i := range e.failed {
		id := ids[(slices.Index(ids, leader)+i)%5]
		require.NoError(t, f.sim.Crash(id, sim.Crash{Silent: true}))
	}
	if f.crashed = true; !e.wan {
		f.gone = f.sim.Now()
	}
	for f.took == 0 {
		require.Less(t, f.sim.Now(), time.Minute, "seed %d", seed)
		require.NoError(t, f.sim.RunUntil(f.sim.Now()+e.least))
	}
	return f
}

func (f *raftFailure) observe(e *sim.Event) {
	m, _ := e.Message.(raft.Message)
	switch {
	case f.took != 0:
	case e.Kind == sim.EventSent && f.crashed:
		f.delay(e, m.Kind)
	case e.Kind == sim.EventDelivered && f.wan && m.Kind == raft.AppendEntries:
		f.gone = e.At
	case e.Kind != sim.EventTransition || e.Transition.To != elector.Leader:
	case f.crashed:
		f.took, f.terms = e.At-f.gone, int(e.Transition.Term-f.term)
	default:
		f.term = e.Transition.Term
	}
}

// delay makes a message that is being sent take its time.
func (f *raftFailure) delay(sent *sim.Event, kind raft.Kind) {
	takes := f.request
	switch kind {
	case raft.RequestVote:
	case raft.RequestVoteResponse:
		takes = f.vote
	default:
		return
	}
	delay := takes[0] + time.Duration(f.rng.Int64N(int64(takes[1])+1))
	require.NoError(f.t, f.sim.SetFaults(sent.Node, sent.Peer, sim.Faults{Delay: delay}))
}

// TestPublishedRaft holds Raft to the dissertation's election times. A mean or median of 200 is
// off by 5 % where votes split (one deviation), and what the text calls roughly 15 ms by a tenth
// of the shortest times. A rule of split votes that was wrong by one voter would double or halve
// the times of the narrow ranges.
func TestPublishedRaft(t *testing.T) {
	t.Parallel()
	text := "least_ms,most_ms,failed,kind,published_ms,ours_ms,worst_ms,split_percent\n"
	for _, e := range raftElections() {
		var took []time.Duration
		sum, split := time.Duration(0), 0
		for seed := range raftTrials {
			f := e.play(t, uint64(seed)+1)
			took, sum = append(took, f.took), sum+f.took
			if f.terms > 1 {
				split++
			}
		}
		slices.Sort(took)
		kind, ours := "median", took[len(took)/2]
		if e.mean {
			kind, ours = "mean", sum/time.Duration(len(took))
		}
		worst := took[len(took)-1]
		require.InEpsilon(t, e.published, ours, .15, e.name())
		if e.worst != 0 {
			require.LessOrEqual(t, worst, e.worst, e.name())
		}
		text += fmt.Sprintf("%d,%d,%d,%s,%d,%d,%d,%d\n", e.least.Milliseconds(),
			e.most.Milliseconds(), e.failed, kind, e.published.Milliseconds(), ours.Milliseconds(),
			worst.Milliseconds(), 100*split/len(took))
	}
	testkit.Golden(t, "testdata/raft.csv", text)
}
