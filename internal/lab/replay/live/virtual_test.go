package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

const (
	workStops = 50 * time.Millisecond // that guarded work takes to stop, in model and nodes
	look      = 10 * time.Millisecond // how often who leads is looked at
	modelRuns = 10                    // what the model may do is what it does with so many seeds
	rareRuns  = 1000                  // or with so many, if the nodes do what is rare
)

// virtualPlay plays a scenario on real nodes, in virtual time.
type virtualPlay struct {
	*testing.T
	sc      *scenario.Scenario
	c       *clustertest.Cluster
	journal journal
	faults  *faultPlan
	up      map[cluster.NodeID]*cluster.Node // with a process, paused or not
	joins   map[cluster.NodeID]bool          // those that know no voters
	shown   map[cluster.NodeID]lsn.LSN       // the newest record that each knows to be committed
	asking  sync.WaitGroup

	mu      sync.Mutex
	working map[*cluster.Node]cluster.NodeID // whose guarded work goes on
	wrong   []string
}

// playVirtual returns how a run on real nodes went, all of which do guarded work.
func playVirtual(t *testing.T, sc *scenario.Scenario) (run verdict.Run) {
	var ids []cluster.NodeID
	nodes := map[cluster.NodeID]scenario.Node{}
	for _, n := range sc.Nodes {
		ids, nodes[n.ID] = append(ids, n.ID), n
	}
	e, joins := sc.Election, map[cluster.NodeID]bool{}
	for _, n := range sc.Nodes {
		joins[n.ID] = n.Join
	}
	configure := func(cfg *cluster.Config) {
		n := nodes[cfg.Node]
		cfg.Voters = e.Voters
		cfg.Election = cluster.ElectionConfig{
			Timing: e.Timing, NotCandidate: n.NotCandidate, Priority: n.Priority, Quorum: e.Quorum,
			Rule: e.Rule, AwaitCampaign: true, Takeover: e.Takeover, Phi: e.Phi,
			UnsafeQuorum: e.UnsafeQuorum, UnsafeNoScouting: e.UnsafeNoScouting,
		}
		if joins[n.ID] {
			cfg.Voters, cfg.Election.Quorum, cfg.Join = nil, 0, []string{"a:1"}
		}
	}
	clustertest.Run(t, ids, func(t *testing.T, c *clustertest.Cluster) {
		p := &virtualPlay{T: t, sc: sc, c: c, faults: newFaultPlan(sc),
			up: map[cluster.NodeID]*cluster.Node{}, working: map[*cluster.Node]cluster.NodeID{},
			joins: joins, shown: map[cluster.NodeID]lsn.LSN{}}
		start, shift := p.begin(ids, nodes)
		for i := range sc.Timeline {
			step := &sc.Timeline[i]
			p.passUntil(start.Add(step.At))
			later := p.journal.mark(step, "")
			if note := p.act(step.Action, later); note != "" {
				later(note)
			}
		}
		p.passUntil(start.Add(sc.Duration))
		p.asking.Wait()
		h := p.journal.history(sc, start, shift)
		p.mu.Lock()
		h.Problems = append(h.Problems, p.wrong...)
		p.mu.Unlock()
		run = verdict.New(withoutRates(sc, h), h)
		if !run.Held() {
			t.Errorf("%s", failures(run)) // now, so that the cluster tells its story
		}
	}, clustertest.Configure(configure))
	return run
}

// begin lets the scenario's leader lead. Terms are shifted, as in a live run.
func (p *virtualPlay) begin(
	ids []cluster.NodeID, nodes map[cluster.NodeID]scenario.Node,
) (start time.Time, shift int64) {
	start = time.Now()
	for _, id := range ids {
		if nodes[id].Absent {
			p.c.Crash(id)
		} else {
			p.started(id)
		}
	}
	if want := p.sc.Begin.Leader; want != "" {
		if first := p.c.AwaitLeader(); first != want {
			p.NoError(p.c.Node(first).Transfer(p.Context(), want))
		}
		p.c.Await("all to follow "+string(want), func() bool {
			return !slices.ContainsFunc(ids, func(id cluster.NodeID) bool {
				return p.up[id] != nil && p.c.Node(id).Default().Status().Leader != want
			})
		})
		time.Sleep(look) // a transfer takes no time here, and is no part of the scenario
		term := p.c.Node(want).Default().Status().Term
		start, shift = time.Now(), int64(p.sc.Begin.Term)-int64(term)
	}
	p.setLinks(p.sc.AllPairs())
	return start, shift
}

func (p *virtualPlay) NoError(err error) { p.Helper(); require.NoError(p.T, err) }

// started follows a node that was started just now, and lets it do its work.
func (p *virtualPlay) started(id cluster.NodeID) {
	n := p.c.Node(id)
	events := n.Subscribe(1 << 10)
	synctest.Wait()
	p.up[id] = n
	p.journal.up(id)
	p.journal.transition(time.Now(), id, elector.Transition{To: elector.Follower,
		Reason: elector.Started, Term: n.Default().Status().Term})
	go func() {
		for e := range events.Events() {
			if e.Transition.Reason != elector.Started {
				p.journal.transition(e.Time, id, e.Transition)
			}
		}
	}()
	go n.Default().Run(context.Background(), cluster.Callbacks{
		OnStartedLeading: func(ctx context.Context, l *cluster.Leadership) error {
			p.work(ctx, n, id, l)
			return nil
		},
	})
}

// work is what no two nodes may do at once. It stops in its time once it is told to.
func (p *virtualPlay) work(
	ctx context.Context, n *cluster.Node, id cluster.NodeID, l *cluster.Leadership,
) {
	p.mu.Lock()
	if len(p.working) > 0 && !p.sc.Election.UnsafeNoScouting {
		p.wrong = append(p.wrong, fmt.Sprintf("%s begins to work beside %v", id, p.working))
	}
	p.working[n] = id
	p.mu.Unlock()
	<-ctx.Done()
	select {
	case <-time.After(workStops):
	case <-l.Done():
	}
	p.ended(n)
}

func (p *virtualPlay) ended(n *cluster.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.working, n)
}

// passUntil lets time pass, and sees that never more than one node leads.
func (p *virtualPlay) passUntil(end time.Time) {
	for left := time.Until(end); left > 0; left = time.Until(end) {
		time.Sleep(min(look, left))
		var leading []cluster.NodeID
		for id, n := range p.up {
			if n.IsLeader() {
				leading = append(leading, id)
			}
			if rec := n.Default().Record(); rec.LSN != p.shown[id] {
				p.shown[id] = rec.LSN
				p.journal.shown(id, rec.LSN, rec.Value, rec.Voters)
			}
		}
		if len(leading) > 1 && !p.sc.Election.UnsafeNoScouting {
			p.Fatalf("%v lead at one moment", leading)
		}
	}
	synctest.Wait()
}

// setLinks sets what is wrong with these directions, at both of their ends.
func (p *virtualPlay) setLinks(pairs []scenario.Pair) {
	for _, d := range pairs {
		from, to, back := p.c.Faults(d.From), p.c.Faults(d.To), scenario.Pair{From: d.To, To: d.From}
		if !p.faults.cut[d] && !p.faults.cut[back] {
			from.Heal(d.To)
			to.Heal(d.From)
		}
		if p.faults.cut[d] {
			from.Cut(d.To, fault.Out)
			to.Cut(d.From, fault.In)
		}
		for _, way := range []scenario.Pair{d, back} {
			l := p.faults.links[way]
			p.c.Faults(way.From).Delay(way.To, l.Delay, l.Jitter)
			p.c.Faults(way.From).Loss(way.To, float64(l.Loss)/1e6)
		}
	}
	p.journal.cuts(sortedPairs(p.faults.cut))
}

// act does one step of the timeline. The note says why it had no effect.
func (p *virtualPlay) act(a scenario.Action, later func(string)) (note string) {
	ctx := p.Context()
	switch a.Do {
	case "publish", "add-voter", "remove-voter", "replace-voter":
		via := cmp.Or(a.Via, p.c.Leader())
		if via == "" && len(p.up) > 0 { // the next leader is asked, as in the model
			via = slices.Min(slices.Collect(maps.Keys(p.up)))
		}
		if p.up[via] == nil {
			return "nobody leads"
		}
		p.asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, sim.AskFor)
			defer cancel()
			if err := carryOutOn(ctx, p.up[via], a); err != nil {
				later(err.Error())
			}
		})
	case "cut", "reset", "heal", "partition", "link":
		p.faults.add(a)
		for _, d := range a.Reset {
			p.c.Faults(d.From).Reset(d.To)
		}
		p.setLinks(p.sc.AllPairs())
	case "transfer":
		leader := p.c.Leader()
		if leader == "" {
			return "nobody leads"
		}
		if err := p.c.Node(leader).Transfer(ctx, a.To); err != nil {
			return err.Error()
		}
		return ""
	}
	nodes := a.Nodes
	if i := slices.Index(nodes, p.c.Leader()); a.Do == "crash" && i >= 0 {
		// In the model they die at one moment, so that none sees that the leader is dead.
		nodes = append(slices.Delete(slices.Clone(nodes), i, i+1), nodes[i])
	}
	for _, id := range nodes {
		switch n := p.c.Node(id); a.Do {
		case "crash":
			p.journal.down(id, time.Now())
			delete(p.up, id)
			p.ended(n)
			p.c.Crash(id)
		case "stop":
			p.c.Stop(id)
			synctest.Wait() // until its last event is in the journal
			p.journal.down(id, time.Now())
			delete(p.up, id)
		case "restart":
			if a.Wipe {
				p.c.Replace(id)
				p.journal.wiped(id)
			}
			p.joins[id] = p.joins[id] || a.Join
			p.c.Start(id)
			p.started(id)
		case "pause":
			p.journal.paused(id, p.sc.Election.Timing.Lease)
			p.c.Pause(id)
		case "resume":
			p.journal.up(id)
			p.c.Resume(id)
		case "step-down":
			p.NoError(n.Default().StepDown(ctx, a.Rest))
		case "unfit":
			p.NoError(n.Default().SetFit(errors.New("the scenario says so")))
		case "fit":
			p.NoError(n.Default().SetFit(nil))
		default:
			p.Fatalf("real nodes in virtual time cannot %s", a.Do)
		}
	}
	return note
}

// carryOutOn is carryOut on a node of this process.
func carryOutOn(ctx context.Context, n *cluster.Node, a scenario.Action) error {
	switch a.Do {
	case "publish":
		_, err := n.Default().Publish(ctx, []byte(a.Value), cluster.PublishOptions{})
		return err
	case "replace-voter":
		return n.ReplaceVoter(ctx, a.Remove[0], a.Add[0], cluster.VoterOptions{})
	}
	for _, id := range a.Add {
		if err := n.AddVoter(ctx, id, cluster.VoterOptions{}); err != nil {
			return err
		}
	}
	for _, id := range a.Remove {
		if err := n.RemoveVoter(ctx, id, cluster.VoterOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func failures(run verdict.Run) (text string) {
	for _, what := range append(slices.Clone(run.History.Broken), run.History.Problems...) {
		text += what + "\n"
	}
	for _, m := range run.History.Marks {
		if m.Note != "" {
			text += fmt.Sprintf("%s at %s: %s\n", m.Text, m.At, m.Note)
		}
	}
	if run.Held() {
		return ""
	}
	for _, v := range run.Verdicts {
		if !v.Held {
			text += fmt.Sprintf("expected %s, but at %s: %s\n", v.Text, v.At, v.Seen)
		}
	}
	return text
}

// notVirtual are the files that real nodes in virtual time cannot play.
var notVirtual = map[string]string{
	"clock-rates":                   "all clocks of a cluster in virtual time run at one rate",
	"inflated-term":                 "a node cannot be started with a term on its disk",
	"duplicated-and-reordered":      "the fault layer neither duplicates nor reorders frames",
	"voter-restarts-after-its-vote": "a message does not outlive the connection it was sent on",
	"voter-crash-keeps-its-vote":    "a write takes no virtual time, so that none is unfinished",
	"voter-crash-loses-its-vote":    "a write takes no virtual time, so that none is unfinished",
	"record-emergency":              "an emergency is declared by a command",
}

// behavior is what model and nodes must have in common beyond the verdict.
type behavior struct {
	turns   map[string]bool // the kinds of transitions, but how a candidate fails: rare ones differ
	leaders int             // in the end
	// Of the crashes of a leader with all links up: whether nobody followed it proofTime
	// later, and whether another led so soon that it did not wait for any promise to lapse.
	// The second is asked where a random wait is too short to hide that.
	believed, replaced []bool
}

const proofTime = 200 * time.Millisecond // above every delay of a file in which a leader crashes

// followers counts the voters that follow a node at a moment, itself included.
func followers(h *history.History, id history.NodeID, t time.Duration) (n int) {
	for i := range h.Lanes {
		s := h.Lanes[i].At(t)
		if h.Lanes[i].Voter && s.Process != history.Down && s.Leader == id {
			n++
		}
	}
	return n
}

func behaviorOf(sc *scenario.Scenario, h *history.History) behavior {
	b := behavior{turns: map[string]bool{}}
	for i, l := range h.Lanes {
		for _, t := range l.Transitions {
			if t.At >= 0 && t.From != elector.Candidate {
				b.turns[fmt.Sprintf("%s -> %s: %s", t.From, t.To, t.Reason)] = true
			}
		}
		last := h.Lanes[i].At(h.Duration)
		if last.Process == history.Up && last.Role == elector.Leader {
			b.leaders++
		}
	}
	for _, step := range sc.Timeline {
		old := h.LeaderAt(step.At - 1)
		isCut := slices.ContainsFunc(h.Cuts, func(c history.Cut) bool {
			return c.Start <= step.At && step.At < c.End
		})
		if step.Action.Do != "crash" || isCut || !slices.Contains(step.Action.Nodes, old) {
			continue
		}
		later := step.At + proofTime
		b.believed = append(b.believed, followers(h, old, later) == 0)
		timing := sc.Election.Timing
		if timing.MaxRandomWait+2*proofTime > timing.Lease-timing.HeartbeatBroadcast {
			continue
		}
		bound := later + timing.MaxRandomWait + proofTime
		b.replaced = append(b.replaced, slices.ContainsFunc(h.Reigns(later-proofTime, bound),
			func(r history.Reign) bool { return r.Leader != "" }))
	}
	return b
}

// disowned is a turn of nodes alone, since the model has no pairs: a leader whose cession was lost
// says again with its beats that it does not lead, and who is told follows no more (§16.8). Only
// where frames are lost, and leaders step down, can that happen: the files are in losesCessions.
const disowned = "FOLLOWER -> FOLLOWER: LEADER_UNAVAILABLE"

var losesCessions = map[string]bool{"loss-30-percent": true, "record-replace-under-loss": true}

// mostRaced is how many nodes the race detector can follow: it has a bound of 8128 goroutines, of
// which a link in memory takes ten, and may crash beyond it.
const mostRaced = 34

// withFewer is the scenario without those in the middle of too many nodes.
func withFewer(sc *scenario.Scenario) *scenario.Scenario {
	var gone []scenario.NodeID
	for i, n := range sc.Nodes {
		if i >= mostRaced-1 && i < len(sc.Nodes)-1 {
			gone = append(gone, n.ID)
		}
	}
	small := replay.Reduced{Without: gone}.Apply(sc)
	small.Expect = sc.Expect
	return small
}

// TestModelAndNodesAgree plays the files in the simulator and on real nodes, and holds both
// to the same expectations: so it tests the simulator's model of links, of proofs of death
// and of guarded work.
func TestModelAndNodesAgree(t *testing.T) {
	files, err := scenario.Find("../../../../testdata/scenarios")
	require.NoError(t, err)
	for _, file := range files {
		sc, err := scenario.Load(file)
		require.NoError(t, err)
		t.Run(sc.Name, func(t *testing.T) {
			if why := notVirtual[sc.Name]; why != "" {
				t.Skip(why)
			}
			if nodes.Raced {
				sc = withFewer(sc)
			}
			t.Parallel()
			turns := map[string]bool{}
			var model []behavior
			play := func(most int, enough func() bool) {
				for seed := sc.Seed + uint64(len(model)); len(model) < most && !enough(); seed++ {
					work := sim.Work{Does: true, Stops: workStops}
					run, err := replay.Simulate(sc, replay.Options{Seed: seed, Work: work})
					require.NoError(t, err)
					require.Empty(t, failures(run), "the model with seed %d", seed)
					b := behaviorOf(sc, run.History)
					maps.Copy(turns, b.turns)
					model = append(model, b)
				}
			}
			play(modelRuns, func() bool { return false })
			real := behaviorOf(sc, playVirtual(t, sc).History)
			like := func(get func(behavior) any) {
				t.Helper()
				same := func(b behavior) bool { return reflect.DeepEqual(get(b), get(real)) }
				found := func() bool { return slices.ContainsFunc(model, same) }
				play(rareRuns, found) // the nodes may have done what is rare
				require.True(t, found(), "no run of the model has %v", get(real))
			}
			for turn := range real.turns {
				if turn == disowned && losesCessions[sc.Name] {
					continue
				}
				play(rareRuns, func() bool { return turns[turn] })
				require.Contains(t, turns, turn, "the model never does that")
			}
			like(func(b behavior) any { return b.leaders })
			like(func(b behavior) any { return b.believed })
			like(func(b behavior) any { return b.replaced })
		})
	}
}

// A scenario selects phi, for the model and for real nodes: with its pause the followers wait for
// 2.8 s from the last heartbeat of a leader, where the miss count would for 1.5 s.
func TestPhiDecidesHowLongALeaderIsFollowed(t *testing.T) {
	sc, err := scenario.Parse("phi.yaml", []byte(`
name: phi
about: The leader stops.
source: a test
nodes: [a, b, c]
elector: {phi: {pause: 2s}}
begin: {leader: a, term: 10}
duration: 40s
timeline:
  - {at: 10s, pause: [a]}
  - {at: 20s, resume: [a]}
expect:
  - {to: 10s, leader: a, term: 10}
  - {from: 13s, leader_within: 5s}
  - {from: 21s, leader: [b, c], followers: [a]}
  - {leader_changes: 1}
`))
	require.NoError(t, err)
	processes := (&run{sc: sc}).config("", Options{}).Options
	require.Equal(t, sc.Election.Phi.String(), processes["phi"])
	model, err := replay.Simulate(sc, replay.Options{Seed: 1})
	require.NoError(t, err)
	for name, run := range map[string]verdict.Run{"model": model, "nodes": playVirtual(t, sc)} {
		require.Empty(t, failures(run), name)
		require.Equal(t, 3, followers(run.History, "a", 12*time.Second), name)
		require.Equal(t, 1, followers(run.History, "a", 13*time.Second), "%s: itself", name)
	}
}
