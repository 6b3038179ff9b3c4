package published

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/internal/lab/compare"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/lsn"
)

// raftElection is how section 9.3 of Ongaro's dissertation measures the time without a leader: of
// five servers, whose timeouts are uniform between least and most, some fail.
//
// On the LAN (LogCabin; 1,000 trials, 100 of 150-150) the leader crashes at a random moment between
// two heartbeats, which it sends to all at once, two in the least timeout. The logs of the four
// others differ in length, so that two of them cannot win. Time runs from the crash until all
// others have the first heartbeat of the new leader.
//
// On the WAN (AvailSim; 10,000 trials) every message takes 30 to 40 ms, and nothing else takes
// time. There time runs from the last heartbeat of the old leader until a server wins, as that
// simulator's source says. Logs are equal, or differ (section 9.4).
type raftElection struct {
	least, most time.Duration
	failed      int // servers, the leader among them
	wan, differ bool
}

// What the LAN's text leaves open is how the "roughly 15 ms" of a broadcast (the way to the voters,
// their disks, and the way back) are spread, and how much of them passes before a voter knows of a
// request: LogCabin, as of August 2014, writes its own vote to its disk before it asks. Read off
// the published curves: the fastest elections take 9 ms beyond half the least timeout. So a
// broadcast takes 9 to 15 ms here. Fitted is one figure: 2 to 4 ms of it pass before a voter knows,
// since 29 % of the elections with 150-155 ms succeed at once. Heartbeats take what a LAN takes.
const (
	raftRequest, raftRequestMore = 2 * time.Millisecond, 2 * time.Millisecond
	raftVote, raftVoteMore       = 7 * time.Millisecond, 4 * time.Millisecond
	raftWay                      = 100 * time.Microsecond

	raftAtOnce  = 0.29 // the fitted figure: the first step of the curve of 150-155 ms
	raftLongest = time.Minute
)

func (e raftElection) name() string {
	name := fmt.Sprintf("%d-%d ms", e.least.Milliseconds(), e.most.Milliseconds())
	if e.wan {
		name += fmt.Sprintf("; %d failed", e.failed)
	}
	if e.wan && e.differ {
		name += "; logs differ"
	}
	return name
}

func raftElections() (all []raftElection) {
	const ms = time.Millisecond
	for _, r := range [][2]time.Duration{{150, 150}, {150, 151}, {150, 155}, {150, 175}, {150, 200},
		{150, 300}, {100, 200}, {50, 100}, {25, 50}, {12, 24}} {
		all = append(all, raftElection{least: r[0] * ms, most: r[1] * ms, failed: 1, differ: true})
	}
	for _, differ := range []bool{false, true} {
		for failed := 1; failed <= 2; failed++ {
			all = append(all, raftElection{300 * ms, 600 * ms, failed, true, differ})
		}
	}
	return all
}

// raftFailure is one failure of a leader, and the election that follows.
type raftFailure struct {
	raftElection
	t    testing.TB
	sim  *sim.Sim
	rng  *rand.Rand
	logs map[elector.NodeID]int // their lengths, from the crash on; equal before

	term  lsn.Term                // of the last leader
	gone  time.Duration           // since when there is none
	heard map[elector.NodeID]bool // whom the new leader's heartbeat has reached
	took  time.Duration           // until there was one again; 0: there is none
}

// raftServer is Raft, but with timeouts up to most and not up to twice the least, and with logs
// that may differ in length: to a voter with a longer one, a candidate's looks old.
type raftServer struct {
	algorithm.Machine
	f    *raftFailure
	self elector.NodeID
}

// Step scales the entropy down, so that timeouts end at most.
func (s raftServer) Step(
	now algorithm.Time, entropy uint64, in algorithm.Input,
) algorithm.Effects {
	hi, lo := bits.Mul64(entropy, uint64(s.f.most-s.f.least))
	part, _ := bits.Div64(hi, lo, uint64(s.f.least))
	if got, ok := in.(algorithm.Received); ok && s.f.logs[got.From] < s.f.logs[s.self] {
		if m := got.Message.(raft.Message); m.Kind == raft.RequestVote {
			m.LastLogTerm = 0
			in = algorithm.Received{From: got.From, Message: m}
		}
	}
	return s.Machine.Step(now, part, in)
}

// play plays one failure until there is a leader again.
func (e raftElection) play(t testing.TB, seed uint64) *raftFailure {
	f := &raftFailure{raftElection: e, t: t, rng: rand.New(rand.NewPCG(seed, 3))}
	ids, a := members(5), raft.Basic
	a.New = func(cfg algorithm.Config) algorithm.Machine {
		return raftServer{raft.Basic.New(cfg), f, cfg.Self()}
	}
	cfg := sim.Config{Seed: seed, Algorithm: a, LinkTimeout: 24 * time.Hour, Observer: f.observe,
		Network: sim.Faults{Delay: raftWay}, Redial: time.Millisecond}
	for _, id := range ids {
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{Absent: true, Elector: elector.Config{
			Self: id, Voters: ids, Timing: elector.Timing{
				InitialWait: time.Second, MaxRandomWait: time.Second, ScoutingResult: time.Second,
				ElectionResult: time.Second, HeartbeatBroadcast: e.least / 2, HeartbeatMissCount: 2,
				Lease: e.least,
			}}})
	}
	s, err := sim.New(cfg)
	require.NoError(t, err)
	f.sim = s
	f.establish(ids)
	f.crash(ids)
	for f.took == 0 && s.Now() < f.gone+raftLongest {
		require.NoError(t, s.RunUntil(s.Now()+e.least))
	}
	return f
}

// establish makes the first server lead: it starts early, so that it wins even if timeouts do not
// differ.
func (f *raftFailure) establish(ids []elector.NodeID) {
	pass := func(d time.Duration) { require.NoError(f.t, f.sim.RunUntil(f.sim.Now()+d)) }
	for i, id := range ids {
		pass(time.Duration(min(i, 1)) * f.least / 8)
		require.NoError(f.t, f.sim.Restart(id))
	}
	pass(20*f.most + time.Duration(f.rng.Int64N(int64(f.least/2))))
}

// crash lets servers fail, the leader first. It has the longest log, if they differ.
func (f *raftFailure) crash(ids []elector.NodeID) {
	leader, ok := f.sim.Leader()
	require.True(f.t, ok)
	first := slices.Index(ids, leader)
	for i := range f.failed {
		require.NoError(f.t, f.sim.Crash(ids[(first+i)%5], sim.Crash{Silent: true}))
	}
	f.logs = map[elector.NodeID]int{}
	for length, i := range f.rng.Perm(4) {
		if f.differ {
			f.logs[ids[(first+1+i)%5]] = length
		}
	}
	if f.heard = map[elector.NodeID]bool{}; !f.wan {
		f.gone = f.sim.Now()
	}
}

func (f *raftFailure) observe(e *sim.Event) {
	m, _ := e.Message.(raft.Message)
	switch {
	case f.took != 0:
	case f.logs == nil && e.Kind == sim.EventTransition && e.Transition.To == elector.Leader:
		f.term = e.Transition.Term
	case f.wan && e.Kind == sim.EventDelivered && m.Kind == raft.AppendEntries && m.Term == f.term:
		f.gone = e.At
	case f.logs == nil:
	case e.Kind == sim.EventSent:
		f.delay(e, m.Kind)
	case f.wan && e.Kind == sim.EventTransition && e.Transition.To == elector.Leader:
		f.took = e.At - f.gone
	case !f.wan && e.Kind == sim.EventDelivered && m.Kind == raft.AppendEntries && m.Term > f.term:
		if f.heard[e.Node] = true; len(f.heard) == 4-f.failed {
			f.took = e.At - f.gone
		}
	}
}

// delay makes a message that is being sent take its time.
func (f *raftFailure) delay(sent *sim.Event, kind raft.Kind) {
	const ms = time.Millisecond
	takes, more := raftWay, time.Duration(0)
	switch {
	case f.wan:
		takes, more = 30*ms, 10*ms
	case kind == raft.RequestVote:
		takes, more = raftRequest, raftRequestMore
	case kind == raft.RequestVoteResponse:
		takes, more = raftVote, raftVoteMore
	}
	takes += time.Duration(f.rng.Int64N(int64(more) + 1))
	require.NoError(f.t, f.sim.SetFaults(sent.Node, sent.Peer, sim.Faults{Delay: takes}))
}

// trials plays all, and returns how long each took, in ms and sorted: infinitely, if it did not
// end.
func (e raftElection) trials(t testing.TB) (took []float64) {
	n := 1000
	if e.least == e.most {
		n = 100
	}
	for seed := range n {
		ms := e.play(t, uint64(seed)+1).took.Seconds() * 1000
		if ms == 0 {
			ms = math.Inf(1)
		}
		took = append(took, ms)
	}
	slices.Sort(took)
	return took
}

// raftQuantiles are the columns of raft-published.csv: read off the curves of the dissertation's
// source (benchmarks-randomness.svg, benchmarks-scale.svg, multi-submission-failures*.svg).
var raftQuantiles = []float64{.01, .05, .1, .25, .5, .75, .9, .95, .99}

// quantile is that of sorted values. Its interval is between two of them: how many of n are below
// the true one is binomial.
func quantile(sorted []float64, q float64) compare.Estimate {
	n := float64(len(sorted))
	at := func(rank float64) float64 {
		return sorted[int(min(max(math.Ceil(rank)-1, 0), n-1))]
	}
	half := 1.96 * math.Sqrt(n*q*(1-q))
	return compare.Estimate{Mean: at(n * q), Low: at(n*q - half), High: at(n*q + half)}
}

// raftSample are the rows that are played always.
var raftSample = []string{"150-155 ms", "25-50 ms", "300-600 ms; 1 failed; logs differ"}

// TestPublishedRaft requires that the figures of a sample are those of the file, and that all of
// the file have the shape of what was published.
func TestPublishedRaft(t *testing.T) {
	t.Parallel()
	var all figures
	for i, line := range readCSV(t, "raft-published.csv") {
		e := raftElections()[i]
		require.Equal(t, line[0], e.name())
		if !*update && !slices.Contains(raftSample, e.name()) {
			continue
		}
		took, group := e.trials(t), "LAN"
		if e.wan {
			group = "WAN, simulated"
		}
		if e.name() == "150-155 ms" {
			once, _ := slices.BinarySearch(took, 215)
			require.InDelta(t, raftAtOnce, float64(once)/float64(len(took)), .05, "what is fitted")
		}
		here := []compare.Estimate{}
		for _, q := range raftQuantiles {
			here = append(here, quantile(took, q))
		}
		here = append(here, single(took[len(took)-1]), mean(took))
		for k, e := range here {
			column := raftColumns()[k]
			if line[1+k] != "" {
				all.add(group, line[0], column, "published", single(number(t, line[1+k])))
			}
			all.add(group, line[0], column, "here", e)
		}
	}
	requireRaftsShape(t, all.sample(t, "raft.csv"))
}

// requireRaftsShape demands what was published. Where timeouts differ by 1 ms at most, clocks and
// threads of real servers make a difference that is not here: 150-150 splits for ever here, and for
// 10 s or more there; 150-151 takes three times as long.
func requireRaftsShape(t *testing.T, all figures) {
	at := func(row, figure, series string) float64 {
		for key, e := range all.values {
			if key[1] == row && key[2] == figure && key[3] == series {
				return e.Mean
			}
		}
		require.Fail(t, "no such figure", "%s, %s, %s", row, figure, series)
		return 0
	}
	for _, line := range readCSV(t, "raft-published.csv")[2:] {
		for _, column := range raftColumns()[1:7] { // 5 to 90 %
			off := .30 // with 150-155 ms, a step of the curve is there
			switch wan := strings.Contains(line[0], "failed"); {
			case wan:
				off = .10
			case column == "50 %" && line[0] != "12-24 ms":
				off = .08
			}
			require.InEpsilon(t, at(line[0], column, "published"), at(line[0], column, "here"), off,
				"%s, %s", line[0], column)
		}
	}
	for _, series := range []string{"published", "here"} {
		require.Greater(t, at("150-150 ms", "5 %", series), 10_000., series)
		rows := []string{"150-150 ms", "150-151 ms", "150-155 ms", "150-300 ms", "150-200 ms",
			"150-175 ms", "100-200 ms", "50-100 ms", "25-50 ms", "12-24 ms"}
		for i, row := range rows[1:] {
			require.Greater(t, at(rows[i], "50 %", series), at(row, "50 %", series), "%s: %s", series, row)
		}
	}
	first, last := at("150-155 ms", "25 %", "here"), at("150-155 ms", "50 %", "here")
	require.Greater(t, last-first, 75., "a step of a timeout is between those at once and the others")
}

func raftColumns() (names []string) {
	for _, q := range raftQuantiles {
		names = append(names, fmt.Sprintf("%.0f %%", 100*q))
	}
	return append(names, "longest", "mean")
}
