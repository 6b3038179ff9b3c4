package cluster

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/health"
	"github.com/bmqelect/bmqelect/cluster/internal/credentials"
	"github.com/bmqelect/bmqelect/cluster/internal/diagnosis"
	"github.com/bmqelect/bmqelect/cluster/internal/gossip"
	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/cluster/internal/measure"
	"github.com/bmqelect/bmqelect/cluster/internal/recorder"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Node is a running member of a cluster.
type Node struct {
	cfg   Config
	log   hclog.Logger // never blocks
	lines *logLines    // behind log
	hooks testhook.Hooks

	store       *store.Store
	loop        *loop.Loop
	election    *Election // the default one
	hub         hub
	measure     *measure.Measure
	recorder    *recorder.Recorder
	mesh        *netmesh.Mesh
	diagnosis   *diagnosis.Diagnosis
	health      *health.Monitor
	gossip      *gossip.Gossip      // nil with Config.Peers
	credentials *credentials.Newest // nil without TLS

	emergencies []EmergencyStatus // as they were at the start
	lost        []NodeID          // voters that may not vote because of them

	quit chan struct{} // closed to end the goroutines beside the loop

	closing     sync.Once
	closeCtx    context.Context // ends when a ctx of Close ends
	cancelClose context.CancelCauseFunc
	closeErr    error
	gone        chan struct{} // closed when Close is done
	stage       atomic.Value  // a string: what Close waits for
	// until is when the guarded work must have stopped that goes on after Close; nil if none does.
	until    atomic.Pointer[time.Time]
	released chan struct{} // closed when the data directory is free again
}

// ErrClosed is the error of a closed node, and of a closed election.
var ErrClosed = loop.ErrClosed

// Start starts a node and returns at once; the node finds or elects a leader in the background. ctx
// is for the start only: end the node with Close. If a node of this process was closed while its
// guarded work went on, Start waits for its data directory, at most until the deadline of that work
// or until ctx ends: see Close.
//
// The error names everything that is wrong with cfg, or the resource that was not available: a
// directory in use, a port that is taken, a state file that is damaged. Start returns at most a
// second after ctx has ended. If the disk hangs then, the start is undone when the disk goes on.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start of node %s: %w", cfg.Node, err)
	}
	n := newNode(cfg.withDefaults(), testhook.From(ctx))
	started := make(chan error, 1)
	go func() { started <- n.start(ctx) }()
	var err error
	select {
	case err = <-started:
	case <-ctx.Done():
		select {
		case err = <-started:
		case <-time.After(loop.CleanupTime):
			err = fmt.Errorf("%w: the disk or the network has not answered; the start goes on, "+
				"and is undone as soon as it can be", context.Cause(ctx))
			go func() {
				if <-started == nil {
					_ = n.Close(canceled)
				}
			}()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("start of node %s: %w", cfg.Node, err)
	}
	return n, nil
}

func newNode(cfg Config, hooks testhook.Hooks) *Node {
	lines := newLogLines(cfg.Logger)
	n := &Node{
		cfg: cfg, log: lines.logger().With("node", cfg.Node), lines: lines, hooks: hooks,
		measure: measure.New(), quit: make(chan struct{}),
		gone: make(chan struct{}), released: make(chan struct{}),
	}
	n.closeCtx, n.cancelClose = context.WithCancelCause(context.Background())
	return n
}

// start acquires the resources of the node. If one is not available it releases the others.
func (n *Node) start(ctx context.Context) (err error) {
	undo := []func(){func() { _ = n.lines.close(canceled) }}
	defer func() {
		if err != nil {
			for i := range undo {
				undo[len(undo)-1-i]()
			}
		}
	}()
	if n.store, err = n.openDir(ctx); err != nil {
		return err
	}
	undo = append(undo, func() { n.store.Close() })
	if err := n.heedEmergencies(); err != nil {
		return err
	}
	if n.cfg.MinTerm > 0 {
		n.log.Info("minimum term configured", "min-term", n.cfg.MinTerm)
	}
	n.diagnosis = diagnosis.New(diagnosis.Config{
		Node: n.cfg.Node, Voters: n.cfg.Voters, Lost: n.lost, Settings: n.cfg.Agreed(),
		MaxDriftPPM: n.cfg.Election.Timing.ClockDriftPPM, Logger: n.log.Named("mesh"),
	})
	n.recorder = recorder.New(recorder.Config{
		Dir: n.cfg.DataDir, Node: string(n.cfg.Node), Boot: n.store.Boot(), Age: n.measure.Age,
		Found: func(why string) { n.diagnosis.OfNode(findings.DiskFails, why) }, Faults: n.faults,
	})
	n.loop = n.newLoop()
	first, err := n.loop.NewElection(DefaultGroup, n.cfg.setup(n.cfg.Election))
	if err != nil {
		return err
	}
	n.election = &Election{n, first}
	n.recorder.Record(recording.Record{Kind: recording.Started, Identity: n.store.Identity().String()})
	n.credentials, err = n.cfg.credentials(n.log, func(why string) {
		n.diagnosis.OfNode(findings.Certificate, why)
	})
	if err != nil {
		return err
	}
	n.mesh, err = netmesh.Listen(n.meshConfig(), n.diagnosis.Handler(n.loop))
	if err != nil {
		return err
	}
	undo = append(undo, func() { n.mesh.Close(canceled) })
	n.watchHealth()
	undo = append(undo, n.health.Close)
	n.loop.Start(n.mesh, first)
	go n.recorder.Run(n.quit)
	undo = append(undo, n.loop.StopWatcher, n.stop)
	if err := n.join(); err != nil {
		return err
	}
	n.logStart()
	go n.lookout()
	go n.credentials.Watch(n.gossip, n.quit)
	return nil
}

// logStart logs in one line what this node is and where it can be reached.
func (n *Node) logStart() {
	fields := []any{"version", n.cfg.Version, "mesh", n.mesh.Addr().String()}
	if n.gossip != nil {
		fields = append(fields, "gossip", n.gossip.Local().GossipAddr,
			"gossip-encryption", n.gossip.Keys().Encryption(), "join", n.cfg.Join)
	}
	if n.credentials != nil {
		fields = append(fields, "accept-plain", n.credentials.Mesh().AcceptPlain)
	}
	if why := n.cfg.noDeathProof(); why != "" {
		fields = append(fields, "death-proof", why)
	}
	n.log.Info("node started", append(fields, "admin", n.cfg.AdminAddr, "data-dir", n.cfg.DataDir,
		"voters", n.cfg.Voters, "role", n.cfg.Role())...)
}

func (n *Node) newLoop() *loop.Loop {
	return loop.New(loop.Config{
		Node: n.cfg.Node, Voters: n.cfg.Voters, Lost: n.lost, Meta: n.cfg.Meta,
		MinTerm: n.cfg.MinTerm, Log: n.log, Hooks: n.hooks, Store: n.store, Measure: n.measure,
		Recorder: n.recorder, Publish: n.hub.publish,
		Prefixed: n.cfg.prefixed(), GuestLimit: n.cfg.PrefixLimit, GuestIdle: n.cfg.PrefixIdle,
		Claimed: n.diagnosis.Claimed, Differs: n.diagnosis.VotersDiffer,
	})
}

func (n *Node) openStore() (*store.Store, error) {
	owner := store.Owner{Cluster: n.cfg.Cluster, Node: string(n.cfg.Node)}
	return store.OpenOn(n.cfg.DataDir, owner, n.hooks.Disk)
}

func (n *Node) meshConfig() netmesh.Config {
	network := n.cfg.Network
	if n.hooks.Network != nil {
		network = n.hooks.Network
	}
	cfg := netmesh.Config{
		Cluster: n.cfg.Cluster, Node: n.cfg.Node,
		Identity: n.store.Identity(), Boot: n.store.Boot(), Identities: n.store.Identities(),
		Bind: n.cfg.MeshAddr, Advertise: n.cfg.AdvertiseMesh, Network: network,
		Logger: n.log.Named("mesh"), Clock: n.hooks.Clock, Meta: n.cfg.Meta, Voter: n.loop.IsVoter,
		Facts: n.diagnosis.Facts(""), Inactivity: n.cfg.Election.Timing.Inactivity(),
		DeathProof: netmesh.DeathProof{Off: n.cfg.noDeathProof() != "", Hold: n.cfg.HoldEvidence},
	}
	if n.cfg.Faults != nil {
		cfg.Faults = n.cfg.Faults
	}
	if n.credentials != nil {
		cfg.TLS = n.credentials.Mesh
	}
	return cfg
}

// Done is closed when the node is closed or has failed. Err tells which.
func (n *Node) Done() <-chan struct{} { return n.loop.Done() }

// Err returns nil while the node runs, ErrClosed after Close, and otherwise why the node failed:
// its durable state is no longer to be trusted, so it has stopped voting. A failed node must be
// closed, too.
func (n *Node) Err() error { return n.loop.Err() }

// Default is the default election, in which every node takes part.
func (n *Node) Default() *Election { return n.election }
