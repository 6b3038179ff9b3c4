package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// patience is how long an election may take before it is given up.
const patience = 10 * time.Second

// An election is how section 9.4 of Ongaro's dissertation measures the time without a leader.
// Five servers have election timeouts that are uniform between least and most. The leader
// sends heartbeats twice in the least timeout, to all at the same moment, and fails at a random
// moment between two. It fails without a sign: only a timeout finds that out.
//
// There two of the four that are left cannot be elected, because logs differ; here there are
// no logs, and section 9.5 finds that they make little difference.
type election struct {
	least, most time.Duration
	failed      int  // servers, the leader among them
	fresh       bool // the time counts from the last heartbeat, not from the failure
	// How long a request for a vote and its answer take: the network, and the disk of the
	// voter, since no node waits for a disk here (§2.4). Uniform.
	request, answer [2]time.Duration
}

// timing maps the election timeout to timers of this protocol. The part that is random comes
// after the part that is not, and so it does after a failed attempt.
func (e election) timing() elector.Timing {
	return elector.Timing{
		InitialWait: 2 * e.most, MaxRandomWait: max(e.most-e.least, 1), ScoutingResult: e.least,
		// Here a candidate counts no vote after that (§5.6), in Raft until the next timeout.
		ElectionResult:     max(e.least, e.request[1]+e.answer[1]+ms),
		HeartbeatBroadcast: e.least / 2, HeartbeatMissCount: 2, Lease: e.least,
	}
}

// play plays one failure and returns how long there was no leader, at most patience. In Raft a
// candidate that is refused waits for its timeout; ours sees that it has lost, and stands again
// after a random wait (§5.5). To make it wait, asRaft loses the refusals.
func (e election) play(t *testing.T, seed uint64, asRaft bool) time.Duration {
	t.Helper()
	ids := names(5)
	rng := rand.New(rand.NewPCG(seed, 3))
	cfg := sim.Config{
		Seed: seed, LinkTimeout: time.Hour, Network: sim.Faults{Delay: ms / 10},
		Begin: sim.Begin{Leader: ids[seed%5], Term: 1},
	}
	for _, id := range ids {
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{Elector: elector.Config{
			Self: id, Voters: ids, Timing: e.timing(), UnsafeNoScouting: true,
		}})
	}
	var s *sim.Sim
	var gone, led time.Duration
	cfg.Observer = func(event *sim.Event) {
		switch m, _ := event.Message.(ours.Message); {
		case led != 0:
		case event.Kind == sim.EventTransition && event.Transition.To == elector.Leader && gone != 0:
			led = event.At
		case event.Kind == sim.EventDelivered && m.Kind == elector.LeaderHeartbeat && e.fresh:
			gone = event.At
		case event.Kind == sim.EventSent && s != nil:
			e.delay(t, s, rng, event, asRaft)
		}
	}
	s = start(t, cfg)
	between := time.Duration(rng.Int64N(int64(e.least / 2)))
	require.NoError(t, s.RunUntil(10*e.least+between))
	for i := range e.failed {
		require.NoError(t, s.Crash(ids[(int(seed)+i)%5], sim.Crash{Silent: true}))
	}
	if !e.fresh {
		gone = s.Now()
	}
	for led == 0 && s.Now()-gone < patience {
		require.NoError(t, s.RunFor(e.least))
	}
	if led == 0 {
		return patience
	}
	return led - gone
}

// delay makes what is being sent take its time, or loses it.
func (e election) delay(t *testing.T, s *sim.Sim, rng *rand.Rand, sent *sim.Event, asRaft bool) {
	from, to, m := sent.Node, sent.Peer, sent.Message.(ours.Message)
	takes := e.request
	switch m.Kind {
	case elector.ElectionProposal:
	case elector.ElectionProposalResponse:
		takes = e.answer
		if asRaft && !m.WillVote {
			require.NoError(t, s.Cut(from, to))
			s.At(s.Now(), func(s *sim.Sim) error { return s.Heal(from, to) })
			return
		}
	default:
		return
	}
	delay := takes[0] + time.Duration(rng.Int64N(int64(takes[1]-takes[0])+1))
	require.NoError(t, s.SetFaults(from, to, sim.Faults{Delay: delay}))
}

// onALAN is the dissertation's set-up with real machines. Request and answer take 15 ms, as is
// said there. That a request takes up to 5 ms of them is chosen: so 7 of 10 first elections
// split with timeouts of 150 to 155 ms, as the steps of its curve show. All else follows.
func onALAN(least, most time.Duration) election {
	return election{
		least: least, most: most, failed: 1,
		request: [2]time.Duration{0, 5 * ms},
		answer:  [2]time.Duration{12500 * time.Microsecond, 12500 * time.Microsecond},
	}
}

// onAWAN is its set-up in its own simulator, which knows no disks.
func onAWAN(failed int) election {
	way := [2]time.Duration{30 * ms, 40 * ms}
	return election{
		least: 300 * ms, most: 600 * ms, failed: failed, fresh: true, request: way, answer: way,
	}
}

// sample is the times of many elections, the shortest first.
type sample []time.Duration

func (e election) sample(t *testing.T, n int, asRaft bool) (took sample) {
	for seed := range n {
		took = append(took, e.play(t, uint64(seed)+1, asRaft))
	}
	slices.Sort(took)
	return took
}

func (s sample) median() time.Duration { return s[len(s)/2] }
func (s sample) worst() time.Duration  { return s[len(s)-1] }

func (s sample) mean() (mean time.Duration) {
	for _, took := range s {
		mean += took / time.Duration(len(s))
	}
	return mean
}

// TestElectionTimes compares the time to elect a leader with the dissertation's: what its text
// says, or medians read off the curves of its figures.
//
// Published figures are of 1,000 trials, these of 200. A mean or median of so many is off by
// 5 % (one deviation) where elections split, and "roughly 15 ms" may be 2 ms off: a tenth of the
// shortest times. So 15 % are allowed. A rule of split votes that was wrong by one voter would
// double or halve the times of the narrow ranges.
func TestElectionTimes(t *testing.T) {
	t.Parallel()
	table := "timeouts   published       as Raft: mean median worst  as it is: mean median worst\n"
	for _, c := range []struct {
		election
		median, mean, within time.Duration // published
	}{
		{election: onALAN(150*ms, 155*ms), median: 287 * ms},
		{election: onALAN(150*ms, 175*ms), median: 141 * ms},
		{election: onALAN(150*ms, 200*ms), median: 146 * ms, within: 1000 * ms},
		{election: onALAN(150*ms, 300*ms), median: 171 * ms, within: 1000 * ms},
		{election: onALAN(12*ms, 24*ms), mean: 35 * ms, within: 2 * 152 * ms},
		{election: onALAN(25*ms, 50*ms), median: 44 * ms},
		{election: onALAN(50*ms, 100*ms), median: 67 * ms},
		{election: onALAN(100*ms, 200*ms), median: 121 * ms},
		{election: onAWAN(1), mean: 475 * ms, within: 1500 * ms},
		{election: onAWAN(2), mean: 650 * ms, within: 3000 * ms},
	} {
		name := fmt.Sprintf("%d-%d", c.least.Milliseconds(), c.most.Milliseconds())
		raft, ours := c.sample(t, 200, true), c.sample(t, 60, false)
		published := fmt.Sprintf("median %3d", c.median.Milliseconds())
		if c.mean != 0 {
			published = fmt.Sprintf("mean   %3d", c.mean.Milliseconds())
			require.InEpsilon(t, c.mean, raft.mean(), .15, name)
		} else {
			require.InEpsilon(t, c.median, raft.median(), .15, name)
		}
		if c.within != 0 {
			require.LessOrEqual(t, raft.worst(), c.within, name)
		}
		// Who sees that it has lost need not wait for a timeout; the same except for chance if no
		// votes split.
		require.Less(t, ours.mean(), raft.mean()+raft.mean()/10, name)
		table += fmt.Sprintf("%-10s %-15s %13d %6d %5d %15d %6d %5d\n", name, published,
			raft.mean().Milliseconds(), raft.median().Milliseconds(), raft.worst().Milliseconds(),
			ours.mean().Milliseconds(), ours.median().Milliseconds(), ours.worst().Milliseconds())
	}
	t.Log("ms without a leader, five servers; 300-600 with one and two failed\n" + table)
}

// TestElectionsWithoutRandomness: with equal timeouts the dissertation's servers elected nobody
// within 10 s. Refusals, and how long each takes, keep them apart here.
func TestElectionsWithoutRandomness(t *testing.T) {
	t.Parallel()
	for _, took := range onALAN(150*ms, 150*ms).sample(t, 10, true) {
		require.Equal(t, patience, took)
	}
	require.Less(t, onALAN(150*ms, 150*ms).sample(t, 100, false).worst(), time.Second)
}
