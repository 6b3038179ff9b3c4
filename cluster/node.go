package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster/internal/diagnosis"
	"github.com/bmqelect/bmqelect/cluster/internal/gossip"
	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/base/limit"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Node is a running member of a cluster.
type Node struct {
	cfg      Config
	log      hclog.Logger // never blocks
	lines    *logLines    // of log
	started  time.Time
	clock    clock.Clock
	testGate func() // of a test, before the driver does anything
	testStep func(testhook.Step)
	entropy  func() uint64 // of a test, or the global source
	dead     func() bool   // of a test: the process counts as killed

	store     *store.Store
	persister *persister
	mesh      *netmesh.Mesh
	diagnosis *diagnosis.Diagnosis
	gossip    *gossip.Gossip // nil where a test names the peers
	members   members        // as gossip knows them
	remember  *rememberer    // nil where a test names the peers
	recorder  *recorder
	watcher   *deadlineWatcher
	hub       hub
	measure   *measure
	election  *Election // the default one
	paused    atomic.Pointer[pause]

	credentials *credentials // nil without TLS

	emergencies []EmergencyStatus // as at the start
	lost        []NodeID          // whom they keep from voting

	inbox         chan event
	waiting       waitingGroups // elections with requests for the driver
	linked        chan struct{} // has an element after a link came up: for the lookout
	quit          chan struct{} // closed to end driver and persister
	driverDone    chan struct{} // closed when the driver has ended
	persisterDone chan struct{} // closed when the persister has ended
	unwatch       chan struct{} // closed to end the deadline watcher
	watcherDone   chan struct{} // closed when it has ended

	// The driver owns what follows.
	// the elections that are open, by name
	groups map[string]*group
	// names of elections that are being opened
	opening map[string]bool
	// elections that were closed while their work goes on
	closed      map[string]*group
	ticks       timerQueue                                            // of groups
	send        func(to NodeID, group string, m elector.Message) bool // the mesh's
	processes   map[NodeID]process                                    // of voters
	anomalies   map[string]int                                        // by kind
	lastAnomaly map[string]time.Time                                  // by kind
	logged      limit.Log[anomalyOf]                                  // anomalies
	leaving     bool                                                  // Close has begun
	// the age at which the driver began to wait for what comes next
	rested time.Duration
	heldAt elector.Time // the tick for which held was called last
	// Meta of the peers to which there is a link
	up map[NodeID]string
	// those of them that act as voters without being any, which was logged
	unentitled map[NodeID]bool
	// the longest to a voter, as the elections were told; 0 if unknown
	roundTrip time.Duration
	// of the links from the voters, which all elections share
	quality *elector.Links
	// cutWork are the leaderships whose work may go on although their election has ended
	// on this node. When the driver has ended, close owns it.
	cutWork []*Leadership

	ending      sync.Once
	done        chan struct{} // closed when the node takes part no longer
	why         error         // why that is; set before done is closed
	closing     sync.Once
	closeCtx    context.Context // ends when Close is to wait no longer
	cancelClose context.CancelCauseFunc
	closeErr    error
	gone        chan struct{} // closed when Close is done
	stage       atomic.Value  // a string: what Close waits for
	// until is when the guarded work that a closed node left behind must have stopped;
	// nil if there is none.
	until    atomic.Pointer[time.Time]
	released chan struct{} // closed when the data directory is free again
}

// ErrClosed is what a closed node answers.
var ErrClosed = errors.New("the node is closed")

// Start starts a node and returns at once; a leader is found or elected in the
// background. ctx governs the start only: end the node with Close. If a node of this
// process was closed while its guarded work went on, Start waits for its data
// directory, at most until that work's deadline or until ctx ends: see Close.
//
// The error names everything that is wrong with cfg, or what could not be had:
// a directory in use, a port that is taken, a state file that is damaged. Start
// returns at most a second after ctx has ended; a disk that hangs keeps what was
// begun, which is undone when the disk goes on.
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
		case <-time.After(cleanupTimeout):
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
		cfg: cfg, log: lines.logger().With("node", cfg.Node), lines: lines, started: time.Now(),
		clock: hooks.Clock, testGate: hooks.Gate, testStep: hooks.Stepped,
		entropy: hooks.Entropy, dead: hooks.Dead,
		measure: newMeasure(),
		// TCP keeps order: a heartbeat that is late holds up those behind it.
		quality: elector.NewLinks(cfg.Voters, true),
		inbox:   make(chan event, inboxSize), waiting: waitingGroups{ready: make(chan struct{}, 1)},
		linked: make(chan struct{}, 1),
		quit:   make(chan struct{}), driverDone: make(chan struct{}), persisterDone: make(chan struct{}),
		unwatch: make(chan struct{}), watcherDone: make(chan struct{}),
		groups: map[string]*group{}, opening: map[string]bool{}, closed: map[string]*group{},
		up: map[NodeID]string{}, unentitled: map[NodeID]bool{}, processes: map[NodeID]process{},
		anomalies: map[string]int{}, lastAnomaly: map[string]time.Time{},
		done: make(chan struct{}), gone: make(chan struct{}), released: make(chan struct{}),
	}
	if n.clock == nil {
		n.clock = clock.System()
	}
	n.watcher = newDeadlineWatcher(n.clock)
	n.closeCtx, n.cancelClose = context.WithCancelCause(context.Background())
	return n
}

// start acquires what the node runs on; what it has it releases if the rest
// cannot be had.
func (n *Node) start(ctx context.Context) (err error) {
	s := testhook.From(ctx)
	undo := []func(){func() { _ = n.lines.close(canceled) }}
	defer func() {
		if err != nil {
			for i := range undo {
				undo[len(undo)-1-i]()
			}
		}
	}()
	if n.store, err = n.openDir(ctx, s.Disk); err != nil {
		return err
	}
	undo = append(undo, func() { n.store.Close() })
	if err := n.heedEmergencies(); err != nil {
		return err
	}
	n.loadPause()
	if n.cfg.MinTerm > 0 {
		n.log.Info("minimum term configured", "min-term", n.cfg.MinTerm)
	}
	g, err := n.newGroup(DefaultGroup, n.cfg.Election)
	if err != nil {
		return err
	}
	n.election = &Election{n, g}
	n.persister = newPersister(n.persist, n.onPersisted)
	n.persister.forget, n.persister.check = n.store.Forget, n.store.Check
	n.recorder = n.newRecorder()
	n.record(recording.Record{Kind: recording.Started, Identity: n.store.Identity().String()})
	n.diagnosis = diagnosis.New(diagnosis.Config{
		Node: n.cfg.Node, Voters: n.cfg.Voters, Lost: n.lost, Settings: n.cfg.Agreed(),
		MaxDriftPPM: n.cfg.Election.Timing.ClockDriftPPM, Logger: n.log.Named("mesh"),
	})
	if n.credentials, err = openCredentials(&n.cfg); err != nil {
		return err
	}
	n.mesh, err = netmesh.Listen(n.meshConfig(s.Network), n.diagnosis.Handler(meshHandler{n}))
	if err != nil {
		return err
	}
	undo = append(undo, func() { n.mesh.Close(canceled) })
	n.send = n.mesh.Send
	n.enterElection(g)
	go n.drive()
	go n.recorder.run(n.quit)
	go func() { defer close(n.persisterDone); n.persister.run(n.quit) }()
	go func() {
		defer close(n.watcherDone)
		n.watcher.run(func(g *group) { n.feed(g, leadership.Tick{}) }, n.unwatch)
	}()
	undo = append(undo, n.stopWatcher, n.stopDriver)
	if err := n.join(s.Peers); err != nil {
		return err
	}
	n.logStart()
	go n.lookout()
	go n.watchCredentials()
	return nil
}

// logStart says in one line what this node is and where it can be reached.
func (n *Node) logStart() {
	fields := []any{"version", n.cfg.Version, "mesh", n.mesh.Addr().String()}
	if n.gossip != nil {
		fields = append(fields, "gossip", n.gossip.Local().GossipAddr)
	}
	if n.gossip != nil {
		fields = append(fields, "gossip-encryption", n.gossipEncryption(), "join", n.cfg.Join)
	}
	if n.credentials != nil {
		fields = append(fields, "accept-plain", n.credentials.ofMesh().AcceptPlain)
	}
	n.log.Info("node started", append(fields, "admin", n.cfg.AdminAddr, "data-dir", n.cfg.DataDir,
		"voters", n.cfg.Voters, "role", n.cfg.Role())...)
}

func (n *Node) openStore(disk store.Disk) (*store.Store, error) {
	owner := store.Owner{Cluster: n.cfg.Cluster, Node: string(n.cfg.Node)}
	if disk != nil {
		return store.OpenOn(n.cfg.DataDir, owner, disk)
	}
	return store.Open(n.cfg.DataDir, owner)
}

func (n *Node) meshConfig(network netmesh.Network) netmesh.Config {
	cfg := netmesh.Config{
		Cluster: n.cfg.Cluster, Node: n.cfg.Node,
		Identity: n.store.Identity(), Boot: n.store.Boot(), Identities: n.store.Identities(),
		Bind: n.cfg.MeshAddr, Advertise: n.cfg.AdvertiseMesh, Network: network,
		Logger: n.log.Named("mesh"), Clock: n.clock, Meta: n.cfg.Meta,
		Facts: n.diagnosis.Facts(""), Inactivity: n.cfg.Election.Timing.Inactivity(),
		DeathProof: netmesh.DeathProof{Off: n.cfg.NoDeathProof, Hold: n.cfg.HoldEvidence},
	}
	if n.cfg.Faults != nil {
		cfg.Faults = n.cfg.Faults
	}
	if n.credentials != nil {
		cfg.TLS = n.credentials.ofMesh
	}
	return cfg
}

// persist runs on the persister's goroutine.
func (n *Node) persist(terms map[string]elector.Terms) error {
	return n.timed(func() error { return n.store.Persist(terms) })
}

// onPersisted runs on the persister's goroutine.
func (n *Node) onPersisted(terms map[string]elector.Terms, err error) {
	if err != nil {
		n.call(func() { n.fail(err) })
		return
	}
	n.post(event{do: func() {
		for _, name := range slices.Sorted(maps.Keys(terms)) {
			if g := n.groups[name]; g != nil {
				n.step(g, elector.Persisted{Term: terms[name].Reserved})
			}
		}
	}})
}

// fail ends this node's part in every election, for good: it can no longer keep
// what it would promise. It runs on the driver.
func (n *Node) fail(err error) {
	n.log.Error("this node takes no part any more", "error", err)
	n.endElections(fmt.Errorf("node %s takes no part any more: %w", n.cfg.Node, err))
}

// endElections ends every election at once. It runs on the driver.
func (n *Node) endElections(why error) {
	n.ending.Do(func() {
		for _, t := range slices.Clone(n.ticks) {
			t.g.close(why, true)
			n.stepRequests(t.g)
		}
		n.why = why
		close(n.done)
	})
}

// Done is closed when the node takes part no longer: closed, or failed. Err
// tells which.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns nil while the node runs, ErrClosed after Close, and otherwise why the
// node failed: its durable state can no longer be trusted, so it stopped voting.
// A failed node must still be closed.
func (n *Node) Err() error {
	select {
	case <-n.done:
		return n.why
	default:
		return nil
	}
}

// Default is the node's default election, which every node takes part in.
func (n *Node) Default() *Election { return n.election }
