package raft_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"math"
	"math/bits"
	"reflect"
	"time"

	etcd "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/lsn"
)

const tick = time.Second

// pair is a member twice: a machine of ours, and a node of etcd-io/raft. Both get the same inputs,
// and write to disk before their messages leave.
type pair struct {
	setup *setup
	id    uint64
	ticks int // its clock: both have the same

	ours algorithm.Machine // nil while the member is down
	disk raft.Disk
	wake algorithm.Time

	theirs  *etcd.RawNode
	storage *storage

	is state // after the last step
}

// setup is what all members of a cluster have in common.
type setup struct {
	algorithm            algorithm.Algorithm
	preVote, checkQuorum bool
	voters               []uint64
	beat, election       int // ticks: of the heartbeat, and E
}

// storage is etcd's, with the voters.
type storage struct {
	*etcd.MemoryStorage
	voters []uint64
}

// InitialState implements etcd's Storage.
func (s *storage) InitialState() (*pb.HardState, *pb.ConfState, error) {
	hard, _, err := s.MemoryStorage.InitialState()
	return hard, &pb.ConfState{Voters: s.voters}, err
}

// quiet is a logger that spends no time on what nobody reads.
type quiet struct{ *etcd.DefaultLogger }

func (quiet) Debugf(string, ...any)   {}
func (quiet) Infof(string, ...any)    {}
func (quiet) Warningf(string, ...any) {}

// draws is the random source of the process, from which etcd draws its timeouts. It counts
// reads, so that step notices a draw.
type draws struct {
	io.Reader
	reads int
}

var drawn = &draws{}

func init() { rand.Reader = drawn }

// Read implements io.Reader.
func (d *draws) Read(p []byte) (int, error) {
	d.reads++
	return d.Reader.Read(p)
}

func name(id uint64) algorithm.NodeID {
	if id == etcd.None {
		return ""
	}
	return algorithm.NodeID(rune('a' + id - 1))
}

func number(id algorithm.NodeID) uint64 { return uint64(id[0]-'a') + 1 }

// input is one thing that happens to a member, in both languages. Without theirs, it is a restart.
type input struct {
	ours   algorithm.Input
	theirs func(*etcd.RawNode) error
}

// outcome is what followed in both.
type outcome struct {
	ours   []algorithm.Envelope
	theirs []*pb.Message
}

// step hands an input to both. unsynced is a crash before anything was written or sent.
func (p *pair) step(in input, unsynced bool) (out outcome, err error) {
	reads := drawn.reads
	if p.ours == nil {
		p.boot()
	}
	if in.theirs != nil {
		if err := in.theirs(p.theirs); err != nil {
			return out, err
		}
	}
	if unsynced {
		p.crash()
		return out, nil
	}
	out.theirs = p.flush()
	entropy := uint64(math.MaxUint64) // to be noticed, if ours draws a timeout and etcd's does not
	if drawn.reads != reads {
		entropy = p.entropy()
	}
	out.ours = p.play(in.ours, entropy)
	return out, nil
}

func (p *pair) crash() { p.ours, p.theirs, p.is = nil, nil, state{} }

// boot makes new processes from what is on the disks.
func (p *pair) boot() {
	s := p.setup
	cfg := algorithm.Config{Elector: elector.Config{Self: name(p.id), Timing: elector.Timing{
		HeartbeatBroadcast: time.Duration(s.beat) * tick, HeartbeatMissCount: s.election / s.beat,
	}}}
	for _, id := range s.voters {
		cfg.Order = append(cfg.Order, name(id))
	}
	cfg.Elector.Voters = cfg.Order
	p.ours = s.algorithm.New(cfg)
	p.theirs, _ = etcd.NewRawNode(&etcd.Config{
		ID: p.id, ElectionTick: s.election, HeartbeatTick: s.beat, Storage: p.storage,
		MaxSizePerMsg: math.MaxUint64, MaxInflightMsgs: 256,
		PreVote: s.preVote, CheckQuorum: s.checkQuorum,
		Logger: quiet{&etcd.DefaultLogger{Logger: log.New(io.Discard, "", 0)}},
	})
}

// play steps our machine, with its disk.
func (p *pair) play(in algorithm.Input, entropy uint64) (sent []algorithm.Envelope) {
	now := algorithm.Time(p.ticks) * algorithm.Time(tick)
	for in != nil {
		eff := p.ours.Step(now, entropy, in)
		p.wake, in = eff.Wake, nil
		sent = append(sent, eff.Messages...)
		sent = append(sent, eff.Durable...)
		if eff.Persist != nil {
			p.disk, in = eff.Persist.(raft.Disk), elector.Persisted{}
		}
	}
	return sent
}

// flush does what etcd's node asks for until there is no more.
func (p *pair) flush() (sent []*pb.Message) {
	for p.theirs.HasReady() {
		ready := p.theirs.Ready()
		if !etcd.IsEmptyHardState(ready.HardState) {
			_ = p.storage.SetHardState(ready.HardState)
		}
		_ = p.storage.Append(ready.Entries)
		sent = append(sent, ready.Messages...)
		p.theirs.Advance(ready)
	}
	return sent
}

// inside reads a number that etcd's node does not publish.
func (p *pair) inside(field string) int {
	return int(reflect.ValueOf(p.theirs).Elem().FieldByName("raft").Elem().FieldByName(field).Int())
}

// entropy is what makes ours draw the timeout that etcd's node has drawn.
func (p *pair) entropy() uint64 {
	beyond := p.inside("randomizedElectionTimeout") - p.setup.election
	if beyond == 0 {
		return 0
	}
	share, _ := bits.Div64(uint64(beyond), 0, uint64(p.setup.election))
	return share + 1
}

// state is what is compared.
type state struct {
	view algorithm.View
	disk raft.Disk
	wake algorithm.Time
}

func (s state) String() string {
	return fmt.Sprintf("%s leader=%s view=%d %v wake=%v", s.view.Role, s.view.Leader, s.view.Term,
		s.disk, s.wake)
}

// states are those of ours and of etcd's.
func (p *pair) states() (ours, theirs state) {
	ours = state{p.ours.View(), p.disk, p.wake}
	is := p.theirs.BasicStatus()
	role := map[etcd.StateType]elector.Role{
		etcd.StateFollower: elector.Follower, etcd.StatePreCandidate: elector.Candidate,
		etcd.StateCandidate: elector.Candidate, etcd.StateLeader: elector.Leader,
	}[is.RaftState]
	term := lsn.Term(is.HardState.GetTerm())
	theirs.view = algorithm.View{Role: role, Leader: name(is.Lead), Term: term}
	last, _ := p.storage.LastIndex()
	log, _ := p.storage.Term(last)
	theirs.disk = raft.Disk{Term: term, VotedFor: name(is.HardState.GetVote()),
		LastLogTerm: lsn.Term(log)}
	elapsed := p.inside("electionElapsed")
	wait := p.inside("randomizedElectionTimeout") - elapsed
	if role == elector.Leader {
		wait = min(p.setup.election-elapsed, p.setup.beat-p.inside("heartbeatElapsed"))
	}
	theirs.wake = algorithm.Time(p.ticks+wait) * algorithm.Time(tick)
	return ours, theirs
}

// log is etcd's, which is not changed in place.
func (p *pair) log() []*pb.Entry {
	last, _ := p.storage.LastIndex()
	if last == 0 {
		return nil
	}
	entries, _ := p.storage.Entries(1, last+1, math.MaxUint64)
	return entries
}
