package elector_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/lsn"
)

// exploration visits every state that a small cluster of machines reaches within some
// rounds, whichever messages are lost, however long a write takes, and wherever a voter
// crashes and starts again at once. What is sent in one round arrives in the next, or never.
// Clocks run alike, and random waits are as short as can be: nothing is random. It checks
// that no two lead in one term, that leases are disjoint and their terms rise, that nobody
// votes twice in a term, and that nothing is said above what the disk has reserved.
type exploration struct {
	t       *testing.T
	voters  []elector.NodeID
	timing  elector.Timing
	crashes int // at most so many in all
	now     elector.Time

	lossy     func(from, to int) bool // messages that may be lost
	cut       func(from, to int) bool // messages that are lost always
	mayCrash  func(node int) bool
	mayStand  func(node int) bool
	machines  []*elector.Machine
	numbers   map[machineKey]int32
	parcels   []parcel
	parcelNos map[parcel]uint16
	known     map[situation][]outcome
}

const quantum = elector.Time(time.Second)

type machineKey struct {
	node  int
	state elector.State
	held  string
}

// parcel is a message on its way.
type parcel struct {
	from, to int
	msg      elector.Message
}

const maxVoters, maxTerms = 5, 12

// world is the state of a cluster. It is comparable: what is alike is visited once.
type world struct {
	nodes   [maxVoters]member
	traffic string // numbers of the parcels on their way
	crashed int
	leader  [maxTerms]uint8 // by term: who has led in it, its number + 1
	led     lsn.Term        // the newest term that had a valid lease
}

// member is a voter's process and disk.
type member struct {
	machine int32
	disk    elector.Terms
	writing elector.Terms   // zero for nothing
	vote    [maxTerms]uint8 // by term: for whom it voted, its number + 1
}

// situation is all that decides what a voter may make of a quantum.
type situation struct {
	node int
	member
	heard    string
	mayCrash bool
	now      elector.Time
}

// outcome is what a voter makes of one quantum.
type outcome struct {
	member
	sent    string
	crashed int
}

// explore visits all that may follow upon w within so many rounds, and returns how many
// states there are.
func (x *exploration) explore(w world, rounds int) (visited int) {
	layer := map[world]bool{w: true}
	for range rounds {
		next := map[world]bool{}
		for w := range layer {
			x.expand(w, next)
		}
		x.now += quantum
		visited += len(next)
		layer = next
	}
	x.t.Logf("%d states, %d of a voter", visited, len(x.machines))
	return visited
}

// begin starts the voters in term 1.
func (x *exploration) begin() (w world) {
	x.now, x.numbers, x.parcelNos = quantum, map[machineKey]int32{}, map[parcel]uint16{}
	x.known = map[situation][]outcome{}
	for i := range x.voters {
		n := &w.nodes[i]
		n.disk = elector.Terms{Entered: 1, Reserved: 1}
		w.traffic += x.boot(i, n)
	}
	x.now += quantum
	return w
}

// pass lets rounds pass in which nothing goes wrong but what is cut, until a voter is as is
// says.
func (x *exploration) pass(w world, node int, is func(elector.State) bool) world {
	lossy, mayCrash := x.lossy, x.mayCrash
	x.lossy = func(int, int) bool { return false }
	x.mayCrash = func(int) bool { return false }
	for rounds := 0; !is(x.machines[w.nodes[node].machine].State()); rounds++ {
		require.Less(x.t, rounds, maxPasses)
		next := map[world]bool{}
		x.expand(w, next)
		x.now += quantum
		require.Len(x.t, next, 1)
		for w = range next { // the only one
		}
	}
	x.lossy, x.mayCrash = lossy, mayCrash
	x.known = map[situation][]outcome{}
	return w
}

// answered lets a voter with an open round hear the same answer of all others.
func (x *exploration) answered(w world, node int, willVote bool, term lsn.Term) world {
	n := &w.nodes[node]
	m := x.machines[n.machine].Clone()
	r := m.State().Follower.Round
	var ins []elector.Input
	for i, id := range x.voters {
		if i != node {
			ins = append(ins, elector.Received{From: id, Message: elector.Message{
				Kind: elector.ElectionScoutingResponse, Term: term, ProposedTerm: r.ProposedTerm,
				Round: r.ID, WillVote: willVote,
			}})
		}
	}
	x.now -= quantum // it is still the round before
	w.traffic += x.step(node, n, m, ins...)
	x.now += quantum
	return w
}

// boot starts a process on the disk of a voter, with links to all.
func (x *exploration) boot(node int, n *member) (sent string) {
	m, err := elector.New(elector.Config{
		Self: x.voters[node], Voters: x.voters, Timing: x.timing,
		NotCandidate: !x.mayStand(node), Bounds: reserving(2),
	})
	require.NoError(x.t, err)
	n.writing = elector.Terms{}
	ins := []elector.Input{elector.Start{Term: n.disk.Entered, Reserved: n.disk.Reserved}}
	for i, id := range x.voters {
		if i != node {
			ins = append(ins, elector.LinkUp{Peer: id})
		}
	}
	return x.step(node, n, m, ins...)
}

// step steps a machine, plays its disk, and returns what it sent.
func (x *exploration) step(
	node int, n *member, m *elector.Machine, ins ...elector.Input,
) (sent string) {
	for _, in := range ins {
		e := m.Step(x.now, 0, in)
		state := m.State()
		require.NoError(x.t, spec.Consistent(&state))
		if e.Persist != (elector.Terms{}) {
			n.writing = e.Persist
		}
		for _, out := range e.Messages {
			require.NoError(x.t, spec.True(&state, &out))
			sent += x.send(node, n, out)
		}
	}
	key := machineKey{node, m.State(), ""}
	if len(m.Held()) > 0 {
		key.held = fmt.Sprint(m.Held())
	}
	number, ok := x.numbers[key]
	if !ok {
		number = int32(len(x.machines))
		x.numbers[key] = number
		x.machines = append(x.machines, m)
	}
	n.machine = number
	return sent
}

// send checks a message that leaves a voter, and returns it as parcels.
func (x *exploration) send(node int, n *member, out elector.Envelope) (sent string) {
	msg := out.Message
	require.LessOrEqual(x.t, msg.Term, n.disk.Reserved, "%s: %s above what is reserved",
		x.voters[node], out)
	for to, id := range x.voters {
		if to == node || out.To != id && out.To != elector.AllMembers || x.cut(node, to) {
			continue
		}
		switch {
		case msg.Kind == elector.ElectionProposal:
			x.vote(node, n, msg.Term, node)
		case msg.Kind == elector.ElectionProposalResponse && msg.WillVote:
			x.vote(node, n, msg.Term, to)
		}
		p := parcel{node, to, msg}
		number, ok := x.parcelNos[p]
		if !ok {
			number = uint16(len(x.parcels))
			x.parcelNos[p] = number
			x.parcels = append(x.parcels, p)
		}
		sent += string([]byte{byte(number >> 8), byte(number)})
	}
	return sent
}

// vote notes a vote, which must be the only one of its term.
func (x *exploration) vote(node int, n *member, term lsn.Term, to int) {
	before := n.vote[term]
	require.True(x.t, before == 0 || before == uint8(to+1), "%s voted in term %d for %s and %s",
		x.voters[node], term, x.voters[max(before, 1)-1], x.voters[to])
	n.vote[term] = uint8(to + 1)
}

// expand adds all that may follow in one round upon w.
func (x *exploration) expand(w world, next map[world]bool) {
	heard := make([]string, len(x.voters))
	for i := 0; i < len(w.traffic); i += 2 {
		to := x.parcels[int(w.traffic[i])<<8|int(w.traffic[i+1])].to
		heard[to] += w.traffic[i : i+2]
	}
	w.traffic = ""
	worlds := []world{w}
	for node := range x.voters {
		var after []world
		may := w.crashed < x.crashes && x.mayCrash(node)
		for _, o := range x.outcomes(situation{node, w.nodes[node], heard[node], may, x.now}) {
			for _, w := range worlds {
				if w.crashed+o.crashed > x.crashes {
					continue
				}
				w.nodes[node] = o.member
				w.traffic += o.sent
				w.crashed += o.crashed
				after = append(after, w)
			}
		}
		worlds = after
	}
	for _, w := range worlds {
		x.check(&w)
		next[w] = true
	}
}

// check looks at who leads.
func (x *exploration) check(w *world) {
	holder, led := "", w.led
	for i, id := range x.voters {
		s := x.machines[w.nodes[i].machine].State()
		if s.Role != elector.Leader || s.Leader.LeaseEnd <= x.now {
			continue
		}
		term := s.Leader.Term
		first := &w.leader[term]
		require.True(x.t, *first == 0 || *first == uint8(i+1), "%s leads in term %d, in which %s led",
			id, term, x.voters[max(*first, 1)-1])
		require.Empty(x.t, holder, "%s has a lease too, of term %d", id, term)
		require.GreaterOrEqual(x.t, term, led, "%s leads after a leader of a higher term", id)
		*first, holder, w.led = uint8(i+1), string(id), term
	}
}

// outcomes are all that a voter may make of a quantum: it may have crashed before, of what is
// on its way to it some may be lost, and its write may end.
func (x *exploration) outcomes(in situation) []outcome {
	known, ok := x.known[in]
	if !ok {
		known = slices.Collect(maps.Keys(x.outcomesOf(in.node, in.member, in.heard, in.mayCrash)))
		x.known[in] = known
	}
	return known
}

func (x *exploration) outcomesOf(
	node int, n member, traffic string, mayCrash bool,
) map[outcome]bool {
	var heard []parcel
	for i := 0; i < len(traffic); i += 2 {
		heard = append(heard, x.parcels[int(traffic[i])<<8|int(traffic[i+1])])
	}
	all := map[outcome]bool{}
	x.hear(all, node, n, "", 0, heard, mayCrash)
	if !mayCrash {
		return all
	}
	disks := map[elector.Terms]bool{n.disk: true}
	if n.writing != (elector.Terms{}) {
		disks[n.writing] = true // it crashed before it heard of that
	}
	for disk := range disks {
		n := n
		n.disk = disk
		sent := x.boot(node, &n)
		x.hear(all, node, n, sent, 1, heard, false)
	}
	return all
}

// hear adds what comes of any part of what is on its way.
func (x *exploration) hear(
	all map[outcome]bool, node int, n member, sent string, crashed int, heard []parcel,
	slow bool,
) {
	var lossy uint8 // the voters whose messages may be lost
	for _, p := range heard {
		if x.lossy(p.from, p.to) {
			lossy |= 1 << p.from
		}
	}
	for lost := range lossy + 1 {
		if lost&^lossy != 0 {
			continue
		}
		var ins []elector.Input
		for _, p := range heard {
			if lost>>p.from&1 == 0 {
				ins = append(ins, elector.Received{From: x.voters[p.from], Message: p.msg})
			}
		}
		ins = append(ins, elector.Tick{})
		if slow || n.writing == (elector.Terms{}) {
			x.add(all, outcome{n, sent, crashed}, node, ins)
		}
		if n.writing != (elector.Terms{}) {
			done := n
			done.disk, done.writing = n.writing, elector.Terms{}
			ins = slices.Insert(ins, 0, elector.Input(elector.Persisted{Term: n.writing.Reserved}))
			x.add(all, outcome{done, sent, crashed}, node, ins)
		}
	}
}

// add adds what comes of inputs.
func (x *exploration) add(
	all map[outcome]bool, o outcome, node int, ins []elector.Input,
) {
	o.sent += x.step(node, &o.member, x.machines[o.machine].Clone(), ins...)
	all[o] = true
}

func always(int, int) bool { return true }

// exploredTiming counts in rounds. From scouting to an election it takes four.
func exploredTiming(lease int) elector.Timing {
	rounds := func(n int) time.Duration { return time.Duration(n) * time.Duration(quantum) }
	return elector.Timing{
		InitialWait: rounds(lease), MaxRandomWait: 1, ScoutingResult: rounds(3),
		ElectionResult: rounds(2 * lease), HeartbeatBroadcast: rounds(1), HeartbeatMissCount: lease,
		Lease: rounds(lease),
	}
}

// between reports whether a message goes one way or the other between two voters.
func between(from, to, a, b int) bool { return from == a && to == b || from == b && to == a }

func scouts(s elector.State) bool  { return s.Follower.Round.IsOpen() }
func leads(s elector.State) bool   { return s.Role == elector.Leader }
func follows(s elector.State) bool { return s.Follower.Leader != "" }

// TestEveryElectionByAVoterThatCrashes: a and b, who do not hear each other, stand from the
// start, and only c's vote can elect them.
func TestEveryElectionByAVoterThatCrashes(t *testing.T) {
	x := &exploration{
		t: t, voters: []elector.NodeID{"a", "b", "c"}, timing: exploredTiming(3), crashes: 1,
		lossy:    always,
		cut:      func(from, to int) bool { return between(from, to, 0, 1) },
		mayCrash: func(node int) bool { return node == 2 },
		mayStand: func(node int) bool { return node != 2 },
	}
	require.Greater(t, x.explore(x.begin(), 14), 30_000)
}

// challenged lets b lead, and all follow; then a, which hears no more of anybody, proposes
// itself in a term above refused. The answers that made it do so bind nobody.
func (x *exploration) challenged(refused lsn.Term, cut func(from, to int) bool) world {
	alone := func(from, to int) bool { return from == 0 || to == 0 }
	x.cut = alone
	w := x.pass(x.begin(), 1, leads)
	x.cut = func(int, int) bool { return false }
	w = x.pass(w, 0, follows)
	x.cut = func(from, to int) bool { return alone(from, to) || cut(from, to) }
	w = x.answered(x.pass(w, 0, scouts), 0, false, refused)
	x.cut = cut
	w = x.answered(x.pass(w, 0, scouts), 0, true, refused)
	require.Equal(x.t, elector.Candidate, x.machines[w.nodes[0].machine].State().Role)
	return w
}

// TestEveryChallengeOfALeaderOfThree: b leads, and a, who does not hear it, has proposed
// itself to c, above the terms that c has reserved. c crashes.
func TestEveryChallengeOfALeaderOfThree(t *testing.T) {
	x := &exploration{
		t: t, voters: []elector.NodeID{"a", "b", "c"}, timing: exploredTiming(5), crashes: 1,
		lossy:    always,
		mayCrash: func(node int) bool { return node == 2 },
		mayStand: func(node int) bool { return node != 2 },
	}
	w := x.challenged(7, func(from, to int) bool { return between(from, to, 0, 1) })
	require.Greater(t, x.explore(w, 9), 5_000)
}

// TestEveryChallengeOfALeaderOfFive: b leads with d and e. a, who hears neither b nor e, has
// proposed itself to c and d within what they have reserved. c, which had
// lost sight of b, crashes, and d hears b no more. It takes five voters for the vote that c
// forgot and a promise that it makes afterwards to give two leases.
func TestEveryChallengeOfALeaderOfFive(t *testing.T) {
	x := &exploration{
		t: t, voters: []elector.NodeID{"a", "b", "c", "d", "e"}, timing: exploredTiming(8), crashes: 1,
		lossy:    func(from, to int) bool { return from < 2 && to == 2 || from == 0 && to == 3 },
		mayCrash: func(node int) bool { return node == 2 },
		mayStand: func(node int) bool { return node < 2 },
	}
	w := x.challenged(2, func(from, to int) bool { return between(from, to, 1, 2) })
	x.cut = func(from, to int) bool {
		return between(from, to, 0, 1) || between(from, to, 0, 4) || from == 1 && to == 3
	}
	require.Greater(t, x.explore(w, 11), 10_000)
}
