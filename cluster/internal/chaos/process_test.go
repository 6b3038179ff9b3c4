package chaos

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/internal/base/clock"
)

// process is one process of a member, or of a copy of it.
type process struct {
	m      *member
	w      *world
	host   string
	name   string // unique
	disk   *disk
	dice   *dice
	gate   *gate
	isCopy bool
	life   context.Context // ends when it is killed
	end    context.CancelFunc

	mu      sync.Mutex
	node    *cluster.Node // nil before it has started
	boot    uint64
	closing bool
	gone    bool // nothing of it is left but work that goes on
	err     error
}

func (w *world) newProcess(m *member, host, name string, d *disk) *process {
	p := &process{
		m: m, w: w, host: host, name: name, disk: d, dice: w.dice(name), gate: &gate{},
	}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// run starts the node, and all that belongs to it.
func (p *process) run() {
	log := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	log.RegisterSink(ear{p})
	cfg := cluster.Config{
		Node: p.m.id, Voters: p.w.voters, DataDir: p.disk.dir, MeshAddr: p.host + ":7401", Logger: log,
		Election: cluster.ElectionConfig{Timing: p.w.timing},
	}
	peers := map[cluster.NodeID]string{}
	for _, id := range p.w.voters {
		peers[id] = string(id) + ":7401"
	}
	ctx := testhook.With(p.life, testhook.Hooks{
		Network: p.w.net.Host(p.host), Clock: gatedClock{clock.Process(), p.gate}, Peers: peers,
		Hold: p.hold, Dead: p.isKilled, Disk: func(write func() error) error { return p.disk.write(p, write) },
		Entropy: p.w.dice(p.name + " entropy").uint64,
	})
	n, err := cluster.Start(ctx, cfg)
	if err != nil {
		p.w.judge.note("%s does not start: %v", p.name, err)
		p.set(func() { p.gone, p.err = true, err })
		return
	}
	boot := n.Status().Boot
	p.set(func() { p.node, p.boot = n, boot })
	if p.isKilled() {
		p.cleanUp()
		return
	}
	p.w.judge.started(p)
	go p.follow(n.Subscribe(256))
	go p.work()
}

// hold is called by the driver before everything that it does.
func (p *process) hold() {
	if !p.isKilled() {
		p.gate.pass()
		p.w.judge.look()
	}
}

func (p *process) follow(events *cluster.Subscription) {
	for e := range events.Events() {
		p.w.judge.transition(p, e)
	}
}

// kill ends the process without a word from it.
func (p *process) kill() {
	if p.isKilled() {
		return
	}
	p.w.judge.note("%s is killed", p.name)
	p.end()
	held := p.w.judge.killed(p)
	p.w.net.Kill(p.host)
	p.gate.open()
	up := p.isUp()
	go func() {
		for _, l := range held {
			l.Release()
		}
		if up {
			p.cleanUp()
		}
	}()
}

// cleanUp ends what a killed process left in this one. Nobody hears what it says.
func (p *process) cleanUp() {
	err := p.node.Close(p.life)
	p.set(func() { p.gone, p.err = true, err })
}

// close closes the node, with so much patience.
func (p *process) close(patience time.Duration) {
	if !p.isUp() || p.isKilled() {
		return
	}
	p.set(func() { p.closing = true })
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		done := p.w.judge.closes(p, patience)
		err := p.node.Close(ctx)
		done(err)
		p.set(func() { p.gone, p.err = true, err })
	}()
}

// pause stops the process as SIGSTOP does.
func (p *process) pause() {
	p.w.judge.pauses(p)
	p.w.net.Stop(p.host)
}

func (p *process) resume() {
	if p.isPaused() {
		p.w.net.Continue(p.host)
		p.gate.open()
	}
}

func (p *process) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *process) get(is func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return is()
}

// isUp reports whether the node has started, and nobody closes it yet.
func (p *process) isUp() bool {
	return p.get(func() bool { return p.node != nil && !p.closing && !p.gone })
}

func (p *process) isGone() bool   { return p.get(func() bool { return p.gone }) }
func (p *process) isPaused() bool { return p.gate.isShut() }
func (p *process) isKilled() bool { return p.life.Err() != nil }

// failed reports whether the node has ended its part by itself.
func (p *process) failed() bool { return p.isUp() && p.node.Err() != nil }

// gatedClock holds up all who ask a stopped process's clock.
type gatedClock struct {
	clock.Clock
	gate *gate
}

func (c gatedClock) Now() time.Duration {
	c.gate.pass()
	return c.Clock.Now()
}

// gate holds up whoever passes while it is shut.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil if the gate is open
}

func (g *gate) pass() {
	for opened := g.wait(); opened != nil; opened = g.wait() {
		<-opened
	}
}

func (g *gate) isShut() bool { return g.wait() != nil }

func (g *gate) wait() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}
