package replay

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// LiveOptions say how a scenario is played on real processes.
type LiveOptions struct {
	Binary   string // of bmqnode
	BasePort int    // where the search for free ports begins
}

// Bounds of what a live run waits for.
const (
	beginTimeout = 60 * time.Second
	stopTimeout  = 15 * time.Second
	askTimeout   = 2 * time.Second
)

// Live plays a scenario on real processes on loopback, in real time, and leaves
// nothing behind. The error is about a run that could not be begun or was broken
// off; what was seen is in the run.
func Live(ctx context.Context, sc *scenario.Scenario, o LiveOptions) (run report.Run, err error) {
	if sc.SimulatedOnly != "" {
		return report.Run{}, fmt.Errorf("%s cannot be played live: %s", sc.File, sc.SimulatedOnly)
	}
	dir, err := os.MkdirTemp("", "bmqnode-replay-")
	if err != nil {
		return report.Run{}, err
	}
	defer os.RemoveAll(dir)
	l := &live{sc: sc, journal: newJournal(), faults: newFaultPlan(sc), frozen: map[cluster.NodeID]bool{}}
	l.mesh, err = procs.New(l.layout(dir, o))
	if err != nil {
		return report.Run{}, err
	}
	err = l.play(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	// The end of the processes is not part of the run.
	h := l.journal.history(sc, l.start, l.shift)
	if stopErr := l.mesh.Stop(ctx); err == nil {
		err = stopErr
	}
	if err != nil {
		return report.Run{}, fmt.Errorf("%s: %w", sc.File, err)
	}
	return report.Run{History: h, Verdicts: Judge(judgeable(sc, h), h), About: sc.About}, nil
}

// judgeable is the scenario without the expectations that a live run cannot
// measure; the history says which.
func judgeable(sc *scenario.Scenario, h *history.History) *scenario.Scenario {
	reduced := *sc
	reduced.Expect = slices.DeleteFunc(slices.Clone(sc.Expect), func(e scenario.Expectation) bool {
		_, rate := e.Want.(scenario.MessageRate)
		if rate {
			h.Marks = append(h.Marks, history.Mark{At: e.From, Text: e.Text, Note: "messages are not counted in a live run"})
		}
		return rate
	})
	return &reduced
}

// live is one run on real processes.
type live struct {
	sc      *scenario.Scenario
	mesh    *procs.Mesh
	journal *journal
	faults  *faultPlan
	frozen  map[cluster.NodeID]bool // by SIGSTOP
	start   time.Time               // time 0 of the timeline
	shift   int64                   // from real terms to those of the scenario
}

// layout is the mesh that the scenario describes.
func (l *live) layout(dir string, o LiveOptions) procs.Config {
	c := procs.Config{
		Binary: o.Binary, Dir: dir, BasePort: o.BasePort, Options: l.options(),
		NodeOptions: map[string]map[string]any{}, OnLine: l.journal.line,
	}
	for _, n := range l.sc.Nodes {
		c.Names = append(c.Names, string(n.ID))
		c.NodeOptions[string(n.ID)] = map[string]any{"priority": n.Priority, "not-candidate": n.NotCandidate}
	}
	return c
}

func (l *live) options() map[string]any {
	e := l.sc.Election
	var voters []string
	for _, v := range e.Voters {
		voters = append(voters, string(v))
	}
	return map[string]any{
		"faults": true, "voters": voters, "quorum": e.Quorum, "unsafe-quorum": e.UnsafeQuorum,
		"unsafe-no-scouting": e.UnsafeNoScouting, "scouting-rule": e.Rule.String(),
		"initial-wait": e.Timing.InitialWait.String(), "max-random-wait": e.Timing.MaxRandomWait.String(),
		"scouting-result": e.Timing.ScoutingResult.String(), "election-result": e.Timing.ElectionResult.String(),
		"heartbeat-broadcast": e.Timing.HeartbeatBroadcast.String(), "heartbeat-miss-count": e.Timing.HeartbeatMissCount,
		"lease": e.Timing.Lease.String(), "clock-drift-ppm": e.Timing.ClockDriftPPM,
	}
}

// play begins the run and does what the timeline says, when it says so.
func (l *live) play(ctx context.Context) error {
	l.start = time.Now()
	for _, n := range l.sc.Nodes {
		if !n.Absent {
			if err := l.launch(n.ID); err != nil {
				return err
			}
		}
	}
	if l.sc.Begin.Leader != "" {
		if err := l.begin(ctx); err != nil {
			return err
		}
	}
	if !l.faults.none() {
		if err := l.pushFaults(ctx); err != nil {
			return err
		}
	}
	for i := range l.sc.Timeline {
		step := &l.sc.Timeline[i]
		if err := l.waitUntil(ctx, step.At); err != nil {
			return err
		}
		note, err := l.act(ctx, step.Action)
		if err != nil {
			return fmt.Errorf("line %d: %s: %w", step.Pos.Line, step.Text, err)
		}
		l.journal.mark(step, note)
	}
	return l.waitUntil(ctx, l.sc.Duration)
}

// launch starts a node's process.
func (l *live) launch(id cluster.NodeID) error {
	n, err := l.mesh.Node(string(id))
	if err != nil {
		return err
	}
	l.journal.process(id, history.Up)
	return n.Start()
}

func (l *live) waitUntil(ctx context.Context, t time.Duration) error {
	select {
	case <-time.After(time.Until(l.start.Add(t))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin waits until the scenario's leader leads, and begins the timeline then.
// Terms cannot be arranged; the difference is taken off what is seen.
func (l *live) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	present := l.present()
	g, err := procs.Agree(ctx, present, nil)
	if err != nil {
		return err
	}
	if want := l.sc.Begin.Leader; g.Leader != want {
		if err := l.transfer(ctx, g.Leader, want); err != nil {
			return fmt.Errorf("begin with leader %s: %w", want, err)
		}
		g, err = procs.Agree(ctx, present, func(g cluster.GroupStatus) bool { return g.Leader == want })
		if err != nil {
			return err
		}
	}
	l.start, l.shift = time.Now(), int64(l.sc.Begin.Term)-int64(g.Term)
	return nil
}

func (l *live) present() (nodes []*procs.Node) {
	for _, n := range l.sc.Nodes {
		if p, err := l.mesh.Node(string(n.ID)); err == nil && !n.Absent {
			nodes = append(nodes, p)
		}
	}
	return nodes
}

func (l *live) transfer(ctx context.Context, from, to cluster.NodeID) error {
	n, err := l.mesh.Node(string(from))
	if err != nil {
		return err
	}
	c := n.Client()
	defer c.Close()
	_, err = c.Transfer(ctx, admin.TransferRequest{To: to})
	return err
}
