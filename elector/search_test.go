package elector_test

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// A search visits every state that a small cluster of real machines can reach, whatever order
// things happen in: messages arrive in any order, late, twice or never; writes end late or are
// cut off by a crash; links break and are made again; deaths are proven at once, late or never;
// clocks run at different rates; operators give orders. Time passes in quanta. States that
// differ only by when they are reached count as one. The search ends when there is nothing new,
// or at a limit; then it says so. What breaks a promise comes out as a shortest trace.
type search struct {
	scene
	t      testing.TB
	voters []elector.NodeID
	cfgs   []elector.Config

	machines []*elector.Machine
	states   []elector.State // of the machines
	numbers  map[machineKey]int32
	parcels  []parcel
	parcelNo map[parcel]uint16
	steps    map[stepKey]stepped
	canon    canon

	seed    [2]maphash.Seed
	visited map[[2]uint64]int32 // and where it stands in came
	came    []arrival
	tried   int // transitions
	capped  int // states that are not followed, for the limit of terms
	lived   int // states from which a leader was found to be reached
}

// scene is what a search is about.
type scene struct {
	name   string
	nodes  int
	timing elector.Timing
	bounds elector.Bounds
	disks  []lsn.Term     // the terms at the start; 1 for all others
	past   []past         // what nodes did before they crashed; nothing for all others
	rates  []elector.Time // how far each clock goes in a quantum; a unit for all others
	terms  lsn.Term       // a state with a higher one is not followed
	life   int            // quanta that a message may take, and a write
	stands []int          // the nodes that may stand; nil for all
	warm   bool           // begin with the first of stands leading, and all following

	// At most so many of each in all.
	crashes, cuts, twins, stalls int
	orders                       []elector.Input // each may be given to any node, so often in all:
	ordered                      int
	guard                        bool // leaders have guarded work

	limit int // states; 0 for as many as there are
}

// past is what a node did before: it reserved terms, and voted in one that is not on its disk.
type past struct {
	reserved lsn.Term
	term     lsn.Term
	vote     int // for whom
}

// unit is what a clock of no drift goes in a quantum.
const unit = elector.Time(time.Millisecond)

const mostTerms = 16

// snapshot is a state of the cluster. It is comparable.
type snapshot struct {
	now     int16 // quanta
	peers   [maxVoters]peer
	traffic traffic
	cut     uint32           // pairs of nodes that are cut off from each other
	leaders [mostTerms]uint8 // by term: who has led in it, its number + 1
	led     lsn.Term         // the newest term that had a valid lease
	spent   spent
}

// spent counts what a scene bounds.
type spent struct{ crashes, cuts, twins, stalls, orders uint8 }

// peer is a voter's process, disk and links, and what its name has done.
type peer struct {
	machine int32 // -1 while no process runs
	disk    elector.Terms
	writing elector.Terms // zero for nothing
	waits   uint8         // quanta that it has been written for
	linked  uint8         // ends of links that are up
	down    uint8         // ended links that it has not noticed yet
	died    uint8         // deaths that may still be proven to it
	behind  bool          // it has missed a tick
	working bool          // guarded work runs, until workEnd at the latest
	workEnd elector.Time
	votes   [mostTerms]uint8 // by term: for whom it voted, its number + 1
}

// traffic is what is on its way, sorted.
type traffic struct {
	n       int
	flights [mostFlights]flight
}

// flight is a parcel on its way.
type flight struct {
	number uint16
	age    uint8
}

const mostFlights = 64

type stepKey struct {
	machine int32
	now     int16
	entropy uint64
	what    deed
	number  uint16 // of the parcel; of the peer; of the order
}

// stepped is what one input made of a machine.
type stepped struct {
	machine int32
	effects elector.Effects
}

type arrival struct {
	from  int32
	event event
}

// run searches, and returns whether all states were visited.
func (x *search) run() (whole bool) {
	x.numbers, x.parcelNo = map[machineKey]int32{}, map[parcel]uint16{}
	x.steps, x.visited = map[stepKey]stepped{}, map[[2]uint64]int32{}
	x.seed = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	x.canon = canon{s: x, machines: map[machineAt]uint32{}, known: map[machineKey]uint32{},
		parcels: map[parcelAt]uint32{}, alike: map[parcel]uint32{}}
	began := time.Now()
	layer := []reached{{x.begin(), 0}}
	x.visited[x.hash(&layer[0].w)] = 0
	x.came = append(x.came, arrival{-1, event{}})
	depth := 0
	for ; len(layer) > 0 && (x.limit == 0 || len(x.came) < x.limit); depth++ {
		var next []reached
		for _, from := range layer {
			x.expand(from, &next)
			if x.limit != 0 && len(x.came) >= x.limit {
				break
			}
		}
		layer = next
	}
	whole = len(layer) == 0
	how := "to the end"
	if !whole {
		how = "to its limit"
	}
	x.t.Logf("%s: %d states, %d transitions, %d states of a voter, depth %d, %s; "+
		"%d not followed above term %d; a leader follows from %d; %s",
		x.name, len(x.came), x.tried, len(x.machines), depth, how, x.capped, x.terms, x.lived,
		time.Since(began).Round(time.Millisecond))
	return whole
}

// reached is a state and where it stands in came.
type reached struct {
	w  snapshot
	at int32
}

// expand visits what follows upon a state.
func (x *search) expand(from reached, next *[]reached) {
	x.each(&from.w, func(event event, w snapshot, err error) {
		x.tried++
		if err == nil {
			err = x.check(&w)
		}
		if err != nil {
			x.t.Fatalf("%s: %v\n%s", x.name, err, x.trace(from.at, event))
		}
		h := x.hash(&w)
		if _, known := x.visited[h]; known {
			return
		}
		at := int32(len(x.came))
		x.visited[h] = at
		x.came = append(x.came, arrival{from.at, event})
		if h[0]%liveSample == 0 {
			if err := x.lives(w); err != nil {
				x.t.Fatalf("%s: %v, although nothing goes wrong from here on\n%s",
					x.name, err, x.trace(from.at, event))
			}
			x.lived++
		}
		if x.highest(&w) > x.terms {
			x.capped++
			return
		}
		*next = append(*next, reached{w, at})
	})
}

// trace is how a state was reached, in the language of the scripts: a line for each input,
// behind the name of the node that had it.
func (x *search) trace(at int32, last event) string {
	lines := []string{x.line(last)}
	for ; at > 0; at = x.came[at].from {
		lines = append(lines, x.line(x.came[at].event))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

func (x *search) highest(w *snapshot) (term lsn.Term) {
	for i := range x.nodes {
		if m := w.peers[i].machine; m >= 0 {
			term = max(term, x.states[m].Term)
		}
	}
	return term
}

func (x *search) rate(node int) elector.Time {
	if node < len(x.rates) {
		return x.rates[node]
	}
	return unit
}

// clock is what a node's clock reads. It starts far from zero, so that no time in the past is
// negative.
func (x *search) clock(node int, now int16) elector.Time {
	return 1000*unit + elector.Time(now)*x.rate(node)
}

// begin is the first state: all have just started, or the first leads already.
func (x *search) begin() (w snapshot) {
	for i := range x.nodes {
		x.voters = append(x.voters, elector.NodeID(rune('a'+i)))
	}
	for i := range x.nodes {
		bounds := x.bounds
		x.cfgs = append(x.cfgs, elector.Config{
			Self: x.voters[i], Voters: x.voters, Timing: x.timing, Bounds: &bounds,
			NotCandidate: x.stands != nil && !slices.Contains(x.stands, i),
		})
	}
	for i := range x.nodes {
		p := &w.peers[i]
		p.machine = -1
		term := lsn.Term(1)
		if i < len(x.disks) {
			term = x.disks[i]
		}
		p.disk = elector.Terms{Entered: term, Reserved: term}
		if i < len(x.past) && x.past[i] != (past{}) {
			p.disk.Reserved = x.past[i].reserved
			p.votes[x.past[i].term] = uint8(x.past[i].vote + 1)
		}
		require.NoError(x.t, x.boot(&w, i, lowest))
	}
	for i := range x.nodes {
		for j := range i {
			require.NoError(x.t, x.connect(&w, i, j))
		}
	}
	if x.warm {
		require.NoError(x.t, x.calm(&w, func(node int) uint64 { return lowest }))
	}
	return w
}

// boot starts a process on the disk of a node.
func (x *search) boot(w *snapshot, node int, entropy uint64) error {
	p := &w.peers[node]
	m, err := elector.New(x.cfgs[node])
	require.NoError(x.t, err)
	p.machine = x.number(node, m)
	p.writing, p.linked, p.down, p.died, p.behind = elector.Terms{}, 0, 0, 0, false
	return x.step(w, node, starts, 0, entropy)
}

func (x *search) number(node int, m *elector.Machine) int32 {
	key := machineKey{node, m.State(), heldText(m)}
	number, ok := x.numbers[key]
	if !ok {
		number = int32(len(x.machines))
		x.numbers[key] = number
		x.machines = append(x.machines, m)
		x.states = append(x.states, key.state)
	}
	return number
}

func heldText(m *elector.Machine) string {
	if len(m.Held()) == 0 {
		return ""
	}
	return fmt.Sprintf("%+v", m.Held())
}
