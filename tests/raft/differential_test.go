// Package raft_test plays etcd-io/raft beside the laboratory's Raft, on random schedules.
package raft_test

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	etcd "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/lsn"
)

var (
	schedules = flag.Int("schedules", 1000, "how many random schedules of each variant to play")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first of them")
)

// TestAgainstEtcd compares role, leader, term, vote, log and next deadline of each member after
// each step, and what it sends. The logs of etcd's nodes are handed over as ours are, at once and
// whole, with the messages of ours: how far each is behind would differ otherwise.
func TestAgainstEtcd(t *testing.T) {
	for _, s := range []setup{
		{algorithm: raft.Etcd},
		{algorithm: raft.WithPreVote, preVote: true},
		{algorithm: raft.WithCheckQuorum, preVote: true, checkQuorum: true},
	} {
		t.Run(s.algorithm.Name, func(t *testing.T) {
			all := tally{}
			for i := range *schedules {
				seed := *firstSeed + uint64(i)
				if err := newWorld(s, seed, all, nil).run(); err != nil {
					_ = newWorld(s, seed, tally{}, t.Output()).run()
					t.Fatalf("%v\nrepeat it: go test ./raft -run %s -schedules 1 -seed %d", err, t.Name(), seed)
				}
			}
			t.Logf("seeds from %d, %d schedules: %v", *firstSeed, *schedules, all)
			for _, what := range []string{"tick", "crash", "crash before the write", "transfer",
				"elected", "campaign of a transfer", "deposed"} {
				require.GreaterOrEqual(t, all[what], *schedules/50, "of %s", what)
			}
		})
	}
}

// tally counts what happened, to show that schedules do not pass it by.
type tally map[string]int

// world is a cluster with its network.
type world struct {
	setup
	rng     *rand.Rand
	members []*pair
	packets []packet
	cut     [][2]uint64 // ways on which all is lost
	leads   map[lsn.Term]uint64
	all     tally
	trace   io.Writer
}

// packet is a message, and what etcd's node sent in its place.
type packet struct {
	from, to uint64
	ours     raft.Message
	theirs   []*pb.Message
	log      []*pb.Entry // of the sender, for AppendEntries
}

// String is for the trace.
func (is *packet) String() string {
	return fmt.Sprintf("from %s: %s", name(is.from), algorithm.Text(is.ours))
}

func newWorld(s setup, seed uint64, all tally, trace io.Writer) *world {
	w := &world{setup: s, rng: rand.New(rand.NewPCG(seed, 1)), all: all, trace: trace}
	w.leads = map[lsn.Term]uint64{}
	var key [32]byte
	key[0], key[1], key[2], key[3] = byte(seed), byte(seed>>8), byte(seed>>16), byte(seed>>24)
	drawn.Reader = rand.NewChaCha8(key)
	w.beat = 1 + w.rng.IntN(3)
	w.election = w.beat * (2 + w.rng.IntN(4))
	for id := range uint64(2 + w.rng.IntN(5)) {
		w.voters = append(w.voters, id+1)
	}
	for _, id := range w.voters {
		w.members = append(w.members, &pair{setup: &w.setup, id: id, storage: &storage{
			MemoryStorage: etcd.NewMemoryStorage(), voters: w.voters,
		}})
	}
	return w
}

const steps = 400

// run plays a schedule. How likely each event is differs from one to the next.
func (w *world) run() error {
	for _, p := range w.members {
		if err := w.act("start", p, input{ours: algorithm.Start{}}); err != nil {
			return err
		}
	}
	deliver, faults := 50+w.rng.IntN(200), w.rng.IntN(12)
	for range steps {
		p := w.members[w.rng.IntN(len(w.members))]
		var err error
		switch n := w.rng.IntN(100 + deliver + faults); {
		case n < 100:
			err = w.tick(p)
		case n < 100+deliver:
			err = w.deliver()
		default:
			err = w.fault(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) tick(p *pair) error {
	p.ticks++
	if p.ours == nil {
		return nil
	}
	return w.act("tick", p, input{ours: elector.Tick{}, theirs: func(n *etcd.RawNode) error {
		n.Tick()
		return nil
	}})
}

func (w *world) fault(p *pair) error {
	switch w.rng.IntN(6) {
	case 0:
		return w.transfer()
	case 1:
		w.cut = nil
	case 2, 3: // one member loses some ways
		for _, id := range w.voters {
			for _, way := range [][2]uint64{{p.id, id}, {id, p.id}} {
				if w.rng.IntN(3) > 0 {
					w.cut = append(w.cut, way)
				}
			}
		}
	case 4:
		if p.ours != nil {
			w.note("%s crashes", name(p.id))
			w.all["crash"]++
			p.crash()
		}
	case 5:
		if p.ours == nil {
			start := algorithm.Start{}
			if p.disk != (raft.Disk{}) {
				start.Disk = p.disk
			}
			return w.act("restart", p, input{ours: start})
		}
	}
	return nil
}

// transfer asks a leader to hand over.
func (w *world) transfer() error {
	to := w.voters[w.rng.IntN(len(w.voters))]
	for _, p := range w.members {
		if p.ours == nil || p.ours.View().Role != elector.Leader {
			continue
		}
		return w.act(fmt.Sprint("transfer to ", name(to)), p, input{
			ours: elector.Transfer{To: name(to)},
			theirs: func(n *etcd.RawNode) error {
				n.TransferLeader(to)
				return nil
			},
		})
	}
	return nil
}

// deliver hands over one of the oldest packets, or loses it; some arrive twice.
func (w *world) deliver() error {
	if len(w.packets) == 0 {
		return nil
	}
	i := min(w.rng.IntN(1+len(w.packets)), w.rng.IntN(4), len(w.packets)-1)
	is := w.packets[i]
	to := w.members[is.to-1]
	if w.rng.IntN(50) > 0 {
		w.packets = slices.Delete(w.packets, i, i+1)
	}
	if to.ours == nil || slices.Contains(w.cut, [2]uint64{is.from, is.to}) || w.rng.IntN(30) == 0 {
		return nil
	}
	return w.act(&is, to, input{
		ours: algorithm.Received{From: name(is.from), Message: is.ours},
		theirs: func(n *etcd.RawNode) error {
			for _, m := range is.in(to) {
				if err := n.Step(m); err != nil {
					return fmt.Errorf("etcd's step: %w", err)
				}
			}
			return nil
		},
	})
}

// in is what etcd's node hears in the place of our message. AppendEntries brings it all that its
// log needs to be the leader's.
func (is *packet) in(to *pair) []*pb.Message {
	if is.ours.Kind != raft.AppendEntries {
		return is.theirs
	}
	term, log := uint64(is.ours.Term), to.log()
	same := min(len(log), len(is.log))
	for same > 0 && log[same-1].GetTerm() != is.log[same-1].GetTerm() {
		same--
	}
	m := &pb.Message{
		Type: pb.MsgApp.Enum(), From: &is.from, To: &is.to, Term: &term,
		Index: new(uint64(same)), LogTerm: new(uint64), Entries: is.log[same:],
	}
	if same > 0 {
		m.LogTerm = log[same-1].Term
	}
	return append(slices.Clone(is.theirs), m)
}

func (w *world) note(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, format+"\n", args...)
	}
}

// act lets something happen to a member, compares, and sends what follows.
func (w *world) act(what any, p *pair, in input) error {
	w.note("%s %v", name(p.id), what)
	before := p.is
	unsynced := in.theirs != nil && w.rng.IntN(300) == 0
	out, err := p.step(in, unsynced)
	if err != nil {
		return fmt.Errorf("%s %v: %w", name(p.id), what, err)
	}
	if unsynced {
		w.all["crash before the write"]++
		return nil
	}
	ours, theirs := p.states()
	w.note("\t%v", ours)
	if p.is = ours; ours != theirs {
		return fmt.Errorf("%s %v:\nours %v\netcd %v", name(p.id), what, ours, theirs)
	}
	elected := ours.view.Role == elector.Leader && before.view.Role != elector.Leader
	if err := w.send(p, out, elected); err != nil {
		return fmt.Errorf("%s %v: %w", name(p.id), what, err)
	}
	return w.tell(p, in, before)
}

// send compares what both send, and puts it on its way.
func (w *world) send(p *pair, out outcome, elected bool) error {
	want, carried := map[uint64]raft.Message{}, map[uint64][]*pb.Message{}
	broadcast := elected
	for _, m := range out.theirs {
		to := m.GetTo()
		switch m.GetType() {
		case pb.MsgApp:
			continue // see packet.in
		case pb.MsgHeartbeat:
			broadcast, m.Commit = true, nil // our logs know no commits
		case pb.MsgHeartbeatResp: // there is a MsgAppResp beside it
		default:
			if was, ok := want[to]; ok && was != translate(m) {
				return fmt.Errorf("etcd sends two messages to %s: %v and %v", name(to), was, translate(m))
			}
			want[to] = translate(m)
		}
		carried[to] = append(carried[to], m)
	}
	for _, e := range out.ours {
		m := e.Message.(raft.Message)
		if m.Kind == raft.AppendEntries {
			if e.To == elector.AllMembers && !broadcast {
				return fmt.Errorf("etcd does not send %v", m)
			}
			broadcast = broadcast && e.To != elector.AllMembers
			w.handOut(p, e.To, m, carried)
			continue
		}
		to := number(e.To)
		if want[to] != m {
			return fmt.Errorf("ours sends %v to %s, etcd %v", m, e.To, want[to])
		}
		delete(want, to)
		w.packets = append(w.packets, packet{p.id, to, m, carried[to], nil})
	}
	if broadcast || len(want) > 0 {
		return fmt.Errorf("ours does not send: heartbeats %v, messages %v", broadcast, want)
	}
	return nil
}

// handOut sends AppendEntries, with etcd's heartbeat if there is one.
func (w *world) handOut(
	p *pair, to algorithm.NodeID, m raft.Message, beats map[uint64][]*pb.Message,
) {
	for _, id := range w.voters {
		if id != p.id && (to == elector.AllMembers || to == name(id)) {
			w.packets = append(w.packets, packet{p.id, id, m, beats[id], p.log()})
		}
	}
}

// translate is etcd's message in our words.
func translate(m *pb.Message) raft.Message {
	kinds := map[pb.MessageType]raft.Kind{
		pb.MsgVote: raft.RequestVote, pb.MsgVoteResp: raft.RequestVoteResponse,
		pb.MsgPreVote: raft.PreVote, pb.MsgPreVoteResp: raft.PreVoteResponse,
		pb.MsgAppResp: raft.AppendEntriesResponse, pb.MsgTimeoutNow: raft.TimeoutNow,
	}
	kind, known := kinds[m.GetType()]
	if !known || kind == raft.AppendEntriesResponse && m.GetReject() {
		panic(fmt.Sprintf("etcd sends %v", m))
	}
	ours := raft.Message{Kind: kind, Term: lsn.Term(m.GetTerm())}
	switch kind {
	case raft.RequestVote, raft.PreVote:
		ours.LastLogTerm, ours.Transfer = lsn.Term(m.GetLogTerm()), len(m.GetContext()) > 0
	case raft.RequestVoteResponse, raft.PreVoteResponse:
		ours.Vote = raft.Granted
		if m.GetReject() {
			ours.Vote = raft.Rejected
		}
	}
	return ours
}

// tell counts what happened, and checks that there is one leader in a term.
func (w *world) tell(p *pair, in input, before state) error {
	now := p.is
	switch in := in.ours.(type) {
	case elector.Tick:
		w.all["tick"]++
	case elector.Transfer:
		w.all["transfer"]++
	case algorithm.Received:
		if in.Message.(raft.Message).Kind == raft.TimeoutNow && now.view.Role == elector.Candidate {
			w.all["campaign of a transfer"]++
		}
	}
	led, leads := before.view.Role == elector.Leader, now.view.Role == elector.Leader
	switch {
	case led && !leads && before.disk.Term == now.disk.Term:
		w.all["stepped down"]++
	case led && !leads:
		w.all["deposed"]++
	case leads && !led:
		w.all["elected"]++
	}
	if by, ok := w.leads[now.disk.Term]; leads && ok && by != p.id {
		return fmt.Errorf("%s and %s lead in term %d", name(by), name(p.id), now.disk.Term)
	}
	if leads {
		w.leads[now.disk.Term] = p.id
	}
	return nil
}
