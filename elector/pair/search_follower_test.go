package pair_test

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/lsn"
)

// tick is what all clocks go at a time. Lease and promise last two of them.
const tick = elector.Time(time.Millisecond)

// noon is what clocks read at the begin.
const noon = 1000 * tick

const group = "g"

var names = [...]elector.NodeID{"a", "b"}

// config is that of the follower. It never stands, so only others wait.
func config() elector.Config {
	ms := time.Millisecond
	return elector.Config{
		Self: "f", Voters: []elector.NodeID{"a", "b", "f"},
		Timing: elector.Timing{
			InitialWait: time.Hour, MaxRandomWait: time.Hour, ScoutingResult: 2 * ms,
			ElectionResult: 3 * ms, HeartbeatBroadcast: ms, HeartbeatMissCount: 3, Lease: 2 * ms,
		},
		Bounds: &elector.Bounds{Reserve: 1, Ahead: 9, Leap: 9, Climb: 9, Near: 1, ClimbFor: ms},
	}
}

const lease = 2 * tick // and promise

// pool has the states of the follower's machine that were met. A machine cannot be copied, so a
// state is known by the inputs that lead to it, and reached again by them.
type pool struct {
	blank   *elector.Machine
	numbers map[elector.State]int32
	known   []reached
	steps   map[stepKey]stepped
}

type reached struct {
	path  []timed
	now   elector.Time // of the newest step
	ties  ties
	wake  elector.Time
	pair  elector.Pairing
	fresh bool
}

type timed struct {
	now elector.Time
	in  elector.Input
}

type stepKey struct {
	from  int32
	later elector.Time
	in    elector.Input
}

// stepped is what a step made, with times as if it had been at noon.
type stepped struct {
	to       int32
	messages []elector.Envelope
	persist  elector.Terms
}

func newPool(reserve lsn.Term) *pool {
	cfg := config()
	cfg.Bounds.Reserve = reserve
	m, err := elector.New(cfg)
	if err != nil {
		panic(err)
	}
	p := &pool{blank: m, numbers: map[elector.State]int32{}, steps: map[stepKey]stepped{}}
	p.number(m, nil, elector.Never)
	return p
}

// shifted moves the times of an input.
func shifted(in elector.Input, by elector.Time) elector.Input {
	switch in := in.(type) {
	case elector.Carry:
		if in.At != 0 {
			in.At += by
		}
		return in
	case elector.Received:
		if in.Message.SentAt != 0 {
			in.Message.SentAt += by
		}
		return in
	}
	return in
}

// step steps a machine that was stepped last some time before now.
func (p *pool) step(from int32, later, now elector.Time, in elector.Input) stepped {
	key := stepKey{from, later, shifted(in, noon-now)}
	done, ok := p.steps[key]
	if ok {
		return done
	}
	m := p.blank.Another(0)
	path := p.known[from].path
	for _, t := range path {
		m.Step(t.now, 0, t.in)
	}
	at := noon
	if len(path) > 0 {
		at = path[len(path)-1].now + later
	}
	in = shifted(in, at-now)
	e := m.Step(at, 0, in)
	done.persist = e.Persist
	for _, out := range e.Messages {
		if out.Message.SentAt != 0 {
			out.Message.SentAt += noon - at
		}
		done.messages = append(done.messages, out)
	}
	done.to = p.number(m, append(slices.Clone(path), timed{at, in}), e.Wake)
	p.steps[key] = done
	return done
}

func (p *pool) number(m *elector.Machine, path []timed, wake elector.Time) int32 {
	state := m.State()
	canonical(&state)
	n, ok := p.numbers[state]
	if ok {
		return n
	}
	n = int32(len(p.known))
	p.numbers[state] = n
	pairing, fresh := m.Pairing()
	real := m.State()
	if wake != elector.Never {
		wake -= real.Now
	}
	p.known = append(p.known, reached{path, real.Now, tiesOf(&real), wake, pairing, fresh})
	return n
}

// canonical makes times relative, and forgets what decides nothing: the follower never stands, and
// what is long past is as good as older.
func canonical(s *elector.State) {
	f := &s.Follower
	for _, at := range []*elector.Time{
		&s.Promise.Until, &s.EmbargoEnd, &s.Climb.End, &s.HeldUntil, &f.HeardAt, &f.SilentAt,
		&f.SaidAt, &f.SayAt, &f.EchoedAt,
	} {
		*at = relative(*at, s.Now)
	}
	s.Now, f.StandAt, f.HintedLeader, f.HintedTerm, f.Period = 0, 0, "", 0, 0
	f.Echoed = 0
	if s.Promise.Until < relative(1, 0) {
		s.Promise.Until = relative(1, 2)
	}
}

// old is how long ago a time must be to count as any older one.
const old = 4 * tick

// relative is a time as seen from now, so that it is never 0 for a time that is set.
func relative(at, now elector.Time) elector.Time {
	if at == 0 {
		return 0
	}
	return min(max(at-now, -old), 3600*1000*tick) + 2*old
}

// session is the follower's end of a link to a leader.
type session struct {
	peer    int
	number  int
	follows *pair.Follower
	hears   bool // beats come
	joined  bool // the election waits for a beat
	over    bool
}

// follower is the node that follows, with the glue of cluster/internal/loop.
type follower struct {
	machine   int32
	steppedAt elector.Time
	disk      elector.Terms
	writing   elector.Terms
	sessions  [2]*session
	session   *session // of the election
	pairing   elector.Pairing
	carried   bool
	heard     elector.Time
}

func (f follower) clone() follower {
	own := f.session
	for i, s := range f.sessions {
		if s != nil {
			f.sessions[i] = s.clone()
			if own == s {
				f.session = f.sessions[i]
			}
		}
	}
	if own != nil && own == f.session {
		f.session = own.clone()
	}
	return f
}

// clone shares what is followed, until own.
func (s *session) clone() *session {
	c := *s
	return &c
}

// own is what is followed, to be changed.
func (s *session) own() *pair.Follower {
	s.follows = s.follows.Clone()
	return s.follows
}

// owed is the input that the machine must have before any other.
func (f *follower) owed() (elector.Input, bool) {
	if s := f.session; s != nil && f.carried && s.follows.Heard() > f.heard {
		f.heard = s.follows.Heard()
		return elector.Carry{Peer: names[s.peer], Term: f.pairing.Term, At: f.heard}, true
	}
	return nil, false
}

// step steps the machine with what beats brought, and then with an input.
func (w *world) step(in elector.Input) {
	_, died := in.(elector.Died)
	_, down := in.(elector.LinkDown)
	_, received := in.(elector.Received)
	switch {
	case w.x.broken == leaveUnwritten && received, w.x.broken == endUnwritten && (down || died),
		w.x.broken == diedFirst && died:
	default:
		w.bringUpToDate()
	}
	w.stepOnce(in)
	w.bringUpToDate()
}

func (w *world) bringUpToDate() {
	if in, ok := w.f.owed(); ok {
		w.stepOnce(in)
	}
}

func (w *world) stepOnce(in elector.Input) {
	f := &w.f
	done := w.x.pool.step(f.machine, w.now-f.steppedAt, w.now, in)
	f.machine, f.steppedAt = done.to, w.now
	if done.persist != (elector.Terms{}) {
		f.writing = done.persist
	}
	for _, out := range done.messages {
		if out.Message.SentAt != 0 {
			out.Message.SentAt += w.now - noon
		}
		for i, id := range names {
			if out.To == id || out.To == elector.AllMembers {
				w.says(i, item{msg: out.Message})
			}
		}
	}
	w.pair()
	if f.writing != (elector.Terms{}) && !w.x.slowDisk {
		w.persist()
	}
}

// persist ends the write of the terms.
func (w *world) persist() {
	terms := w.f.writing
	w.f.disk, w.f.writing = terms, elector.Terms{}
	w.step(elector.Persisted{Term: terms.Reserved})
}

// says sends from the follower to a leader, if its end of the link is up.
func (w *world) says(to int, it item) {
	l := &w.links[to]
	if s := w.f.sessions[to]; s != nil && !l.broken {
		l.up = append(slices.Clone(l.up), it)
	}
}

// pair keeps the election in the followed set, or out of it: §16.1, §16.2.
func (w *world) pair() {
	f := &w.f
	p, fresh := w.x.pool.known[f.machine].pair, w.x.pool.known[f.machine].fresh
	if p.Leader == "" && w.x.broken == joinsUnpromised {
		if t := w.ties(); t.leader != "" {
			p, fresh = elector.Pairing{Leader: t.leader, Term: t.term}, t.heardAt == w.now
		}
	}
	before := f.session
	if w.x.broken == unfresh {
		fresh = p.Leader != ""
	}
	if before == nil && !fresh || before != nil && !before.over && p == f.pairing {
		return
	}
	var next *session
	if fresh {
		next = w.f.sessions[slices.Index(names[:], p.Leader)]
	}
	if before != nil && before != next {
		if c, changed := before.own().Leave(group); changed && !before.over {
			w.change(before, c)
		}
	}
	f.session, f.pairing, f.carried = next, p, false
	if next == nil {
		return
	}
	if c, changed := next.own().Join(group, p.Term, false); changed {
		w.change(next, c)
	}
	if next.hears {
		f.carried, f.heard = true, 0
	} else {
		next.joined = true
	}
}

// change sends a change of the followed set, and notes what that is now.
func (w *world) change(s *session, c pair.Change) {
	w.history[s.peer] = append(slices.Clone(w.history[s.peer]), s.follows.Term(group))
	w.says(s.peer, item{change: c})
}

// close ends the session with a leader at the follower's end.
func (w *world) close(peer int) {
	if s := w.f.sessions[peer]; s != nil {
		w.f.sessions[peer], s.over, s.joined = nil, true, false
	}
}

// beaten takes a beat: §16.3.
func (w *world) beaten(s *session, b pair.Beat) error {
	if s.follows.Differs(b) {
		return violation("(d): the sets differ without a fault: %+v", b)
	}
	if w.x.broken == anySequence {
		s.own().ForgetBeats()
	}
	if s.own().Unread(w.now, b) > config().Timing.Inactivity() && w.x.broken != neverAnew {
		w.beginAnew(s)
	}
	a, fresh := s.own().Beat(w.now, b)
	if !fresh {
		return nil
	}
	s.hears = true
	w.acks = append(slices.Clone(w.acks), datagram{peer: s.peer, number: s.number, ack: a})
	if s.joined {
		s.joined = false
		if f := &w.f; f.session == s && !f.carried {
			f.carried, f.heard = true, 0
			w.bringUpToDate()
		}
	}
	return nil
}

// beginAnew empties the followed set.
func (w *world) beginAnew(s *session) {
	f := &w.f
	w.change(s, s.own().Empty())
	if f.session == s {
		w.bringUpToDate()
		f.session, f.pairing, f.carried = nil, elector.Pairing{}, false
		w.step(elector.LinkUp{Peer: names[s.peer]})
	}
}

// ties are what binds a follower by what its machine knows, and whom it follows.
type ties struct {
	promise promise
	embargo elector.Time
	leader  elector.NodeID
	term    lsn.Term
	heardAt elector.Time
}

func tiesOf(s *elector.State) ties {
	p, f := &s.Promise, &s.Follower
	return ties{promise{p.To, p.Term, p.Until}, s.EmbargoEnd, f.Leader, f.LeaderTerm, f.HeardAt}
}

// ties are those of the machine, in the time of the world.
func (w *world) ties() ties {
	r := &w.x.pool.known[w.f.machine]
	t, by := r.ties, w.f.steppedAt-r.now
	for _, at := range []*elector.Time{&t.promise.until, &t.embargo, &t.heardAt} {
		if *at != 0 {
			*at += by
		}
	}
	return t
}

// promise is what binds the follower; zero if nothing does.
type promise struct {
	to    elector.NodeID
	term  lsn.Term
	until elector.Time
}

// promise is what binds the follower now. Its machine may not know yet of a beat that does.
func (w *world) promise() promise {
	p := w.ties().promise
	if own := w.f.session; own != nil && w.f.carried && p.to == names[own.peer] {
		if heard := own.follows.Heard(); heard != 0 {
			p.until = max(p.until, heard+lease)
		}
	}
	if p.until <= w.now {
		return promise{}
	}
	return p
}
