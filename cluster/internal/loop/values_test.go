package loop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/internal/measure"
	"github.com/bmqelect/bmqelect/cluster/internal/recorder"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/cluster/internal/testprocess"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// member is a node of a test: a loop on a mesh.
type member struct {
	*Loop
	mesh  *netmesh.Mesh
	id    elector.NodeID
	beats *lateness
	lossy *lossy
	pace  *pace
	close func(context.Context)
}

// pace holds a driver up, and counts how many steps of elections it makes in one go.
type pace struct {
	hold      atomic.Int64 // for how long right before it goes on, in ns
	each      atomic.Int64 // how long each go takes, in ns
	now, most atomic.Int64 // steps
}

func (p *pace) gate() {
	time.Sleep(time.Duration(p.hold.Swap(0) + p.each.Load()))
	p.now.Store(0)
}

func (p *pace) stepped() { p.most.Store(max(p.most.Load(), p.now.Add(1))) }

// lossy is a mesh that loses the notes, changes and beats that functions say.
type lossy struct {
	*netmesh.Mesh

	drop       atomic.Pointer[func(to elector.NodeID, n netmesh.Note) bool]
	dropChange atomic.Pointer[func(to elector.NodeID, c pair.Change) bool]
	dropBeats  atomic.Bool
}

func (l *lossy) Change(to elector.NodeID, session uint64, all []pair.Change) bool {
	if drop := l.dropChange.Load(); drop != nil {
		all = slices.DeleteFunc(all, func(c pair.Change) bool { return (*drop)(to, c) })
	}
	return l.Mesh.Change(to, session, all)
}

func (l *lossy) Beat(to elector.NodeID, session uint64, b pair.Beat) bool {
	return l.dropBeats.Load() || l.Mesh.Beat(to, session, b)
}

func (l *lossy) Notify(to elector.NodeID, n netmesh.Note) bool {
	if drop := l.drop.Load(); drop != nil && (*drop)(to, n) {
		return true
	}
	return l.Mesh.Notify(to, n)
}

// lateness is how long heartbeats took from the clock of the leader to the step of this node. All
// nodes of a test have one clock.
type lateness struct {
	clock clock.Clock
	mu    sync.Mutex
	all   []time.Duration
}

func (l *lateness) stepped(s testhook.Step) {
	r, ok := s.In.(elector.Received)
	if !ok || r.Message.Kind != elector.LeaderHeartbeat {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := elector.Time(l.clock.Now())
	l.all = append(l.all, now.Sub(r.Message.SentAt)+r.Message.Late)
}

// take returns what was measured since the last call, sorted.
func (l *lateness) take() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	slices.Sort(all)
	return all
}

// meet starts nodes that elect in some elections.
func meet(
	t testing.TB, net *memnet.Network, names []elector.NodeID, elections ...string,
) []*member {
	return meetWith(t, net, clock.Process(), names, elections...)
}

func meetWith(
	t testing.TB, net *memnet.Network, c clock.Clock, names []elector.NodeID, elections ...string,
) []*member {
	var all []*member
	for _, id := range names {
		all = append(all, startMember(t, net, c, id, names, elections...))
	}
	for _, m := range all {
		for _, o := range names {
			m.mesh.AddPeer(o, string(o)+":7000")
		}
	}
	return all
}

func startMember(
	t testing.TB, net *memnet.Network, c clock.Clock, id elector.NodeID, voters []elector.NodeID,
	elections ...string,
) *member {
	return startWith(t, net, c, id, voters, elector.Article(), elections...)
}

func startWith(
	t testing.TB, net *memnet.Network, c clock.Clock, id elector.NodeID, voters []elector.NodeID,
	timing elector.Timing, elections ...string,
) *member {
	setup := Setup{
		Elector:    elector.Config{Self: id, Voters: voters, Timing: timing},
		StopMargin: 100 * time.Millisecond,
	}
	p := testprocess.New(net, string(id))
	m := boot(t, p, t.TempDir(), testhook.Hooks{Clock: c}, setup)
	for _, name := range elections {
		_, err := m.Open(name, setup)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		m.close(ctx) // a leader without its quorum hands over to nobody
	})
	return m
}

// boot starts a member in a process, on a data directory, with the first election.
func boot(
	t testing.TB, p *testprocess.Process, dir string, hooks testhook.Hooks, setup Setup,
) *member {
	id, voters := setup.Elector.Self, setup.Elector.Voters
	beats, pace, looks := &lateness{clock: hooks.Clock}, &pace{}, hooks.Stepped
	hooks.Gate, hooks.Stepped = pace.gate, func(s testhook.Step) {
		beats.stepped(s)
		pace.stepped()
		if looks != nil {
			looks(s)
		}
	}
	hooks = testhook.From(p.Context(hooks))
	s, err := store.OpenOn(dir, store.Owner{Cluster: "c", Node: string(id)}, hooks.Disk)
	require.NoError(t, err)
	m := measure.New()
	r := recorder.New(recorder.Config{
		Dir: t.TempDir(), Node: string(id), Age: m.Age, Found: func(string) {},
		Faults: func() string { return "" },
	})
	l := New(Config{
		Node: id, Voters: voters, Log: hclog.NewNullLogger(), Hooks: hooks, Store: s, Measure: m,
		Recorder: r, Claimed: func(_ findings.Kind, _ elector.NodeID, why string) { t.Error(why) },
		Publish: func(string, elector.Transition, time.Time, string) {},
		Differs: func() string { return "" },
	})
	first, err := l.NewElection("first", setup)
	require.NoError(t, err)
	mesh, err := netmesh.Listen(netmesh.Config{
		Cluster: "c", Node: id, Identity: s.Identity(), Boot: s.Boot(), Bind: string(id) + ":7000",
		Network: hooks.Network, Voter: l.IsVoter,
	}, l)
	require.NoError(t, err)
	wrapped := &lossy{Mesh: mesh}
	l.Start(wrapped, first)
	quit := make(chan struct{})
	go r.Run(quit)
	return &member{l, mesh, id, beats, wrapped, pace, func(ctx context.Context) {
		_ = l.CloseAll(ctx)
		_ = mesh.Close(ctx)
		l.Stop()
		close(quit)
		<-l.Persisted()
		<-r.Done()
		s.Close()
		l.StopWatcher()
	}}
}

// publish lets the leader of an election write a value, and returns it when that is committed.
func publish(t testing.TB, all []*member, election string, value []byte) (leader *member) {
	t.Helper()
	for _, m := range all {
		e, err := m.Lookup(election, false)
		require.NoError(t, err)
		if e.Leading() {
			leader = m
			_, err := m.PublishHere(context.Background(), e, Write{Value: value})
			require.NoError(t, err)
		}
	}
	require.NotNil(t, leader, "nobody leads %s", election)
	return leader
}

// shows returns the committed value of an election as a node knows it.
func (m *member) shows(election string) (value []byte) {
	m.view(func(d *Driver) {
		g := d.groups[election]
		value = g.value(g.machine.Record().Committed.Value)
	})
	return value
}

// noise is a value that no compression would make smaller.
func noise(size int) []byte {
	value := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(value)
	return value
}

var abc = []elector.NodeID{"a", "b", "c"}

func TestValuesReachEveryNode(t *testing.T) {
	for _, size := range []int{1, 1000, partSize, partSize + 1, 3*partSize - 1, elector.MaxValue} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := meet(t, memnet.New(), abc)
				time.Sleep(30 * time.Second)
				value := noise(size)
				publish(t, all, "first", value)
				time.Sleep(time.Second) // two heartbeats
				for _, m := range all {
					require.True(t, bytes.Equal(value, m.shows("first")), m.id)
				}
			})
		})
	}
}

// A voter of an older build would hear of no leader once there is a record.
func TestTheFirstRecordWaitsForOlderVoters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := meet(t, memnet.New(), abc)
		time.Sleep(30 * time.Second)
		leads := slices.IndexFunc(all, func(m *member) bool {
			e, err := m.Lookup("first", false)
			require.NoError(t, err)
			return e.Leading()
		})
		m := all[leads]
		e, err := m.Lookup("first", false)
		require.NoError(t, err)
		older := all[(leads+1)%3].id
		for _, knows := range []bool{false, true} {
			m.calls.mu.Lock()
			m.calls.links[older] = knows
			m.calls.mu.Unlock()
			_, err := m.PublishHere(t.Context(), e, Write{Value: []byte("x")})
			if knows {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, ErrRefused)
			require.ErrorContains(t, err, string(older)+" runs a build that knows no records: upgrade it")
		}
	})
}

// Values come although links are lost in the middle, and whoever missed some gets the newest.
func TestValuesSurviveTheLossOfLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		net.Delay(func(string, string) time.Duration { return 5 * time.Millisecond }, nil)
		all := meet(t, net, abc)
		time.Sleep(30 * time.Second)
		var newest []byte
		for i := range 20 {
			newest = noise(elector.MaxValue - i)
			go func() {
				for _, m := range all {
					time.Sleep(time.Duration(3+i) * time.Millisecond) // some parts are there
					for _, o := range all {
						m.mesh.Disconnect(o.id, "test")
					}
				}
			}()
			publishUntil(t, all, "first", newest)
		}
		time.Sleep(10 * time.Second)
		for _, m := range all {
			require.True(t, bytes.Equal(newest, m.shows("first")), m.id)
			m.view(func(d *Driver) {
				require.Empty(t, d.coming)
				require.LessOrEqual(t, len(d.groups["first"].values), 3)
			})
		}
	})
}

// publishUntil publishes a value until that is known to have worked.
func publishUntil(t testing.TB, all []*member, election string, value []byte) {
	t.Helper()
	until := time.Now().Add(time.Minute)
	for i := 0; ; i++ {
		m := all[i%len(all)]
		e, err := m.Lookup(election, false)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if e.Leading() {
			_, err = m.PublishHere(ctx, e, Write{Value: value})
		}
		cancel()
		if e.Leading() && err == nil {
			return
		}
		require.True(t, time.Now().Before(until), "nobody could publish: %v", err)
		time.Sleep(50 * time.Millisecond)
	}
}

// Each of 32 elections gets the largest value at the same time.
func TestManyElectionsWriteAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 31 {
			names = append(names, fmt.Sprint("e", i))
		}
		all := meet(t, memnet.New(), abc, names...)
		time.Sleep(30 * time.Second)
		var done sync.WaitGroup
		began := time.Now()
		for _, name := range append(names, "first") {
			done.Go(func() { publishUntil(t, all, name, noise(elector.MaxValue)) })
		}
		done.Wait()
		t.Log("all are committed after", time.Since(began))
		time.Sleep(10 * time.Second)
		for _, m := range all {
			for _, name := range append(names, "first") {
				require.Len(t, m.shows(name), elector.MaxValue, "%s on %s", name, m.id)
			}
		}
	})
}

// Values delay no heartbeat by more than what a link has under way, however slow it is, and the
// leader stays.
func TestHeartbeatsPassValuesOnASlowLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, far = 1 << 20, 10 * time.Millisecond
		net := memnet.New()
		net.Delay(func(string, string) time.Duration { return far }, nil)
		net.Rate(rate)
		all := meet(t, net, abc)
		time.Sleep(30 * time.Second)
		leader := publish(t, all, "first", noise(1))
		for _, m := range all {
			m.beats.take()
		}
		written := 0
		for until := time.Now().Add(time.Minute); time.Now().Before(until); written++ {
			require.Equal(t, leader, publish(t, all, "first", noise(elector.MaxValue-written)))
		}
		require.Greater(t, written, 20)
		// Two steps of notes, a note that has begun to leave, and the heartbeats between them.
		most := far + time.Second*(64+17+4)<<10/rate
		for _, m := range all {
			if late := m.beats.take(); m != leader {
				require.Greater(t, len(late), 100)
				t.Logf("%s: of %d heartbeats half took %s at most, all %s; %d values", m.id, len(late),
					late[len(late)/2], late[len(late)-1], written)
				require.LessOrEqual(t, late[len(late)-1], most)
			}
		}
	})
}

// sink is a mesh of which the test plays the peers: it notes which parts are asked for.
type sink struct {
	nowhere

	asked []int
}

func (s *sink) Notify(_ elector.NodeID, n netmesh.Note) bool {
	if p, ok := parsePart(n.Body); ok && n.Kind == noteWanted {
		s.asked = append(s.asked, p.at/partSize)
	}
	return true
}

// asks are the parts asked for since the last call.
func (s *sink) asks() (parts []int) {
	parts, s.asked = s.asked, nil
	return parts
}

// offer is what a peer says that offers a record of a value.
func offer(term, valueTerm lsn.Term, value []byte) elector.Message {
	r := &elector.Record{
		LSN: lsn.LSN{Term: term, Counter: 1}, Voters: elector.NewRoster(elector.Voter{Node: "b"}),
		Value: elector.Value{
			LSN: lsn.LSN{Term: valueTerm, Counter: 1}, Size: uint32(len(value)), Hash: sha256.Sum256(value),
		},
	}
	return elector.Message{Kind: elector.RecordOffer, Term: term, Record: r.LSN, Offer: r}
}

// partOf is a part of a value, as a note.
func partOf(value []byte, n int) *netmesh.Note {
	p := part{hash: sha256.Sum256(value), at: n * partSize}
	p.text = value[p.at:min(p.at+partSize, len(value))]
	return &netmesh.Note{Group: "x", Kind: notePart, Body: p.body()}
}

// following runs a test on the driver of node a, which has a link to b and c and whose mesh is a
// sink.
func following(t *testing.T, play func(d *Driver, g *group, s *sink)) {
	synctest.Test(t, func(t *testing.T) {
		l, e := run(t, clock.Process(), "a", "b", "c")
		l.view(func(d *Driver) {
			s := &sink{}
			d.Mesh = s
			play(d, e.g, s)
		})
	})
}

func (d *Driver) isOffered(g *group, from elector.NodeID, m elector.Message) {
	d.received(g, &event{from: from, group: g.Name, msg: m})
}

func TestWhichPartsAreAskedFor(t *testing.T) {
	value, term := noise(10*partSize+5), lsn.Term(3)
	has := func(g *group) lsn.Term { return g.machine.Record().Accepted.LSN.Term }
	following(t, func(d *Driver, g *group, s *sink) {
		d.isOffered(g, "b", offer(3, 2, value))
		require.Equal(t, []int{0, 1, 2, 3}, s.asks(), "an old value is not pushed")
		d.isOffered(g, "b", offer(3, 2, value))
		require.Empty(t, s.asks(), "they are under way")
		time.Sleep(askAfter)
		d.awaken()
		d.isOffered(g, "b", offer(3, 2, value))
		require.Equal(t, []int{0, 1, 2, 3}, s.asks(), "nothing has come since")
		d.noted(g, "b", partOf(value, 1))
		require.Empty(t, s.asks(), "it is not the next one")
		d.noted(g, "b", partOf(value, 0))
		require.Equal(t, []int{4}, s.asks())
		d.noted(g, "b", partOf(value, 0))
		require.Empty(t, s.asks(), "it came before")
		d.isOffered(g, "b", offer(3, 2, value))
		require.Empty(t, s.asks(), "some has come since")
		d.noted(g, "c", partOf(value, 1))
		require.Empty(t, s.asks(), "c has offered nothing")
		for n := 1; n < 10; n++ {
			require.Zero(t, has(g))
			d.noted(g, "b", partOf(value, n))
		}
		d.noted(g, "b", partOf(value, 10))
		require.Equal(t, term, has(g))
		require.Empty(t, d.coming)
		require.True(t, bytes.Equal(value, g.value(g.machine.Record().Accepted.Value)))
		s.asks()

		d.isOffered(g, "c", offer(4, 2, value))
		require.Equal(t, lsn.Term(4), has(g), "it has the value")
		next := noise(2 * partSize)
		d.isOffered(g, "c", offer(5, 5, next))
		require.Equal(t, []int{1}, s.asks(), "the first part of a new value comes unasked")
		time.Sleep(askAfter)
		d.awaken()
		d.pullAll()
		require.Equal(t, []int{0, 1}, s.asks(), "or it was lost")
		d.noted(g, "c", partOf(next, 0))
		d.noted(g, "c", partOf(next, 1))
		require.Equal(t, lsn.Term(5), has(g))
		require.LessOrEqual(t, len(g.values), 3, "none, the one before and this one")
	})
}

// No value becomes a record's that the record does not name, whatever peers send.
func TestWhatPeersMayNotSend(t *testing.T) {
	value := noise(partSize + 1)
	wrong := append(noise(partSize), 9)
	lies := partOf(wrong, 0)
	copy(lies.Body, partOf(value, 0).Body[:sha256.Size])
	short := partOf(value, 0)
	short.Body = short.Body[:len(short.Body)-1]
	empty, huge := offer(3, 3, nil), partOf(value, 0)
	empty.Offer.Value.Hash[0]++
	huge.Body[sha256.Size] = 0xff
	for name, send := range map[string]func(d *Driver, g *group){
		"wrong bytes": func(d *Driver, g *group) {
			d.noted(g, "b", lies)
			d.noted(g, "b", partOf(value, 1))
		},
		"wrong size":   func(d *Driver, g *group) { d.noted(g, "b", short) },
		"wrong place":  func(d *Driver, g *group) { d.noted(g, "b", huge) },
		"last first":   func(d *Driver, g *group) { d.noted(g, "b", partOf(value, 1)) },
		"another":      func(d *Driver, g *group) { d.noted(g, "b", partOf(wrong, 0)) },
		"half a note":  func(d *Driver, g *group) { d.noted(g, "b", &netmesh.Note{Kind: notePart}) },
		"half a wish":  func(d *Driver, g *group) { d.noted(g, "b", &netmesh.Note{Kind: noteWanted}) },
		"unknown kind": func(d *Driver, g *group) { d.noted(g, "b", &netmesh.Note{Kind: 99}) },
		"empty value":  func(d *Driver, g *group) { d.isOffered(g, "c", empty) },
	} {
		t.Run(name, func(t *testing.T) {
			following(t, func(d *Driver, g *group, _ *sink) {
				d.isOffered(g, "b", offer(3, 3, value))
				send(d, g)
				require.Zero(t, g.machine.Record().Accepted)
				d.isOffered(g, "b", offer(4, 3, value)) // and the right ones are still taken
				d.noted(g, "b", partOf(value, 0))
				d.noted(g, "b", partOf(value, 1))
				require.Equal(t, lsn.Term(4), g.machine.Record().Accepted.LSN.Term)
			})
		})
	}
}

// Offers and calls cost a bounded amount of memory; those of nodes without a vote take no room of
// voters, and those of one voter none of another. What no part comes of for long gives way.
func TestOffersCostBoundedMemory(t *testing.T) {
	following(t, func(d *Driver, g *group, _ *sink) {
		value, small := noise(elector.MaxValue), noise(partSize)
		sum := func() (sum int) {
			for _, c := range d.coming {
				sum += cap(c.value)
			}
			counted := 0
			for _, bytes := range d.arriving {
				counted += bytes
			}
			require.Equal(t, sum, counted)
			return sum
		}
		for i := range 100 {
			d.isOffered(g, elector.NodeID(fmt.Sprint("guest", i)), offer(3, 3, value))
		}
		require.Equal(t, maxFromGuests, sum())
		for i := range 8 {
			v := elector.Value{Size: elector.MaxValue, Hash: valueHash{byte(i)}}
			c := &coming{g: g, from: "b", of: v, call: make(chan []byte, 1), sum: sha256.New()}
			d.coming = append(d.coming, c)
			d.pull(c, d.Now())
		}
		require.Equal(t, maxFromGuests+maxFromPeer, sum(), "two calls of b")
		for range 3 {
			d.isOffered(g, "c", offer(4, 4, value))
			require.Equal(t, maxFromGuests+maxFromPeer+len(value), sum(), "c has its own share")
		}
		d.isOffered(g, "b", offer(2, 2, small))
		d.noted(g, "b", partOf(small, 0))
		require.Equal(t, lsn.Term(2), g.machine.Record().Accepted.LSN.Term, "a small one passes")
		first := d.coming[100]
		for range maxAsked {
			time.Sleep(askAfter)
			d.awaken()
			d.pullAll()
		}
		require.Contains(t, d.coming, first)
		time.Sleep(askAfter)
		d.awaken()
		d.pullAll()
		require.NotContains(t, d.coming, first)
		_, open := <-first.call
		require.False(t, open, "its call knows")
		require.Equal(t, maxFromGuests+maxFromPeer, sum(), "others have begun")
		d.dropTransfersOf("b")
		require.Equal(t, maxFromGuests, sum(), "links were lost")
		small[0]++ // another one
		for i := range 1000 {
			d.isOffered(g, elector.NodeID(fmt.Sprint("small", i)), offer(5, 5, small))
		}
		require.Equal(t, 2*maxFromGuests, sum(), "so many small ones have no room either")
	})
}

// A value that was written while a voter was away is there as soon as that voter has asked for it.
func TestWhoComesBackGetsANewValueAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		all := meet(t, net, abc)
		time.Sleep(30 * time.Second)
		publish(t, all, "first", []byte("old"))
		leads, i := leader(t, all, "first"), 0
		if leads == all[0] {
			i = 1
		}
		away, others := all[i], slices.Delete(slices.Clone(all), i, i+1)
		filter := func(rule memnet.Rule) {
			for _, m := range others {
				net.Filter(string(m.id), string(away.id), rule)
			}
		}
		filter(memnet.Reject)
		time.Sleep(time.Minute)
		publish(t, all, "first", []byte("new"))
		time.Sleep(5 * time.Second)
		filter(memnet.Pass)
		for linked := false; !linked; time.Sleep(time.Millisecond) {
			away.view(func(d *Driver) { linked = d.up[leads.id] != nil })
		}
		time.Sleep(askAfter / 2)
		require.Equal(t, "new", string(away.shows("first")))
	})
}

// Values that have no room are not looked at for each message, which thousands of them would make
// slow, until one has gone.
func TestValuesThatWaitCostMessagesNothing(t *testing.T) {
	following(t, func(d *Driver, g *group, _ *sink) {
		for i := range 100 {
			d.isOffered(g, elector.NodeID(fmt.Sprint("guest", i)), offer(3, 3, noise(elector.MaxValue)))
		}
		d.pullAll()
		next := d.pullAt
		time.Sleep(askAfter / 2)
		d.awaken()
		d.pullAll()
		require.Equal(t, next, d.pullAt)
		waits := d.coming[99]
		require.Nil(t, waits.value)
		for i := range 99 {
			d.dropTransfersOf(elector.NodeID(fmt.Sprint("guest", i)))
		}
		d.pullAll()
		require.NotNil(t, waits.value)
	})
}

// full is a mesh without room for notes.
type full struct {
	nowhere

	tried int
}

func (f *full) Notify(elector.NodeID, netmesh.Note) bool { f.tried++; return false }

// Nor are values tried again with each message for which the link had no room.
func TestValuesThatCannotBeAskedForCostMessagesNothing(t *testing.T) {
	following(t, func(d *Driver, g *group, _ *sink) {
		m := &full{}
		d.Mesh = m
		for i := range 100 {
			c := &coming{g: g, from: "b", of: elector.Value{Size: 9, Hash: valueHash{byte(i)}},
				call: make(chan []byte, 1), sum: sha256.New()}
			d.coming = append(d.coming, c)
			d.pull(c, d.Now())
		}
		for range 100 {
			d.pullAll()
		}
		require.LessOrEqual(t, m.tried, 2)
		require.LessOrEqual(t, d.nextDue(), d.Now().Add(roomAfter))
		d.Mesh = nowhere{}
		d.expect(func(*coming) bool { return false })
	})
}

// Who votes by a record counts as a voter from when this node accepts it: its process, which may
// get promises, its link, and its room in the mesh.
func TestVotersOfARecordCount(t *testing.T) {
	l, e := run(t, clock.System(), "a", "b", "c")
	l.LinkUp(netmesh.PeerInfo{Node: "d", Boot: 7, Identity: uuid.New()})
	l.LinkUp(netmesh.PeerInfo{Node: "guest", Boot: 1, Identity: uuid.New()})
	require.False(t, l.IsVoter("d"))
	l.view(func(d *Driver) {
		m := offer(3, 0, nil)
		m.Offer.Value = elector.Value{}
		m.Offer.Voters = elector.NewRoster(elector.Voter{Node: "b"}, elector.Voter{Node: "d"})
		d.isOffered(e.g, "b", m)
		require.Equal(t, []elector.NodeID{"b", "d"}, e.g.machine.Electorate())
		require.True(t, e.g.machine.State().Linked.Has(1), "the link to d counts")
		require.EqualValues(t, 7, d.processes["d"].boot)
		require.NotContains(t, d.processes, elector.NodeID("guest"))
	})
	require.True(t, l.IsVoter("d"))
	require.True(t, l.IsVoter("c"), "by the configuration")
	require.False(t, l.IsVoter("guest"))
}
