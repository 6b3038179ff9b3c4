package clustertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// supervised is a member, with a supervisor that starts it again. Only the goroutine of the world
// uses it.
type supervised struct {
	*member
	w       *world
	disk    *disk
	wanted  bool     // the supervisor is to run it
	process *process // nil: none
	started int
	unfitBy atomic.Pointer[error] // why the application is unfit, as it says
	last    error                 // of the last process
}

// supervise starts a process if no process runs, and closes one whose node has failed.
func (m *supervised) supervise() {
	m.w.at(53*time.Millisecond, m.supervise)
	switch p := m.process; {
	case p != nil && p.isGone():
		m.process, m.last = nil, p.err
		m.w.endCopies()
	case p != nil && !p.Paused() && p.failed():
		m.w.endCopies()
		p.close(5 * time.Second)
	case p == nil && m.wanted:
		m.started++
		m.process = m.w.newProcess(m, string(m.id), fmt.Sprintf("%s#%d", m.id, m.started), m.disk)
		go m.process.run()
	}
}

// kill ends the process as SIGKILL does. It is started again after the span.
func (m *supervised) kill(span time.Duration) {
	m.away(span)
	if p := m.process; p != nil {
		m.w.endCopies()
		p.kill()
	}
}

// blackout ends all processes at one moment.
func (w *world) blackout(s step) {
	for _, m := range w.members {
		m.kill(s.span)
	}
}

// away keeps the supervisor from starting the member for a while.
func (m *supervised) away(span time.Duration) {
	m.wanted = false
	m.w.at(span, func() { m.wanted = true })
}

// closing returns a function that closes the node with a time-out.
func closing(patience time.Duration) func(*supervised, time.Duration) {
	return func(m *supervised, span time.Duration) {
		m.away(span)
		if m.process != nil {
			m.w.endCopies()
			m.resume()
			m.process.close(patience)
		}
	}
}

// pause stops the process as SIGSTOP does.
func (m *supervised) pause(span time.Duration) {
	p := m.process
	if p == nil || !p.isUp() || p.Paused() {
		return
	}
	m.w.endCopies()
	p.w.judge.pauses(p)
	m.w.at(span, p.Resume)
}

func (m *supervised) resume() {
	if m.process != nil {
		m.process.Resume()
	}
}

func onDisk(mode diskMode) func(*supervised, time.Duration) {
	return func(m *supervised, span time.Duration) {
		m.disk.set(mode)
		m.w.undo(m.disk, span, func() { m.disk.set(healthy) })
	}
}

// copied starts a node on a copy of the data directory, on another host beside the original.
// It must not take part in elections. Members without a link to the original cannot tell the
// two apart, so this is done only while all links are up. A sole voter asks nobody, so nothing
// keeps its copy from leading.
func (m *supervised) copied(span time.Duration) {
	st, ok := m.status()
	alone := func(e cluster.GroupStatus) bool { return e.Quorum == 1 }
	if !ok || !m.w.whole() || slices.ContainsFunc(st.Groups, alone) {
		return
	}
	m.w.copies++
	host := fmt.Sprintf("%s-copy%d", m.id, m.w.copies)
	d := newDisk(m.w.t.TempDir())
	if err := m.disk.copyTo(d.dir); err != nil {
		m.w.judge.note("%s: %v", host, err)
		return
	}
	p := m.w.newProcess(m, host, host, d)
	p.isCopy = true
	go p.run()
	m.w.at(span, p.kill)
	m.w.beside = append(m.w.beside, p)
}

// endCopies ends the copies that run.
func (w *world) endCopies() {
	for _, p := range w.beside {
		p.kill()
	}
	w.beside = nil
}

// whole reports whether every process runs and has every link.
func (w *world) whole() bool {
	return len(w.rules) == 0 && !slices.ContainsFunc(w.members, func(m *supervised) bool {
		st, ok := m.status()
		return !ok || anyDown(st)
	})
}

func anyDown(st cluster.Status) bool {
	return slices.ContainsFunc(st.Members, func(o cluster.MemberStatus) bool { return o.Link != "up" })
}

// pair is the host that sends packets and the one that receives them.
type pair [2]string

func drop(w *world, from, to *supervised, span time.Duration) {
	w.filter(from, to, memnet.Drop, span)
}

func reject(w *world, from, to *supervised, span time.Duration) {
	w.filter(from, to, memnet.Reject, span)
}

// filter sets a rule of the firewall for a while. A newer rule for the same pair replaces it.
func (w *world) filter(from, to *supervised, rule memnet.Rule, span time.Duration) {
	w.endCopies()
	p := pair{string(from.id), string(to.id)}
	w.rules[p] = true
	w.net.Filter(p[0], p[1], rule)
	w.undo(p, span, func() {
		delete(w.rules, p)
		w.net.Filter(p[0], p[1], memnet.Pass)
	})
}

func (w *world) reset(from, to *supervised, _ time.Duration) {
	w.endCopies()
	w.net.Reset(string(from.id), string(to.id))
}

// call runs do with a running node, in the background. If the process is paused, it begins when
// the process goes on.
func (m *supervised) call(do func(ctx context.Context, e *cluster.Election) error) {
	p := m.process
	if p == nil || !p.isUp() {
		return
	}
	m.w.calls.Add(1)
	go func() {
		defer m.w.calls.Add(-1)
		p.Wait()
		ctx, cancel := context.WithTimeout(p.Life(), 10*time.Second)
		defer cancel()
		_ = do(ctx, p.node.Default()) // may fail for many a reason
	}()
}

func (m *supervised) transfer(time.Duration) {
	m.call(func(ctx context.Context, e *cluster.Election) error { return e.Transfer(ctx, "") })
}

func (m *supervised) stepDown(span time.Duration) {
	m.call(func(ctx context.Context, e *cluster.Election) error { return e.StepDown(ctx, span) })
}

// maintain pauses the elections of one member, also across its restarts.
func (m *supervised) maintain(span time.Duration) {
	p := m.process
	m.call(func(ctx context.Context, _ *cluster.Election) error { return p.node.Pause(ctx, span+1) })
}

func (m *supervised) unfit(span time.Duration) {
	m.setFit(errors.New("by chance"))
	m.w.undo(m, span, m.fit)
}

func (m *supervised) fit() { m.setFit(nil) }

// setFit lets the application say whether it is fit. Each call says what is true at the moment
// of the call: several calls may run in any order, and the last one must not say what was true
// before.
func (m *supervised) setFit(unfit error) {
	m.unfitBy.Store(&unfit)
	m.call(func(_ context.Context, e *cluster.Election) error { return e.SetFit(*m.unfitBy.Load()) })
}

// status returns the status of the node, if it runs and is not paused.
func (m *supervised) status() (cluster.Status, bool) {
	p := m.process
	if p == nil || !p.isUp() || p.Paused() || p.node.Err() != nil {
		return cluster.Status{}, false
	}
	st := p.node.Status()
	return st, len(st.Groups) > 0
}

func (m *supervised) state() string {
	switch p := m.process; {
	case p == nil:
		return fmt.Sprintf("does not run, and the last start said: %v", m.last)
	case !p.isUp():
		return "is starting, or ends"
	default:
		return fmt.Sprintf("runs, with error %v", p.node.Err())
	}
}

// ending reports whether a process has not ended yet.
func (m *supervised) ending() bool { return m.process != nil && !m.process.isGone() }
