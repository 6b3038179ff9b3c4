package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/cluster/internal/testprocess"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/lsn"
)

// §16: random minutes of drivers with several elections of two kinds of timers, which share beats,
// on a network, disks and clocks with faults. At no moment do two lead an election, tokens rise,
// and what was acknowledged stays. When the faults have ended, each election has a leader, which
// stays, and sends no heartbeats. CHAOS_SEEDS says how many minutes are played, and BMQELECT_SEED
// repeats one, nearly: the runtime draws the order of what happens at one moment. At each of them
// promises to who leads leave no quorum for others until its lease ends.
func TestRandomSchedulesOfManyElections(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that a seed gives about the same run
	count, err := strconv.Atoi(cmp.Or(os.Getenv("CHAOS_SEEDS"), "2"))
	require.NoError(t, err, "CHAOS_SEEDS")
	seed, err := strconv.ParseUint(os.Getenv("BMQELECT_SEED"), 10, 64)
	if given := err == nil; given {
		count = 1
	}
	for range count {
		if err != nil {
			seed = rand.Uint64() >> 32
		}
		t.Run(fmt.Sprintf("BMQELECT_SEED=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newStage(t, seed).play() })
		})
	}
}

// stage is a cluster that runs a random schedule.
type stage struct {
	t         *testing.T
	net       *memnet.Network
	random    *rand.Rand // of the goroutine of the test
	ids       []elector.NodeID
	actors    []*actor
	elections []string
	timings   []elector.Timing // of elections, by turns
	agenda    []task
	calls     sync.WaitGroup

	mu        sync.Mutex // guards what follows, and the parts of actors
	wires     map[string]*wire
	fences    map[string]*lsn.Fence
	records   map[string]map[lsn.LSN]elector.Record // all that were seen committed
	committed map[*Election]lsn.LSN
	ended     map[*Election]lsn.Term    // in which it leads no more
	acked     map[string]elector.Record // the newest that a caller knows of
	lines     []string
	unbound   map[*Election]int // for so many looks
	broken    bool
}

// task is something to do later.
type task struct {
	at time.Time
	do func()
}

// actor is a member that dies and comes back.
type actor struct {
	*member
	id      elector.NodeID
	dir     string
	process *testprocess.Process
	up      bool
	closed  chan struct{}
	disk    time.Duration // the longest that a write takes
	clock   skewed
	seen    map[string]*seen // its newest step, by election
	parts   map[string]*Election
}

// wire is a direction of a link.
type wire struct {
	random *rand.Rand
	slow   time.Duration
	lossy  int // per cent of the beats
}

// skewed is a clock that began long ago, and is fast or slow.
type skewed struct {
	start time.Time
	ppm   int64
}

func (c skewed) Now() time.Duration {
	d := time.Since(c.start)
	return time.Hour + d + d*time.Duration(c.ppm)/1e6
}

const ms = time.Millisecond

func newStage(t *testing.T, seed uint64) *stage {
	s := &stage{
		t: t, net: memnet.New(), random: rand.New(rand.NewPCG(seed, 0)), wires: map[string]*wire{},
		fences: map[string]*lsn.Fence{}, records: map[string]map[lsn.LSN]elector.Record{},
		committed: map[*Election]lsn.LSN{}, ended: map[*Election]lsn.Term{},
		acked: map[string]elector.Record{}, unbound: map[*Election]int{},
	}
	s.net.Delay(func(x, y string) time.Duration {
		s.mu.Lock()
		defer s.mu.Unlock()
		w := s.wires[x+y]
		return w.slow + time.Duration(w.random.Int64N(int64(3*ms)))
	}, nil)
	s.net.Lose(func(x, y string) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		w := s.wires[x+y]
		return w.random.IntN(100) < w.lossy
	})
	article, lan := elector.Article(), elector.LAN()
	article.HeartbeatBroadcast, article.Lease, article.MaxRandomWait = 100*ms, 280*ms, 300*ms
	article.ElectionResult, article.ScoutingResult, article.InitialWait = 300*ms, 200*ms, 500*ms
	article.ClockDriftPPM, lan.ClockDriftPPM = drift, drift
	s.timings = []elector.Timing{article, lan}
	s.elections = append([]string{"first"}, numbered(5+s.random.IntN(4))...)
	for _, name := range s.elections {
		s.fences[name], s.records[name] = lsn.NewFence(lsn.LSN{}), map[lsn.LSN]elector.Record{}
	}
	s.ids = []elector.NodeID{"a", "b", "c", "d", "e"}[:3+s.random.IntN(3)]
	for _, id := range s.ids {
		s.actors = append(s.actors, &actor{id: id, dir: t.TempDir()})
		for _, o := range s.ids {
			s.wires[string(id+o)] = &wire{random: rand.New(rand.NewPCG(s.random.Uint64(), 0))}
		}
	}
	return s
}

// drift is by how much the clocks may differ, in 10^-6.
const drift = 4000

func (s *stage) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, time.Now().Format("05.000000 ")+fmt.Sprintf(format, args...))
}

// breaks says that a rule is broken, and how it came to that. It is called with mu held.
func (s *stage) breaks(format string, args ...any) {
	if !s.broken {
		s.broken = true
		text := fmt.Sprintf(format, args...)
		s.lines = append(s.lines, text)
		s.t.Error(text)
	}
}

// setup is how an actor takes part in an election.
func (s *stage) setup(a *actor, election string) Setup {
	timing := s.timings[slices.Index(s.elections, election)%len(s.timings)]
	c := elector.Config{Self: a.id, Voters: s.ids, Timing: timing}
	return Setup{Elector: c, StopMargin: ms}
}

// start starts an actor that is down, on its disk.
func (s *stage) start(a *actor) {
	if a.up {
		return
	}
	if a.closed != nil {
		<-a.closed
	}
	s.note("%s starts", a.id)
	p, writes := testprocess.New(s.net, string(a.id)), rand.New(rand.NewPCG(s.random.Uint64(), 0))
	s.change(func() {
		a.clock = skewed{time.Now(), s.random.Int64N(drift+1) - drift/2}
		a.seen = map[string]*seen{}
	})
	m := boot(s.t, p, a.dir, testhook.Hooks{
		Clock:   a.clock,
		Entropy: rand.New(rand.NewPCG(s.random.Uint64(), 0)).Uint64,
		Stepped: func(step testhook.Step) { s.stepped(a, p, &step) },
		Disk: func(write func() error) error {
			s.mu.Lock()
			long := time.Duration(writes.Int64N(int64(a.disk + ms)))
			s.mu.Unlock()
			time.Sleep(long)
			if p.Killed() {
				return errors.New("it is dead")
			}
			return write()
		},
	}, s.setup(a, "first"))
	for _, id := range s.ids {
		m.mesh.AddPeer(id, string(id)+":7000")
	}
	first := map[string]*Election{"first": lookup(s.t, m, "first")}
	s.change(func() { a.member, a.process, a.up, a.parts = m, p, true, first })
	for _, name := range s.elections[1:] {
		s.open(a, name)
	}
}

// open lets an actor take part in an election again, at last.
func (s *stage) open(a *actor, name string) {
	m, p := a.member, a.process
	s.call(func(ctx context.Context) {
		for !p.Killed() && m.Err() == nil && ctx.Err() == nil {
			e, err := m.Open(name, s.setup(a, name))
			if err == nil || errors.Is(err, ErrOpen) {
				s.mu.Lock()
				defer s.mu.Unlock()
				if err == nil && a.member == m {
					a.parts[name] = e
				}
				return
			}
			time.Sleep(50 * ms)
		}
	})
}

// call does something that may take some time.
func (s *stage) call(do func(context.Context)) {
	s.calls.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		do(ctx)
	})
}

// end ends the process of an actor.
func (s *stage) end(a *actor, killed bool) {
	if !a.up {
		return
	}
	s.note("%s ends, killed: %t", a.id, killed)
	m, p, closed := a.member, a.process, make(chan struct{})
	a.up, a.closed = false, closed
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	if p.Resume(); killed {
		p.Kill()
		cancel()
	}
	go func() {
		defer close(closed)
		defer cancel()
		m.close(ctx)
		p.Kill()
	}()
}

// stepped looks at a step: a node that leads is the only one.
func (s *stage) stepped(a *actor, p *testprocess.Process, step *testhook.Step) {
	for _, t := range step.Effects.Transitions {
		s.note("%s in %s: %s", a.id, step.Group, t)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Killed() {
		return
	}
	a.see(step)
	if step.Lease.Term == 0 || step.State.Now >= step.Lease.End {
		return
	}
	for _, o := range s.actors {
		if o != a && o.leads(step.Group) {
			s.breaks("%s leads %s in term %d, and %s does, too", a.id, step.Group, step.Lease.Term, o.id)
		}
	}
}

// leads reports whether an actor leads. It is called with mu held, as parts change under it.
func (a *actor) leads(election string) bool {
	e := a.parts[election]
	return e != nil && !a.process.Killed() && e.Leading()
}

// look checks what holds at every moment. It now and then uses a token.
func (s *stage) look(uses bool) (goesOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.elections {
		leads := ""
		for _, a := range s.actors {
			e := a.parts[name]
			if e == nil || a.process.Killed() {
				continue
			}
			s.lookAtRecord(a, e)
			s.binds(a, e)
			if !e.Leading() {
				s.ended[e] = e.Sequencer.Newest().Term
				continue
			}
			if term := e.Sequencer.Newest().Term; term == s.ended[e] {
				s.breaks("%s leads %s again in term %d, after its lease ended", a.id, name, term)
			}
			if leads += string(a.id); len(leads) > 1 {
				s.breaks("all of %s lead %s", leads, name)
			}
			if !uses {
				continue
			}
			if token, err := e.NextLSN(); err == nil && e.Leading() {
				if err := s.fences[name].AdmitNew(token); err != nil {
					s.breaks("a token of %s for %s: %s", a.id, name, err)
				}
			}
		}
	}
	return !s.broken
}

// lookAtRecord checks that the committed record of a node goes on, and is that of all nodes.
func (s *stage) lookAtRecord(a *actor, e *Election) {
	r, last := e.Recorded().Record, s.committed[e]
	if r.LSN == last {
		return
	}
	s.committed[e] = r.LSN
	known, seen := s.records[e.Name][r.LSN]
	s.records[e.Name][r.LSN] = r
	if r.LSN.Less(last) || seen && known != r {
		s.breaks("%s has the record %s of %s after %s; others have %s", a.id, r, e.Name, last, known)
	}
}

// play plays a minute, ends all faults, and looks whether everything is in order then.
func (s *stage) play() {
	defer s.stop()
	for _, a := range s.actors {
		s.start(a)
	}
	s.run(2*time.Second, 0)
	var weights []int // in each schedule some events do not happen
	for range events {
		weights = append(weights, s.random.IntN(3))
	}
	s.run(time.Minute, 20+s.random.IntN(400), weights...)
	if s.t.Failed() {
		return
	}
	s.heal()
	s.run(30*time.Second, 0)
	s.calls.Wait()
	before := s.settled()
	s.run(5*time.Second, 0)
	for _, a := range s.actors {
		a.beats.take()
	}
	s.run(5*time.Second, 0)
	require.Equal(s.t, before, s.settled(), "leaders stay")
	for _, a := range s.actors {
		require.Less(s.t, len(a.beats.take()), 10, "heartbeats to %s go on", a.id)
		for kind := range a.Anomalies() { // that one is normal while voters change
			require.Equal(s.t, elector.AnomalyNotEntitled.String(), kind, "%s counts it", a.id)
		}
	}
}

// stop ends all actors. After a failure it tells how it came to that.
func (s *stage) stop() {
	if s.t.Failed() {
		s.change(func() { s.t.Log(strings.Join(s.lines[max(0, len(s.lines)-100):], "\n")) })
	}
	for _, a := range s.actors {
		if s.end(a, s.t.Failed()); a.closed != nil { // it has started
			<-a.closed
		}
	}
	s.calls.Wait()
}

// run lets time pass. Something happens every so many looks; 0: nothing does.
func (s *stage) run(long time.Duration, seldom int, weights ...int) {
	began := time.Now()
	for time.Since(began) < long && s.look(seldom > 0 && s.random.IntN(200) == 0) {
		time.Sleep(ms / 2)
		for i, now := 0, time.Now(); i < len(s.agenda); {
			if t := s.agenda[i]; t.at.After(now) {
				i++
			} else {
				s.agenda = slices.Delete(s.agenda, i, i+1)
				t.do()
			}
		}
		if seldom > 0 && s.random.IntN(seldom) == 0 {
			i := s.random.IntN(len(events))
			a, o := s.actors[s.random.IntN(len(s.actors))], s.actors[s.random.IntN(len(s.actors))]
			name := s.elections[s.random.IntN(len(s.elections))]
			if a.up && s.random.IntN(2) < weights[i] {
				s.note("%s: %s %s %s", events[i].name, a.id, o.id, name)
				events[i].do(s, a, o, name)
			}
		}
	}
}

// heal ends all faults.
func (s *stage) heal() {
	s.note("all faults end")
	s.agenda = nil
	s.change(func() {
		for _, w := range s.wires {
			w.slow, w.lossy = 0, 0
		}
	})
	for _, a := range s.actors {
		for _, o := range s.ids {
			s.net.Filter(string(a.id), string(o), memnet.Pass)
		}
		s.change(func() { a.disk = 0 })
		a.process.Resume()
		s.start(a)
		m := a.member
		m.lossy.dropChange.Store(nil)
		m.lossy.dropBeats.Store(false)
		s.call(func(ctx context.Context) { m.SetHealth("", 0); _ = m.Pause(ctx, 0) })
		for _, name := range s.elections {
			s.later(12*time.Second, func() { s.open(a, name) }) // after the calls that close it
		}
	}
}

// settled returns who leads, in which terms. In the mirrors of the leaders are all others.
func (s *stage) settled() (leads []string) {
	var all []*member
	for _, a := range s.actors {
		all = append(all, a.member)
	}
	for _, name := range s.elections {
		m := leader(s.t, all, name)
		require.NotNil(s.t, m, "nobody leads %s", name)
		now := m.Snapshot(lookup(s.t, m, name))
		s.keeps(&now.Record.Committed, s.acked[name])
		leads = append(leads, fmt.Sprint(name, " ", m.id, now.Term))
		for _, o := range all {
			told := o == m
			m.view(func(d *Driver) { told = told || d.sessions[o.id].tells(d.groups[name], now.Term) })
			require.True(s.t, told, "%s of %s to %s", name, m.id, o.id)
		}
	}
	followed, mirrored := inSessions(all)
	require.Equal(s.t, len(s.elections)*(len(all)-1), followed)
	require.Equal(s.t, followed, mirrored)
	return leads
}
