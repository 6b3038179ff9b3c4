package clustertest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// violation is a rule that was broken.
type violation struct{ rule, text string }

// judge checks the rules. All parts of a world tell it what happens, and it looks at all
// processes before each step of any of them.
type judge struct {
	dir    string // not in the log: it differs from run to run
	mu     sync.Mutex
	began  time.Time
	lines  []line
	broken *violation

	running []*process
	works   []*work
	closing []*closeCall
	fence   lsn.Fence
	newest  lsn.Term // that anybody has led in
	by      *process
	links   map[*process]map[cluster.NodeID]uint64 // the boot at the other end of the newest link
	account account
}

// line is a line of the log.
type line struct {
	at   time.Duration
	text string
}

func (l line) String() string { return fmt.Sprintf("%14s  %s", l.at, l.text) }

// work is guarded work of a process, from its start until it has stopped.
type work struct {
	p        *process
	l        *cluster.Leadership
	deadline time.Time // as last seen
	told     bool      // to stop: its context was canceled
	timer    *time.Timer
}

// closeCall is a call of Node.Close.
type closeCall struct {
	p   *process
	end time.Time // of its context
}

func newJudge(dir string) *judge {
	return &judge{dir: dir, began: time.Now(), links: map[*process]map[cluster.NodeID]uint64{}}
}

func (j *judge) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.noteLocked(format, args...)
}

func (j *judge) noteLocked(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), j.dir, "")
	j.lines = append(j.lines, line{time.Since(j.began).Truncate(time.Microsecond), text})
}

// breaks records that a rule is broken. Only the first violation counts.
func (j *judge) breaks(rule, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.breaksLocked(rule, format, args...)
}

func (j *judge) breaksLocked(rule, format string, args ...any) {
	if j.broken == nil {
		j.broken = &violation{rule, fmt.Sprintf(format, args...)}
		j.noteLocked("BROKEN: %s: %s", rule, j.broken.text)
	}
}

// calm reports whether no rule is broken.
func (j *judge) calm() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.broken == nil
}

// result returns the first violation, if there is one, and the log. Lines of the same moment
// are sorted by their text, since their order differs from run to run.
func (j *judge) result() (*violation, []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	slices.SortStableFunc(j.lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.text, b.text))
	})
	texts := make([]string, len(j.lines))
	for i, l := range j.lines {
		texts[i] = l.String()
	}
	return j.broken, texts
}

func (j *judge) started(p *process) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running = append(j.running, p)
	j.noteLocked("%s has started, boot %d", p.name, p.boot)
}

// killed records the end of a process and of its work. It returns the leaderships that the
// process held.
func (j *judge) killed(p *process) (held []*cluster.Leadership) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running = slices.DeleteFunc(j.running, func(r *process) bool { return r == p })
	j.works = slices.DeleteFunc(j.works, func(w *work) bool {
		if w.p == p {
			held = append(held, w.l)
		}
		return w.p == p
	})
	return held
}

// pauses stops a process while no call of the judge to its node is under way.
func (j *judge) pauses(p *process) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lookLocked()
	p.Pause()
}

// begins records the start of work, and returns a function to call at its end.
func (j *judge) begins(p *process, l *cluster.Leadership) (done func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w := &work{p: p, l: l, deadline: deadlineOf(l)}
	w.timer = time.AfterFunc(time.Until(w.deadline), j.look)
	j.works = append(j.works, w)
	j.noteLocked("%s works in term %d", p.name, l.Term())
	j.lookLocked()
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.works = slices.DeleteFunc(j.works, func(other *work) bool { return other == w })
		j.noteLocked("%s has stopped its work", p.name)
	}
}

// token issues a token for work, and checks that the tokens of all nodes rise.
func (j *judge) token(p *process, l *cluster.Leadership) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p.Killed() || p.Paused() {
		return
	}
	token, err := l.NextLSN()
	if err == nil {
		err = j.fence.AdmitNew(token)
		if err != nil {
			j.breaksLocked("tokens rise", "%s: %v", p.name, err)
		}
	}
}

// look checks the rules that hold at every moment.
func (j *judge) look() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken == nil {
		j.lookLocked()
	}
}

func (j *judge) lookLocked() {
	now := time.Now()
	for _, w := range j.works {
		j.lookAtDeadline(w, now)
	}
	for _, p := range j.running {
		if !p.leads() {
			continue
		}
		if p.isCopy {
			j.breaksLocked("a copy never leads", "%s leads", p.name)
		}
		for _, other := range j.running {
			// p is asked again: its lease may have ended meanwhile.
			if other != p && other.leads() && p.leads() {
				j.breaksLocked("one leader at a time", "%s and %s", p.name, other.name)
			}
		}
		for _, w := range j.works {
			if w.p != p && now.Before(w.deadline) && p.leads() {
				j.breaksLocked("no node leads before the deadline of work that may still run",
					"%s leads %s before the deadline of %s's work", p.name, w.deadline.Sub(now), w.p.name)
			}
		}
	}
}

// leads reports whether the node of the process says that it leads. A paused one says nothing.
func (p *process) leads() bool { return !p.Killed() && !p.Paused() && p.node.IsLeader() }

// deadlineOf is the deadline of a leadership. That of a sole voter has none until there are more.
func deadlineOf(l *cluster.Leadership) time.Time {
	if d := l.Deadline(); !d.IsZero() {
		return d
	}
	return time.Now().Add(24 * time.Hour)
}

// lookAtDeadline checks that a deadline does not move forward once it has passed or the work was
// told to stop. It looks again at the deadline.
func (j *judge) lookAtDeadline(w *work, now time.Time) {
	if w.p.Paused() || w.p.Killed() {
		return
	}
	told := w.l.Context().Err() != nil
	deadline := deadlineOf(w.l)
	if deadline.After(w.deadline) && (w.told || now.After(w.deadline)) {
		j.breaksLocked("a deadline stays", "that of %s moved on by %s, to %s from now",
			w.p.name, deadline.Sub(w.deadline), deadline.Sub(now))
	}
	w.deadline, w.told = deadline, told
	if deadline.After(now) {
		w.timer.Reset(deadline.Sub(now))
	}
}

// transition checks a transition of a process.
func (j *judge) transition(p *process, e cluster.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p.Killed() {
		return
	}
	j.noteLocked("%s: election %s: %s", p.name, e.Group, e.Transition)
	if e.To != elector.Leader || e.Group != cluster.DefaultGroup {
		return
	}
	if e.Term < j.newest || e.Term == j.newest && j.by != p {
		j.breaksLocked("every leader has a term of its own, above all before it",
			"%s leads in term %d, and %s has led in term %d", p.name, e.Term, j.by.name, j.newest)
	}
	j.newest, j.by = e.Term, p
}

// closes records a call of Close, and returns a function to call at its end.
func (j *judge) closes(p *process, patience time.Duration) (done func(error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := &closeCall{p, time.Now().Add(patience)}
	j.closing = append(j.closing, c)
	j.noteLocked("%s is closed, within %s", p.name, patience)
	return func(err error) {
		j.lookAtCloses()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.closing = slices.DeleteFunc(j.closing, func(other *closeCall) bool { return other == c })
		j.running = slices.DeleteFunc(j.running, func(r *process) bool { return r == p })
		j.noteLocked("%s has closed: %v", p.name, err)
	}
}

// lookAtCloses checks that Close returns at most a second after the end of its context,
// whatever the disk and the network do.
func (j *judge) lookAtCloses() {
	const grace = time.Second + time.Millisecond
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.closing {
		if late := time.Since(c.end); late > grace && !c.p.Killed() {
			j.breaksLocked("Close returns with its context", "that of %s is late by %s", c.p.name, late)
		}
	}
}

// linked records that a process has a link to a peer.
func (j *judge) linked(p *process, peer cluster.NodeID, boot uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.links[p] == nil {
		j.links[p] = map[cluster.NodeID]uint64{}
	}
	j.links[p][peer] = boot
}

// proof checks that a process which was proven dead is dead.
func (j *judge) proof(p *process, peer cluster.NodeID, kind string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.noteLocked("%s takes the process of %s for dead: %s", p.name, peer, kind)
	for _, other := range j.running {
		if other.m.id == peer && !other.isCopy && other.isUp() && other.boot == j.links[p][peer] &&
			!p.Killed() {
			j.breaksLocked("no proof of death of a process that lives", "%s has %s of %s", p.name, kind,
				other.name)
		}
	}
}

// ear receives the log of a node.
type ear struct{ p *process }

// Accept takes a line of the log.
func (e ear) Accept(_ string, _ hclog.Level, msg string, args ...any) {
	field := func(key string) any {
		at := slices.Index(args, any(key))
		return args[at+1]
	}
	switch msg {
	case "link up":
		e.p.w.judge.linked(e.p, field("peer").(cluster.NodeID), field("boot").(uint64))
	case "finding":
		if field("reason") == findings.FalseClaim {
			e.p.w.judge.breaks("no correct voter is accused", "%s says that %s", e.p.name, field("detail"))
		}
	case "process proven dead":
		e.p.w.judge.proof(e.p, field("peer").(cluster.NodeID), field("proof").(string))
	}
}
