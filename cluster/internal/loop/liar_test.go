package loop

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// liar is voter c, whose mesh is in order, and which says what a test wants. By itself it says
// nothing.
type liar struct {
	*netmesh.Mesh

	net *memnet.Network

	mu       sync.Mutex
	sessions map[elector.NodeID]uint64
	reads    map[elector.NodeID]*pair.Leader // what peers follow
	heard    map[elector.NodeID]pair.Beat    // the newest of each peer
	changes  []pair.Change                   // of what peers follow
	acks     []pair.Ack
}

func (l *liar) LinkUp(p netmesh.PeerInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions[p.Node], l.reads[p.Node] = p.Session, pair.NewLeader()
}

func (l *liar) Changed(from elector.NodeID, _ uint64, all []pair.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range all {
		if c.Revision != 0 {
			l.reads[from].Read(c)
			l.changes = append(l.changes, c)
		}
	}
}

func (l *liar) Beaten(from elector.NodeID, _ uint64, b pair.Beat, _ time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard[from] = b
}

func (*liar) LinkDown(elector.NodeID, elector.Evidence)        {}
func (*liar) Died(elector.NodeID, elector.Proof)               {}
func (*liar) Received(elector.NodeID, string, elector.Message) {}
func (*liar) Noted(elector.NodeID, netmesh.Note)               {}

func (l *liar) Acked(_ elector.NodeID, _ uint64, a pair.Ack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acks = append(l.acks, a)
}

// said returns what peers have said.
func (l *liar) said() (changes []pair.Change, acks []pair.Ack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.changes), slices.Clone(l.acks)
}

// change sends changes, be they what they may.
func (l *liar) change(to *member, all ...pair.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Change(to.id, l.sessions[to.id], all)
}

func (l *liar) ack(to *member, a pair.Ack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Ack(to.id, l.sessions[to.id], a)
}

// claim says by heartbeats that it leads elections.
func (l *liar) claim(to *member, elections ...string) {
	for _, name := range elections {
		l.Send(to.id, name, elector.Message{
			Kind: elector.LeaderHeartbeat, Term: 1, Sequence: 1, SentAt: 1, Period: period,
		})
	}
}

// beat sends a beat, as a leader sends it that lives, or as lie changes it.
func (l *liar) beat(to *member, lie func(*pair.Beat)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.reads[to.id].Beat(elector.Time(time.Now().UnixNano()), period, 0)
	lie(&b)
	l.Beat(to.id, l.sessions[to.id], b)
}

func honest(*pair.Beat) {}

var period = elector.Article().HeartbeatBroadcast

// withLiar runs a test with the voters a and b, which are honest, and c, which is not.
func withLiar(t *testing.T, elections []string, play func(*testing.T, []*member, *liar)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net, c := memnet.New(), clock.Process()
		all := []*member{
			startMember(t, net, c, "a", abc, elections...), startMember(t, net, c, "b", abc, elections...),
		}
		l := &liar{net: net, sessions: map[elector.NodeID]uint64{},
			reads: map[elector.NodeID]*pair.Leader{}, heard: map[elector.NodeID]pair.Beat{}}
		var err error
		l.Mesh, err = netmesh.Listen(netmesh.Config{
			Cluster: "c", Node: "c", Identity: uuid.New(), Boot: 1, Bind: "c:7000", Network: net.Host("c"),
		}, l)
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close(t.Context())) }()
		for _, m := range all {
			for _, id := range abc {
				m.mesh.AddPeer(id, string(id)+":7000")
			}
			l.AddPeer(m.id, string(m.id)+":7000")
		}
		time.Sleep(time.Second)
		play(t, all, l)
	})
}

// every calls do again and again for a while.
func every(pause, while time.Duration, do func()) {
	for began := time.Now(); time.Since(began) < while; time.Sleep(pause) {
		do()
	}
}

// A voter that lies at random as a follower costs no leader its lease, and little memory.
func TestAFollowerThatLiesDisturbsNobody(t *testing.T) {
	seed := rand.Uint64()
	if given, err := strconv.ParseUint(os.Getenv("BMQELECT_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("BMQELECT_SEED=%d", seed)
	random, elections := rand.New(rand.NewPCG(seed, 0)), numbered(10)
	withLiar(t, elections, func(t *testing.T, all []*member, l *liar) {
		time.Sleep(40 * time.Second)
		before := map[string]*member{}
		for _, e := range elections {
			before[e] = leader(t, all, e)
			require.NotNil(t, before[e], e)
		}
		most, ghosts, next := 0, 0, map[*member]uint64{}
		every(10*time.Millisecond, 20*time.Second, func() {
			for _, m := range all {
				for range 40 {
					name := elections[random.IntN(len(elections))]
					if random.IntN(2) == 0 {
						ghosts++
						name = fmt.Sprint("ghost", ghosts)
					}
					l.change(m, lie(random, name, next, m))
				}
				l.ack(m, pair.Ack{
					Sequence: random.Uint64N(1 << random.IntN(64)), SentAt: elector.Time(random.Int64()),
					Revision: random.Uint64N(1 << random.IntN(64)), Wanted: time.Duration(random.Int64()),
				})
				l.beat(m, func(b *pair.Beat) { b.Revision, b.Hash = random.Uint64(), random.Uint64() })
				m.view(func(d *Driver) {
					most = max(most, d.sessions["c"].leads.Len())
				})
			}
			for _, e := range elections {
				require.Equal(t, before[e], leader(t, all, e), e)
			}
		})
		require.LessOrEqual(t, most, 2*(len(elections)+1)+mostUnknown)
		require.Greater(t, most, mostUnknown, "it came to the limit")
		for _, m := range all {
			m.view(func(d *Driver) {
				require.Positive(t, d.anomalies["beat-never-sent"].Count)
				require.Positive(t, d.anomalies["beat-differs"].Count)
			})
			require.LessOrEqual(t, m.pace.most.Load(), int64(4*batch), "steps in one go")
		}
		_, mirrored := inSessions(all[:1])
		require.Positive(t, mirrored)
	})
}

// lie is a change that may follow the one before, or not.
func lie(random *rand.Rand, name string, next map[*member]uint64, m *member) pair.Change {
	next[m]++
	c := pair.Change{What: pair.Join, Group: name, Term: 1, Revision: next[m]}
	switch random.IntN(3000) {
	case 0:
		next[m] += random.Uint64N(1 << random.IntN(40)) // a jump
		return pair.Change{What: pair.Empty, Revision: next[m]}
	case 1:
		c.Revision = random.Uint64()
	case 2:
		next[m]--
		return pair.Change{What: pair.Begin}
	case 3:
		next[m]--
		return pair.Change{What: pair.Disown, Group: name, Term: lsn.Term(random.IntN(4))}
	case 4:
		return pair.Change{What: pair.Leave, Group: name, Revision: next[m]}
	}
	switch random.IntN(10) {
	case 0:
		c.Term = lsn.Term(random.IntN(4) + 1)
	case 1:
		c.What = pair.Observe
	}
	return c
}

// §16.4: of three voters one is cut off, and one lies. The leader keeps its lease only if the liar
// does what a voter does that follows: it joins in the leader's term, and acknowledges beats that
// were sent. Before the cut it has acknowledged them, so that it counts if it may.
func TestLiesKeepNoLease(t *testing.T) {
	join := func(term lsn.Term) pair.Change {
		return pair.Change{What: pair.Join, Revision: 1, Group: "first", Term: term}
	}
	ackOf := func(b pair.Beat) pair.Ack {
		return pair.Ack{Sequence: b.Sequence, SentAt: b.SentAt, Revision: 1}
	}
	joins := func(at lsn.Term) []pair.Change { return []pair.Change{join(at)} }
	for name, c := range map[string]struct {
		says func(term lsn.Term) []pair.Change
		acks func(pair.Beat) pair.Ack
		kept bool
	}{
		"the truth":    {joins, ackOf, true},
		"a later term": {func(at lsn.Term) []pair.Change { return joins(at + 1) }, ackOf, false},
		"another election": {func(at lsn.Term) []pair.Change {
			return []pair.Change{{What: pair.Join, Revision: 1, Group: "ghost", Term: at}}
		}, ackOf, false},
		"it observes": {func(at lsn.Term) []pair.Change {
			return []pair.Change{{What: pair.Observe, Revision: 1, Group: "first", Term: at}}
		}, ackOf, false},
		"it has left": {func(at lsn.Term) []pair.Change {
			return []pair.Change{join(at), {What: pair.Leave, Revision: 2, Group: "first"},
				{What: pair.Join, Revision: 3, Group: "ghost", Term: at}}
		}, ackOf, false},
		"a revision that was never read": {
			joins, func(b pair.Beat) pair.Ack { a := ackOf(b); a.Revision = 2; return a }, false},
		"a beat that was never sent": {
			joins, func(b pair.Beat) pair.Ack { a := ackOf(b); a.Sequence += 1000; return a }, false},
		"a time that is to come": {
			joins, func(b pair.Beat) pair.Ack { a := ackOf(b); a.SentAt += 1e10; return a }, false},
	} {
		t.Run(name, func(t *testing.T) {
			withLiar(t, nil, func(t *testing.T, all []*member, l *liar) {
				time.Sleep(40 * time.Second)
				leads := leader(t, all, "first")
				term := leads.Snapshot(leads.first(t)).Term
				acked := uint64(0)
				answer := func(how func(pair.Beat) pair.Ack) {
					l.mu.Lock()
					b := l.heard[leads.id]
					l.mu.Unlock()
					if b.Sequence > acked {
						acked = b.Sequence
						l.ack(leads, how(b))
					}
				}
				l.change(leads, c.says(term)...)
				every(10*time.Millisecond, time.Second, func() { answer(ackOf) })
				leads.view(func(d *Driver) { // the leases are arranged anew
					d.step(d.groups["first"], elector.Covered{})
				})
				every(10*time.Millisecond, time.Second, func() { answer(ackOf) })
				l.net.Filter("a", "b", memnet.Drop)
				l.net.Filter("b", "a", memnet.Drop)
				every(10*time.Millisecond, elector.Article().Lease+period, func() { answer(c.acks) })
				require.Positive(t, acked)
				require.Equal(t, c.kept, leads.first(t).Leading(), "as others on this node see it")
				s := leads.Snapshot(leads.first(t))
				require.Equal(t, c.kept, s.Role == elector.Leader && s.Term == term)
				l.net.Filter("a", "b", memnet.Pass)
				l.net.Filter("b", "a", memnet.Pass)
			})
		})
	}
}

// §16.4: an ack above what was read waits for the changes up to it. If they are read after the
// lease has ended it does not come back, although the beat was acknowledged in time.
func TestAnAckThatWaitsForAChangeKeepsNoLease(t *testing.T) {
	for _, late := range []bool{false, true} {
		withLiar(t, nil, func(t *testing.T, all []*member, l *liar) {
			time.Sleep(40 * time.Second)
			leads := leader(t, all, "first")
			term := leads.Snapshot(leads.first(t)).Term
			acked := pair.Beat{}
			answer := func(revision uint64) {
				l.mu.Lock()
				b := l.heard[leads.id]
				l.mu.Unlock()
				if b.Sequence > acked.Sequence {
					acked = b
					l.ack(leads, pair.Ack{Sequence: b.Sequence, SentAt: b.SentAt, Revision: revision})
				}
			}
			l.change(leads, pair.Change{What: pair.Join, Revision: 1, Group: "first", Term: term})
			every(10*time.Millisecond, time.Second, func() { answer(1) })
			l.net.Filter("a", "b", memnet.Drop)
			l.net.Filter("b", "a", memnet.Drop)
			defer l.net.Filter("a", "b", memnet.Pass)
			defer l.net.Filter("b", "a", memnet.Pass)
			every(10*time.Millisecond, time.Second, func() { answer(1) }) // the lease rests on these
			counts := acked
			for acked == counts {
				answer(2)
				time.Sleep(time.Millisecond)
			}
			end := counts.SentAt.Add(elector.Article().Lease)
			time.Sleep(end.Sub(leads.Now()) - 10*time.Millisecond)
			require.True(t, leads.first(t).Leading())
			if late {
				leads.pace.hold.Store(int64(20 * time.Millisecond))
			}
			l.change(leads, pair.Change{What: pair.Join, Revision: 2, Group: "ghost", Term: 1})
			time.Sleep(15 * time.Millisecond)
			require.Equal(t, !late, leads.first(t).Leading())
			time.Sleep(10 * time.Millisecond)
			require.Equal(t, !late, leads.first(t).Leading())
			s := leads.Snapshot(leads.first(t))
			require.Equal(t, !late, s.Role == elector.Leader && s.Term == term)
		})
	}
}

// follow lets a and b follow the liar in all elections.
func (l *liar) follow(t *testing.T, all []*member, elections []string) {
	t.Helper()
	for _, m := range all {
		l.claim(m, elections...)
	}
	time.Sleep(100 * time.Millisecond)
	for _, m := range all {
		require.Equal(t, len(elections), m.followed("c"))
	}
}

// followed is how many elections are in the followed set of the session with a peer.
func (m *member) followed(peer elector.NodeID) (n int) {
	m.view(func(d *Driver) { n = d.sessions[peer].follows.Len() })
	return n
}

// §16.3, §16.6: beats that are not what a leader would send keep nobody from giving it up.
func TestBeatsThatLieHoldNobody(t *testing.T) {
	for name, c := range map[string]struct {
		lie  func(*pair.Beat)
		kept bool
	}{
		"the truth":                         {honest, true},
		"a revision that the set never had": {func(b *pair.Beat) { b.Revision += 9 }, false},
		"another hash":                      {func(b *pair.Beat) { b.Hash++ }, false},
		"a copy":                            {func(b *pair.Beat) { b.Sequence = 1 }, false},
		"a period as long as the lease":     {func(b *pair.Beat) { b.Period = time.Hour }, false},
	} {
		t.Run(name, func(t *testing.T) {
			elections := numbered(10)
			withLiar(t, elections, func(t *testing.T, all []*member, l *liar) {
				l.follow(t, all, elections)
				every(100*time.Millisecond, 20*time.Second, func() {
					for _, m := range all {
						l.beat(m, c.lie)
					}
				})
				for _, e := range elections {
					require.Equal(t, c.kept, leader(t, all, e) == nil, e)
				}
				if c.kept {
					require.Equal(t, len(elections), all[0].followed("c"))
				}
			})
		})
	}
}

// §16.5: a set is emptied once a heartbeat period at most, whatever the peer says and however often
// it lets the set fill again. Then everything goes on.
func TestASetIsEmptiedOnceAPeriod(t *testing.T) {
	const while = 4 * time.Second
	for name, attack := range map[string]func(l *liar, m *member){
		"it asks for it": func(l *liar, m *member) { l.change(m, pair.Change{What: pair.Begin}) },
		"it differs":     func(l *liar, m *member) { l.beat(m, func(b *pair.Beat) { b.Hash++ }) },
		"it never reads": func(l *liar, m *member) { l.beat(m, func(b *pair.Beat) { b.Revision = 0 }) },
	} {
		t.Run(name, func(t *testing.T) {
			elections := numbered(10)
			withLiar(t, elections, func(t *testing.T, all []*member, l *liar) {
				l.follow(t, all, elections)
				emptied := map[elector.Time]bool{}
				every(2*time.Millisecond, while, func() {
					l.claim(all[0], elections...)
					attack(l, all[0])
					all[0].view(func(d *Driver) { emptied[d.sessions["c"].emptied] = true })
				})
				require.LessOrEqual(t, len(emptied), int(while/period)+1)
				require.Greater(t, len(emptied), 3)
				time.Sleep(period + period/8)
				l.beat(all[0], honest) // what was put off is done now
				time.Sleep(period / 8)
				l.follow(t, all[:1], elections)
				every(100*time.Millisecond, 10*time.Second, func() { l.beat(all[0], honest) })
				require.Equal(t, len(elections), all[0].followed("c"), "by beats alone")
			})
		})
	}
}

// §16.5: a peer that lost two changes in one period asks twice. For the second one the set is
// emptied with a later beat.
func TestASetIsEmptiedAgainLater(t *testing.T) {
	elections := numbered(10)
	withLiar(t, elections, func(t *testing.T, all []*member, l *liar) {
		for range 2 {
			l.follow(t, all[:1], elections)
			l.change(all[0], pair.Change{What: pair.Begin})
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, len(elections), all[0].followed("c"), "it is too soon")
		every(period/4, 2*period, func() { l.beat(all[0], honest) })
		require.Zero(t, all[0].followed("c"))
	})
}

// However many changes a frame has, others have their turn; and of one link only one waits.
func TestManyChangesLeaveRoomForOthers(t *testing.T) {
	elections := numbered(10)
	withLiar(t, elections, func(t *testing.T, all []*member, l *liar) {
		l.follow(t, all, elections)
		all[0].pace.most.Store(0)
		many := make([]pair.Change, 50_000)
		for i := range many {
			many[i] = pair.Change{What: pair.Disown, Group: elections[i%10], Term: 1}
		}
		all[0].pace.hold.Store(int64(time.Second))
		l.change(all[0], many...)
		time.Sleep(500 * time.Millisecond)
		require.LessOrEqual(t, all[0].InboxLength(), 2)
		time.Sleep(time.Second)
		require.LessOrEqual(t, all[0].pace.most.Load(), int64(2*batch), "steps in one go")
		require.GreaterOrEqual(t, all[0].pace.most.Load(), int64(batch))
	})
}
