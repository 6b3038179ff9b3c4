// Package live plays scenarios on real processes on loopback, in real time. What
// they log becomes a history like that of a simulated run.
package live

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// Options say how a scenario is played.
type Options struct {
	Binary   string // of bmqnode
	BasePort int    // where the search for free ports begins
}

// Bounds of what a run waits for.
const (
	beginTimeout = 60 * time.Second
	stopTimeout  = 15 * time.Second
	askTimeout   = 2 * time.Second
)

// run is one run on real processes.
type run struct {
	sc      *scenario.Scenario
	mesh    *procs.Mesh
	journal *journal
	faults  *faultPlan
	paused  map[cluster.NodeID]bool // by SIGSTOP
	start   time.Time               // time 0 of the timeline
	step    time.Time               // when this step was due and the one before it was done
	shift   int64                   // from real terms to those of the scenario
	later   func(note string)       // says why this step had no effect
	asking  sync.WaitGroup
}

// Play plays a scenario and leaves nothing behind. The error is about a run that
// could not be begun or was broken off; what was seen is in the run.
func Play(ctx context.Context, sc *scenario.Scenario, o Options) (verdict.Run, error) {
	if sc.SimulatedOnly != "" {
		return verdict.Run{}, fmt.Errorf("%s cannot be played live: %s", sc.File, sc.SimulatedOnly)
	}
	dir, err := os.MkdirTemp("", "bmqnode-replay-")
	if err != nil {
		return verdict.Run{}, err
	}
	defer os.RemoveAll(dir)
	r := &run{sc: sc, journal: &journal{}, faults: newFaultPlan(sc), paused: map[cluster.NodeID]bool{}}
	r.mesh, err = procs.New(r.config(dir, o))
	if err != nil {
		return verdict.Run{}, err
	}
	watching, stop := context.WithCancel(ctx)
	r.watchRecords(watching)
	err = r.play(ctx)
	stop()
	r.asking.Wait()
	h := r.journal.history(sc, r.start, r.shift) // before the processes are stopped
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if stopErr := r.mesh.Stop(ctx); err == nil {
		err = stopErr
	}
	if err != nil {
		return verdict.Run{}, fmt.Errorf("%s: %w", sc.File, err)
	}
	return verdict.New(withoutRates(sc, h), h), nil
}

// withoutRates is the scenario without the expectations that a live run cannot
// measure; a mark in the history says which.
func withoutRates(sc *scenario.Scenario, h *history.History) *scenario.Scenario {
	reduced := *sc
	reduced.Expect = slices.DeleteFunc(slices.Clone(sc.Expect), func(e scenario.Expectation) bool {
		rate := e.Want.Key == "messages_per_second"
		if rate {
			note := "messages are not counted in a live run"
			h.Marks = append(h.Marks, history.Mark{At: e.From, Text: e.Text, Note: note})
		}
		return rate
	})
	return &reduced
}

// config is the mesh that the scenario describes.
func (r *run) config(dir string, o Options) procs.Config {
	e := r.sc.Election
	c := procs.Config{
		Binary: o.Binary, Dir: dir, BasePort: o.BasePort, OnLine: r.journal.line,
		NodeOptions: map[string]map[string]any{},
		Options: map[string]any{
			"rehearsal": true, "voters": e.Voters, "quorum": e.Quorum, "unsafe-quorum": e.UnsafeQuorum,
			"unsafe-no-scouting": e.UnsafeNoScouting, "scouting-rule": e.Rule.String(),
			"initial-wait":         e.Timing.InitialWait.String(),
			"min-random-wait":      e.Timing.MinRandomWait.String(),
			"max-random-wait":      e.Timing.MaxRandomWait.String(),
			"scouting-result":      e.Timing.ScoutingResult.String(),
			"election-result":      e.Timing.ElectionResult.String(),
			"heartbeat-broadcast":  e.Timing.HeartbeatBroadcast.String(),
			"heartbeat-miss-count": e.Timing.HeartbeatMissCount,
			"lease":                e.Timing.Lease.String(),
			"clock-drift-ppm":      e.Timing.ClockDriftPPM,
			"qos":                  e.QoS.String(),
			"phi":                  e.Phi.String(),
		},
	}
	for _, n := range r.sc.Nodes {
		c.Names = append(c.Names, string(n.ID))
		own := map[string]any{"priority": n.Priority, "not-candidate": n.NotCandidate}
		if n.Join {
			own["voters"], own["quorum"] = []string{}, 0
		}
		c.NodeOptions[string(n.ID)] = own
	}
	return c
}

// play begins the run and does what the timeline says, when it says so.
func (r *run) play(ctx context.Context) error {
	r.start = time.Now()
	var present []*procs.Node
	for _, n := range r.sc.Nodes {
		if n.Absent {
			continue
		}
		p, err := r.launch(n.ID)
		if err != nil {
			return err
		}
		present = append(present, p)
	}
	if r.sc.Begin.Leader != "" {
		if err := r.begin(ctx, present); err != nil {
			return err
		}
	}
	if !r.faults.none() {
		if err := r.pushFaults(ctx); err != nil {
			return err
		}
	}
	for i := range r.sc.Timeline {
		step := &r.sc.Timeline[i]
		r.step = time.Now()
		if due := r.start.Add(step.At); due.After(r.step) {
			r.step = due
		}
		if err := r.waitUntil(ctx, step.At); err != nil {
			return err
		}
		r.later = r.journal.mark(step, "")
		note, err := r.act(ctx, step.Action)
		if err != nil {
			return fmt.Errorf("line %d: %s: %w", step.Pos.Line, step.Text, err)
		}
		if note != "" {
			r.later(note)
		}
	}
	return r.waitUntil(ctx, r.sc.Duration)
}

// launch starts a node's process.
func (r *run) launch(id cluster.NodeID) (*procs.Node, error) {
	n, err := r.mesh.Node(string(id))
	if err != nil {
		return nil, err
	}
	r.journal.up(id)
	return n, n.Start()
}

func (r *run) waitUntil(ctx context.Context, t time.Duration) error {
	select {
	case <-time.After(time.Until(r.start.Add(t))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin waits until the scenario's leader leads, and begins the timeline then.
// Terms cannot be arranged; the difference is taken off what is seen.
func (r *run) begin(ctx context.Context, present []*procs.Node) error {
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	g, err := procs.Agree(ctx, present, nil)
	if err != nil {
		return err
	}
	if want := r.sc.Begin.Leader; g.Leader != want {
		if err := r.transfer(ctx, g.Leader, want); err != nil {
			return fmt.Errorf("begin with leader %s: %w", want, err)
		}
		g, err = procs.Agree(ctx, present, func(g cluster.GroupStatus) bool { return g.Leader == want })
		if err != nil {
			return err
		}
	}
	r.start, r.shift = time.Now(), int64(r.sc.Begin.Term)-int64(g.Term)
	return nil
}

func (r *run) transfer(ctx context.Context, from, to cluster.NodeID) error {
	return r.each([]cluster.NodeID{from}, func(n *procs.Node) error {
		return tell(ctx, n, beginTimeout, admin.TransferRequest{To: to})
	})
}

// each calls f for the processes of these nodes until one fails.
func (r *run) each(ids []cluster.NodeID, f func(*procs.Node) error) error {
	for _, id := range ids {
		n, err := r.mesh.Node(string(id))
		if err == nil {
			err = f(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answers reports whether a process is there and not paused.
func (r *run) answers(n *procs.Node) bool {
	return n.Pid() != 0 && !r.paused[cluster.NodeID(n.Name)]
}
