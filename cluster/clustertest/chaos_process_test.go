package clustertest

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/cluster/internal/testprocess"
)

// process is one process of a member, or of a copy of it.
type process struct {
	*testprocess.Process
	m      *supervised
	w      *world
	host   string
	name   string // unique
	disk   *disk
	dice   *dice
	writes *dice // what becomes of them
	isCopy bool

	mu      sync.Mutex
	node    *cluster.Node // nil before it has started
	boot    uint64
	closing bool
	gone    bool // nothing is left of it except work that goes on
	err     error
}

func (w *world) newProcess(m *supervised, host, name string, d *disk) *process {
	return &process{
		Process: testprocess.New(w.net, host),
		m:       m, w: w, host: host, name: name, disk: d, dice: newDice(w.schedule.seed, name),
		writes: newDice(w.schedule.seed, name+" writes"),
	}
}

// run starts the node and its application.
func (p *process) run() {
	log := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	log.RegisterSink(ear{p})
	cfg := p.w.configure(p.m.member)
	cfg.Logger, cfg.DataDir, cfg.MeshAddr = log, p.disk.dir, p.host+":7401"
	ctx := p.Context(testhook.Hooks{
		Clock: p.Clock(), Peers: p.w.peers, Gate: p.w.judge.look,
		Disk:    func(write func() error) error { return p.disk.write(p, write) },
		Entropy: newDice(p.w.schedule.seed, p.name+" entropy").Uint64,
		Stepped: func(s testhook.Step) { p.w.statement.stepped(p, s) },
	})
	n, err := cluster.Start(ctx, cfg)
	if err != nil {
		p.w.judge.note("%s does not start: %v", p.name, err)
		p.set(func() { p.gone, p.err = true, err })
		return
	}
	boot := n.Status().Boot
	p.set(func() { p.node, p.boot = n, boot })
	if p.Killed() {
		p.cleanUp()
		return
	}
	p.w.judge.started(p)
	go p.follow(n.Subscribe(256))
	if p.w.byRun() {
		go p.workByRun()
	} else {
		go p.work()
	}
	if p.w.keeps && !p.isCopy {
		go p.publishAll()
	}
	for _, name := range p.w.elections[1:] {
		go p.takePart(name)
	}
}

// takePart opens another election as soon as the disk allows it.
func (p *process) takePart(name string) {
	dice := newDice(p.w.schedule.seed, p.name+" beside")
	for p.isUp() && !p.Killed() && p.node.Err() == nil {
		p.Wait()
		time.Sleep(time.Millisecond + dice.UpTo(time.Millisecond)) // not with the first campaign
		_, err := p.node.Election(name, cluster.ElectionConfig{Timing: p.w.timing})
		if err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (p *process) follow(events *cluster.Subscription) {
	for e := range events.Events() {
		p.w.judge.transition(p, e)
	}
}

// kill ends the process as SIGKILL does.
func (p *process) kill() {
	if p.Killed() {
		return
	}
	p.w.judge.note("%s is killed", p.name)
	p.Kill()
	p.w.statement.gone(p)
	held := p.w.judge.killed(p)
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

// cleanUp ends the goroutines of a killed process. Its messages reach nobody.
func (p *process) cleanUp() {
	err := p.node.Close(p.Life())
	p.set(func() { p.gone, p.err = true, err })
}

// close closes the node, with a time-out.
func (p *process) close(patience time.Duration) {
	if !p.isUp() || p.Killed() {
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

// isUp reports whether the node has started and is not being closed.
func (p *process) isUp() bool {
	return p.get(func() bool { return p.node != nil && !p.closing && !p.gone })
}

func (p *process) isGone() bool { return p.get(func() bool { return p.gone }) }

// failed reports whether the node has stopped by itself.
func (p *process) failed() bool { return p.isUp() && p.node.Err() != nil }
