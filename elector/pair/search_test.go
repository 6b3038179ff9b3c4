package pair_test

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/lsn"
)

// A search visits every state that a follower and one or two leaders can reach by pairs, in
// whatever order things happen. The follower is a real machine, whose promise decides who may lead:
// the swing voter. Both ends of a pair are real. Around them is the glue of cluster/internal/loop,
// written once more, so that a rule can be broken in it. Streams keep order, are cut anywhere, and
// may lose a message. Beats and acks are lost, copied and reordered for ever. States that differ
// only by the time at which they are reached count as one.
type search struct {
	scene
	pool    *pool
	seed    maphash.Seed
	space   [4096]byte
	visited map[uint64]int32
	came    []arrival
	tried   int
}

// scene is what a search is about.
type scene struct {
	name     string
	leaders  int
	terms    lsn.Term // above 1, or 2 if warm, that are begun
	sessions int      // with each leader
	beats    int      // of each leader, in all, and the first of each session
	says     int      // heartbeats of each leader, besides those of an election or a new session
	loses    int      // messages and changes that the streams lose
	others   bool     // other voters elect and keep leaders as they like
	warm     bool     // begin with the first node leading, and the follower in its set
	votes    bool     // the follower may vote for another candidate
	restarts int      // of the follower
	dies     bool     // the first leader may die, with a proof
	slowDisk bool     // writes take any time
	calm     int      // invariant (d) is checked from one in so many states; 0: from none
	without  []deed   // what does not happen
	leases   bool     // of (a) to (e) nothing is checked, only that no two leases are valid
	broken   string   // a rule
	limit    int      // states
}

// world is a state.
type world struct {
	x        *search
	now      elector.Time
	f        follower
	leaders  [2]leader
	links    [2]link
	numbers  [2]int
	history  [2][]lsn.Term // what was followed, by revision, in the newest session
	beats    []datagram
	acks     []datagram
	taken    [2]uint64 // the highest sequence that was taken in the newest session
	term     lsn.Term
	spent    spent
	calm     bool     // nothing goes wrong any more, and terms have no limit
	pending  datagram // a beat of which the revision is read already: a broken rule
	revision uint64
}

// spent counts what a scene bounds.
type spent struct{ beats, says, loses, restarts [2]int }

// link is what the newest link between two processes carries: up to the leader, down to the
// follower.
type link struct {
	up, down []item
	broken   bool
}

// item is a message, or a change that is not zero.
type item struct {
	msg    elector.Message
	change pair.Change
}

// datagram is a beat or an ack, which is zero otherwise, of a session with a leader.
type datagram struct {
	peer, number int
	beat         pair.Beat
	ack          pair.Ack
}

type arrival struct {
	from  int32
	event event
}

func violation(format string, args ...any) error { return fmt.Errorf(format, args...) }

// clone returns a world that shares nothing with w that is changed in place.
func (w *world) clone() *world {
	c := *w
	c.f = w.f.clone()
	for i := range c.leaders {
		c.leaders[i] = w.leaders[i].clone()
	}
	return &c
}

// begin is a world in which all have just started, and the follower's embargo is over.
func (x *search) begin() *world {
	w := &world{x: x, now: noon, term: 1}
	w.f.disk = elector.Terms{Entered: 1, Reserved: 1}
	w.start()
	w.now += lease
	for i := range x.leaders {
		w.connect(i)
	}
	if x.warm {
		w.warm()
	}
	return w
}

// warm lets the first node lead, and the follower follow it by beats.
func (w *world) warm() {
	path := []event{{what: stands}, {what: reads}, {what: isRead}, {what: reads}, {what: isRead},
		{what: isRead}}
	if w.x.others {
		path = append([]event{{what: elected}}, path[3:]...)
	}
	path = append(path, event{what: hearsBeat}, event{what: hearsAck})
	for _, e := range path {
		if err := w.do(e); err != nil {
			panic(err)
		}
		if w.f.writing != (elector.Terms{}) {
			w.persist()
		}
	}
	w.forget()
}

// start starts the follower's process.
func (w *world) start() {
	w.f = follower{steppedAt: w.now, disk: w.f.disk}
	w.step(elector.Start{Term: w.f.disk.Entered, Reserved: w.f.disk.Reserved})
	w.step(elector.Eligible{})
}

// run searches, and returns whether all states were visited, and the first violation with its
// trace.
func (x *search) run() (whole bool, depth int, err error) {
	reserve := lsn.Term(1)
	if x.slowDisk {
		reserve = 0 // each new term waits for the disk
	}
	x.pool, x.seed, x.visited = newPool(reserve), maphash.MakeSeed(), map[uint64]int32{}
	first := x.begin()
	x.terms += first.term
	x.visit(first, arrival{from: -1})
	layer, ats := []*world{first}, []int32{0}
	for ; len(layer) > 0; depth++ {
		var next []*world
		var nextAts []int32
		for i, w := range layer {
			layer[i] = nil
			for _, e := range w.events() {
				then := w.clone()
				x.tried++
				err := then.do(e)
				then.forget()
				if err == nil {
					err = then.check(w)
				}
				if err != nil {
					return false, depth + 1, fmt.Errorf("%w, after %d steps\n%s", err, depth+1,
						x.trace(ats[i], e))
				}
				if at, fresh := x.visit(then, arrival{ats[i], e}); fresh {
					if x.calm != 0 && len(x.came)%x.calm == 0 {
						if err := then.settles(); err != nil {
							return false, depth + 1, fmt.Errorf("%w, after %d steps\n%s", err, depth+1,
								x.trace(ats[i], e))
						}
					}
					next, nextAts = append(next, then), append(nextAts, at)
				}
			}
			if x.limit != 0 && len(x.came) >= x.limit {
				return false, depth, nil
			}
		}
		layer, ats = next, nextAts
	}
	return true, depth, nil
}

// searched runs a scene, and says how far it came.
func searched(t testing.TB, s scene) error {
	x := search{scene: s}
	began := time.Now()
	whole, depth, err := x.run()
	how := "to its limit"
	if whole {
		how = "to the end"
	}
	if err != nil {
		how = "to a violation"
	}
	t.Logf("%s: %d states, %d steps, %d states of the machine, depth %d, %s; %s", s.name, len(x.came),
		x.tried, len(x.pool.known), depth, how, time.Since(began).Round(time.Millisecond))
	return err
}

// holds fails if a scene breaks an invariant.
func holds(t testing.TB, s scene) {
	if err := searched(t, s); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
}

func (x *search) visit(w *world, by arrival) (at int32, fresh bool) {
	h := maphash.Bytes(x.seed, w.pack(x.space[:0]))
	if at, known := x.visited[h]; known {
		return at, false
	}
	at = int32(len(x.came))
	x.visited[h], x.came = at, append(x.came, by)
	return at, true
}

func (x *search) trace(at int32, last event) string {
	events := []event{last}
	for ; at > 0; at = x.came[at].from {
		events = append(events, x.came[at].event)
	}
	slices.Reverse(events)
	w := x.begin()
	var lines []string
	for _, e := range events {
		lines = append(lines, fmt.Sprintf("%3d %s", (w.now-noon)/tick, w.line(e)))
		if w.do(e) != nil {
			break
		}
	}
	return strings.Join(lines, "\n")
}

// packer appends what decides what can follow, with times as seen from now.
type packer struct {
	b   []byte
	now elector.Time
}

func (p *packer) n(values ...uint64) {
	for _, v := range values {
		p.b = binary.AppendUvarint(p.b, v)
	}
}

func (p *packer) at(times ...elector.Time) {
	for _, t := range times {
		p.n(uint64(relative(t, p.now)))
	}
}

func (p *packer) flag(flags ...bool) {
	for _, f := range flags {
		p.n(map[bool]uint64{true: 1}[f])
	}
}

func (p *packer) items(all []item) {
	p.n(uint64(len(all)))
	for _, it := range all {
		m, c := &it.msg, &it.change
		p.n(uint64(c.What), c.Revision, uint64(c.Term), uint64(m.Kind), uint64(m.Term),
			uint64(m.ProposedTerm))
		p.at(max(m.SentAt, min(m.SentAt, 1)*(p.now-lease)))
		p.flag(m.WillVote)
	}
}

func (w *world) pack(b []byte) []byte {
	p := packer{b, w.now}
	w.packFollower(&p)
	for i := range w.x.leaders {
		l, k := &w.leaders[i], &w.links[i]
		p.flag(l.dead, l.proven, l.session != nil, k.broken)
		p.n(uint64(l.term), uint64(l.asked), uint64(w.numbers[i]), w.taken[i])
		p.at(l.since, l.own, l.lease, l.askedAt)
		if s := l.session; s != nil {
			p.n(uint64(s.number), s.leads.Revision(), uint64(s.leads.Term(group)))
			counts, times := s.leads.Counts(), s.leads.Times()
			p.n(counts[:]...)
			p.at(times[:]...)
			p.flag(s.anew)
			for r := s.leads.Revision(); r < uint64(len(w.history[i])); r++ {
				p.n(uint64(w.history[i][r]))
			}
		}
		p.items(k.up)
		p.items(k.down)
	}
	w.packDatagrams(&p)
	s := &w.spent
	for i := range 2 {
		p.n(uint64(s.beats[i]), uint64(s.says[i]), uint64(s.loses[i]), uint64(s.restarts[i]))
	}
	p.n(uint64(w.term), w.revision)
	return p.b
}

func (w *world) packFollower(p *packer) {
	f := &w.f
	p.n(uint64(f.machine), uint64(f.disk.Entered), uint64(f.disk.Reserved), uint64(f.writing.Reserved))
	p.at(f.steppedAt, f.heard)
	p.flag(f.carried)
	for _, s := range []*session{f.sessions[0], f.sessions[1], f.session} {
		if s == nil {
			p.n(0)
			continue
		}
		p.n(1, uint64(s.number), uint64(s.peer), s.follows.Revision(), uint64(s.follows.Term(group)))
		counts, times := s.follows.Counts(), s.follows.Times()
		p.n(counts[:]...)
		p.at(times[:]...)
		p.flag(s.hears, s.joined, s.over)
	}
}

func (w *world) packDatagrams(p *packer) {
	sorted := func(all []datagram) {
		all = slices.Clone(all)
		slices.SortFunc(all, func(a, b datagram) int {
			for _, d := range []int{a.peer - b.peer, a.number - b.number,
				int(a.beat.Sequence+a.ack.Sequence) - int(b.beat.Sequence+b.ack.Sequence)} {
				if d != 0 {
					return d
				}
			}
			return int(a.ack.Revision) - int(b.ack.Revision)
		})
		p.n(uint64(len(all)))
		for _, d := range all {
			p.n(uint64(d.peer), uint64(d.number), d.beat.Sequence, d.beat.Revision, d.beat.Hash,
				d.ack.Sequence, d.ack.Revision)
			p.at(d.beat.SentAt, d.ack.SentAt)
		}
	}
	sorted(w.beats)
	sorted(w.acks)
	sorted([]datagram{w.pending})
}
