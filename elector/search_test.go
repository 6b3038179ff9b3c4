package elector_test

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// A search visits every state that a small cluster of real machines can reach, in whatever order
// things happen: messages arrive in any order, late, twice or never; writes end late or are cut off
// by a crash; links break and are made again; deaths are proven at once, late or never; clocks run
// at different rates; operators give orders. Time passes in quanta. States that differ only by the
// time at which they are reached count as one, and so do states that differ only by messages that
// can change nothing any more. Voters are not exchangeable, because their ranks differ. The search
// ends when there is nothing new, or at a limit, and then says so. It reports a broken promise with
// a shortest trace. States are identified by hashes of 64 bits: the chance that two of 14 million
// are confused is 1 in 100,000.
type search struct {
	scene
	t      testing.TB
	voters []elector.NodeID                      // and observers
	blanks map[elector.Identity]*elector.Machine // by disk, before its start

	machines []machineKey
	held     [][]elector.Envelope // by machine
	due      []bool               // by machine: it has something to do at once
	numbers  map[machineKey]int32
	parcels  []parcel
	parcelNo map[parcel]uint32
	lanes    []uint16          // by parcel, of its flights
	later    []uint32          // by parcel, what it is a quantum later; 0 if that is not known yet
	records  []*elector.Record // the first is none
	recordNo map[elector.Record]uint16
	rosters  map[elector.Roster][]elector.Voter
	steps    map[stepKey]stepped
	overs    map[stepKey]bool
	glues    []glue
	glueNo   map[glue]int32
	knows    map[stepKey]*elector.State
	crowded  bool // more changes than mostChanges would be on their way

	first   snapshot
	space   [1024]byte
	may     []event
	seed    maphash.Seed
	visited map[uint64]int32 // and where it stands in came
	came    []arrival
	calmly  []int32         // where a state leads if nothing goes wrong; itself if all follow a leader
	lived   map[uint64]bool // hashes of states from which a leader follows
	bare    map[uint64]bool // states without their traffic, if somebody wants to know them
	keeps   bool            // what is over stays on its way
	// replaced is whether a message took the place of another one on its way.
	replaced bool
	tried    int // transitions
	capped   int // states that are not followed, for the limit of terms
}

// scene is what a search is about.
type scene struct {
	name   string
	nodes  int
	timing elector.Timing
	bounds elector.Bounds
	disks  []lsn.Term     // the terms at the start; 1 for all others
	past   []past         // what nodes did before they crashed, if warm a moment ago
	rates  []elector.Time // how far each clock goes in a quantum; a unit for all others
	terms  lsn.Term       // above those of the begin: a state with a higher one is not followed
	life   uint8          // quanta that a message may take, and a write
	stands []int          // the nodes that may stand; nil for all
	warm   bool           // begin with one leading, and all others following
	apart  bool           // begin with the first two cut off from each other
	// inOrder: nothing overtakes what was sent before to a node that does not stand; life is 0.
	inOrder  bool
	reliable bool  // between processes that run, on links that are up, no message is lost, ...
	misses   uint8 // ... or at most so many in all; life is 0

	// At most so many of each in all.
	crashes, cuts, twins, stalls uint8
	orders                       []elector.Input // each may be given to any node, so often in all:
	ordered                      uint8
	guard                        bool // leaders have guarded work

	configured int             // of the nodes are voters in an election without a record; 0: all
	quorum     int             // Config.Quorum
	asks       []elector.Input // of a leader, one after the other: what concerns records
	recorded   bool            // if warm: a record is committed everywhere
	losses     uint8           // disks that are lost for good, in all

	pairs  bool   // beats of pairs, §16
	others uint8  // changes of other elections that the pairs carry, in all
	leases bool   // nothing is judged except that no two leases are valid
	broken string // a rule of pairs

	limit int // states; 0 for as many as there are
}

// machineKey is all that decides what a machine does, except for the time.
type machineKey struct {
	node  int
	lives uint8 // disks that it has lost
	state elector.State
	held  string
}

// parcel is a message on its way.
type parcel struct {
	from, to int
	lives    uint8 // disks that the sender had lost
	msg      elector.Message
	datagram // zero for a message
}

const maxVoters = 5

// past is what a node did before: it reserved terms, and voted in one that is not on its disk.
type past struct {
	reserved lsn.Term
	term     lsn.Term
	vote     int // for whom
}

// unit is what a clock of no drift goes in a quantum.
const unit = elector.Time(time.Millisecond)

// noon is what a clock reads in every state: times are counted anew after each quantum. No two
// clocks read the same.
func noon(node int) elector.Time { return elector.Time(100+50*node) * unit }

type stepKey struct {
	machine int32
	number  uint32 // of the parcel; of the peer; of the order; what the disk knows
	what    deed
	longest bool // the random wait
}

// stepped is what one input made of a machine.
type stepped struct {
	machine int32
	persist disk // zero for nothing
	names   bool // it cedes, and names a successor
	sent    []sent
	joined  []int // who counts from now on

	repeats    bool // a heartbeat tells nothing new
	leader     int8 // the machine's Pairing; -1 for none
	leaderTerm lsn.Term
	fresh      bool
}

// sent is a message that leaves a node.
type sent struct {
	parcel uint32
	term   lsn.Term
	vote   int // for whom; -1 for nobody

	repeats bool // Envelope.Repeats
}

type arrival struct {
	from  int32
	event event
}

// prepare makes the first state.
func (x *search) prepare() {
	x.numbers, x.parcelNo = map[machineKey]int32{}, map[parcel]uint32{}
	x.recordNo, x.records = map[elector.Record]uint16{}, nil
	x.rosters = map[elector.Roster][]elector.Voter{}
	x.record(elector.Record{})
	x.steps, x.overs = map[stepKey]stepped{}, map[stepKey]bool{}
	x.visited, x.lived = map[uint64]int32{}, map[uint64]bool{}
	x.parcels, x.later, x.lanes = make([]parcel, 1), make([]uint32, 1), make([]uint16, 1)
	x.glues, x.glueNo, x.knows = nil, map[glue]int32{}, map[stepKey]*elector.State{}
	blank := glue{session: -1, leader: -1}
	x.glues, x.glueNo[blank] = append(x.glues, blank), 0
	x.seed = maphash.MakeSeed()
	x.first = x.begin()
	x.terms += x.highest(&x.first)
}

// run searches, and returns whether all states were visited.
func (x *search) run() (whole bool) {
	began := time.Now()
	x.prepare()
	var layer, next layer
	x.visit(&x.first, arrival{from: -1}, &layer)
	depth := 0
	for ; len(layer) > 0; depth++ {
		for at, w := range layer.all(x) {
			if !x.full() {
				x.expand(w, at, &next)
			} else {
				x.mustLive(w, at)
			}
		}
		layer, next = next, nil
	}
	whole = !x.full()
	how := "to the end"
	if !whole {
		how = "to its limit"
	}
	searched := time.Since(began)
	x.allLive()
	x.t.Logf("%s: %d states, %d transitions, %d states of a voter, depth %d, %s; "+
		"%d not followed above term %d; %s, %s",
		x.name, len(x.came), x.tried, len(x.machines), depth, how, x.capped, x.terms,
		searched.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	return whole
}

func (x *search) hash(w *snapshot) uint64 {
	return maphash.Bytes(x.seed, x.pack(x.space[:0], w))
}

func (x *search) full() bool { return x.limit != 0 && len(x.came) >= x.limit }

// expand visits what follows upon a state.
func (x *search) expand(w *snapshot, at int32, next *layer) {
	if x.agreed(w) {
		x.calmly[at] = at
	}
	for _, e := range x.events(w) {
		then := *w
		x.tried++
		err := x.do(&then, e)
		if err == nil {
			err = cmp.Or(x.check(&then), x.kept(w, &then, e))
		}
		if err != nil {
			x.t.Fatalf("%s: %v; %d states, depth %d\n%s", x.name, err, len(x.came),
				len(x.path(at))+1, x.trace(append(x.path(at), e)))
		}
		to := x.visit(&then, arrival{at, e}, next)
		if x.calmly[at] < 0 && to != at && e.what < faulty {
			x.calmly[at] = to
		}
	}
	if x.calmly[at] < 0 { // it stays as it is
		x.mustLive(w, at)
	}
}

// visit returns where a state stands in came.
func (x *search) visit(w *snapshot, by arrival, next *layer) int32 {
	b := x.pack(x.space[:0], w)
	h := maphash.Bytes(x.seed, b)
	at, known := x.visited[h]
	if known {
		return at
	}
	at = int32(len(x.came))
	x.visited[h] = at
	x.came, x.calmly = append(x.came, by), append(x.calmly, -1)
	if x.bare != nil {
		x.bare[maphash.Bytes(x.seed, b[:len(b)-4*w.traffic.n-1])] = true
	}
	if x.highest(w) <= x.terms {
		next.add(at, b)
		return at
	}
	x.capped++
	x.mustLive(w, at)
	return at
}

// trace is a path in the language of the scripts: a line for each input, behind the name of the
// node that had it.
func (x *search) trace(path []event) string {
	var lines []string
	now := elector.Time(0)
	for _, e := range path {
		lines = append(lines, x.line(e, now))
		if e.what == tick || e.what == heldUp {
			now++
		}
	}
	return strings.Join(lines, "\n")
}

// path is the events by which a state was reached.
func (x *search) path(at int32) (events []event) {
	for ; at > 0; at = x.came[at].from {
		events = append(events, x.came[at].event)
	}
	slices.Reverse(events)
	return events
}

func (x *search) highest(w *snapshot) (term lsn.Term) {
	for i := range x.nodes {
		if w.peers[i].machine >= 0 {
			term = max(term, x.state(w, i).Term)
		}
	}
	return term
}

// state is that of a machine that runs.
func (x *search) state(w *snapshot, node int) *elector.State {
	return &x.machines[w.peers[node].machine].state
}

// rate is how far the clock of a node goes in a quantum.
func (x *search) rate(node int) elector.Time {
	if node < len(x.rates) {
		return x.rates[node]
	}
	return unit
}

// begin is the first state: all have just started, or one leads already.
func (x *search) begin() (w snapshot) {
	for i := range x.nodes {
		x.voters = append(x.voters, elector.NodeID(rune('a'+i)))
	}
	x.blanks = map[elector.Identity]*elector.Machine{}
	for i := range x.nodes {
		for lives := range x.losses + 1 {
			x.blanks[identity(i, lives)] = x.newMachine(i, identity(i, lives))
		}
	}
	for i := range x.nodes {
		p := &w.peers[i]
		p.machine = -1
		term := uint8(1)
		if i < len(x.disks) {
			term = uint8(x.disks[i])
		}
		p.disk = disk{entered: term, reserved: term}
		if !x.warm {
			x.recall(p, i)
		}
		x.must(x.boot(&w, i, false))
	}
	for i := range x.nodes {
		for j := range i {
			if x.apart && i == 1 {
				w.cut |= 1 << x.pair(i, j)
				continue
			}
			x.must(x.connect(&w, i, j))
		}
	}
	if x.warm {
		x.settle(&w)
		if x.recorded {
			x.firstRecord(&w)
		}
		for i := range x.nodes {
			x.restart(&w, i)
		}
	}
	return w
}

// recall gives a node the disk and the votes of its past, and returns whether it has one.
func (x *search) recall(p *peer, node int) bool {
	if node >= len(x.past) || x.past[node] == (past{}) {
		return false
	}
	before := x.past[node]
	p.disk.reserved = uint8(before.reserved)
	p.votes.set(before.term, before.vote)
	return true
}

// restart lets a node that has a past crash, and start again on it, while another leads.
func (x *search) restart(w *snapshot, node int) {
	if !x.recall(&w.peers[node], node) {
		return
	}
	x.end(w, node)
	x.must(x.boot(w, node, false))
	for other := range x.nodes {
		if other != node {
			x.must(x.connect(w, node, other))
		}
	}
}

// boot starts a process on the disk of a node.
func (x *search) boot(w *snapshot, node int, longest bool) error {
	p := &w.peers[node]
	rest := uint32(p.pausedFor / unit)
	knows := uint32(p.disk.record)<<11 | uint32(p.disk.entered)<<6 | uint32(p.disk.reserved)<<1 |
		uint32(truth(p.led))
	p.machine = x.number(w, node, x.blank(w, node), 0)
	p.writing, p.linked, p.down, p.died, p.behind, p.glue = disk{}, 0, 0, 0, false, 0
	if rest > 0 {
		if err := x.step(w, node, pauses, rest, false); err != nil {
			return err
		}
	}
	return x.step(w, node, starts, knows, longest)
}

// number is that of a machine whose clock has gone on by since.
func (x *search) number(
	w *snapshot, node int, m *elector.Machine, since elector.Time,
) int32 {
	key, held := x.alike(node, w.peers[node].lives, m, since)
	number, ok := x.numbers[key]
	if !ok {
		number = int32(len(x.machines))
		x.numbers[key] = number
		x.machines, x.held = append(x.machines, key), append(x.held, held)
		x.due = append(x.due, false)
	}
	return number
}

// must fails if the begin goes wrong already.
func (x *search) must(err error) {
	if err != nil {
		x.t.Fatalf("%s: %v", x.name, err)
	}
}

// mustLive fails if no leader follows from a state although nothing goes wrong any more.
func (x *search) mustLive(w *snapshot, at int32) {
	if !x.electable(w) {
		return
	}
	if err := x.lives(*w); err != nil {
		x.t.Fatalf("%s: %v, although nothing goes wrong from here on\n%s", x.name, err, x.trace(x.path(at)))
	}
}
