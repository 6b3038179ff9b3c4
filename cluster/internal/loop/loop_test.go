package loop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/cluster/internal/measure"
	"github.com/bmqelect/bmqelect/cluster/internal/recorder"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/netmesh"
)

// nowhere is a mesh without peers.
type nowhere struct{}

func (nowhere) Send(elector.NodeID, string, elector.Message) bool { return false }
func (nowhere) Notify(elector.NodeID, netmesh.Note) bool          { return false }
func (nowhere) Change(elector.NodeID, uint64, []pair.Change) bool { return false }
func (nowhere) Beat(elector.NodeID, uint64, pair.Beat) bool       { return false }
func (nowhere) Ack(elector.NodeID, uint64, pair.Ack) bool         { return false }
func (nowhere) Disconnect(elector.NodeID, string)                 {}

// run runs the loop of node a.
func run(tb testing.TB, c clock.Clock, voters ...elector.NodeID) (*Loop, *Election) {
	ctx := testhook.With(context.Background(), testhook.Hooks{Clock: c})
	owner := store.Owner{Cluster: "c", Node: "a"}
	s, err := store.OpenOn(tb.TempDir(), owner, testhook.Unsynced)
	require.NoError(tb, err)
	m := measure.New()
	r := recorder.New(recorder.Config{
		Dir: tb.TempDir(), Node: "a", Age: m.Age, Found: func(string) {},
		Faults: func() string { return "" },
	})
	l := New(Config{
		Node: "a", Voters: voters, Log: hclog.NewNullLogger(), Hooks: testhook.From(ctx), Store: s,
		Measure: m, Recorder: r, Claimed: func(findings.Kind, elector.NodeID, string) {},
		Publish: func(string, elector.Transition, time.Time, string) {},
		Differs: func() string { return "" },
	})
	e, err := l.NewElection("x", Setup{
		Elector:    elector.Config{Self: "a", Voters: voters, Timing: elector.Article()},
		StopMargin: 100 * time.Millisecond,
	})
	require.NoError(tb, err)
	l.Start(nowhere{}, e)
	quit := make(chan struct{})
	go r.Run(quit)
	tb.Cleanup(func() {
		require.NoError(tb, l.CloseAll(context.Background()))
		l.Stop()
		close(quit)
		<-l.Persisted()
		<-r.Done()
		l.StopWatcher()
		require.NoError(tb, s.Close())
	})
	return l, e
}

// fed is a loop that follows b, which is not there, and the heartbeat that it gets from it.
func fed(tb testing.TB) (*Loop, event) {
	l, e := run(tb, clock.System(), "a", "b")
	heartbeat := event{from: "b", group: "x", msg: elector.Message{Kind: elector.LeaderHeartbeat,
		Term: 7, Sequence: 1, SentAt: 1}}
	l.Received("b", "x", heartbeat.msg)
	require.Equal(tb, elector.NodeID("b"), l.Snapshot(e).Leader)
	return l, heartbeat
}

func TestAHeartbeatTakesNoMemory(t *testing.T) {
	l, e := fed(t)
	e.posted = 1
	allocated := 1.0
	l.view(func(d *Driver) {
		allocated = testing.AllocsPerRun(1000, func() {
			d.taken(&e, 1)
			d.handle(&e)
		})
	})
	require.Zero(t, allocated)
}

// BenchmarkHeartbeat measures the path of a heartbeat from the reader of a link through the driver.
func BenchmarkHeartbeat(b *testing.B) {
	l, e := fed(b)
	b.ReportAllocs()
	for b.Loop() {
		l.Received(e.from, e.group, e.msg)
	}
	l.view(func(*Driver) {})
}

// A process that was paused finds a tick due and events to handle; the clock says
// how late both are, whichever comes first.
func TestAPauseShowsWhateverComesFirstAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := run(t, clock.Process(), "a")
		time.Sleep(10*time.Second + 40*time.Millisecond)
		before := l.Measure.Waits.Snapshot()
		l.view(func(d *Driver) {
			now := d.Measure.Age()
			d.taken(&event{posted: now}, now-2*time.Second)
		})
		after := l.Measure.Waits.Snapshot()
		slow := len(after.Counts) - 2 // above 1 s
		require.Equal(t, uint64(1), after.Counts[slow]-before.Counts[slow])
		require.InDelta(t, 2, after.Sum-before.Sum, 1e-6)
	})
}

// An election that was closed is forgotten once its work, which was cut off, has been released.
func TestWhatIsOverIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, first := run(t, clock.Process(), "a")
		for range 10 {
			e, err := l.Open("y", Setup{Elector: *first.Config, AwaitCampaign: true})
			require.NoError(t, err)
			id := e.NewID()
			over, _ := e.Campaign(leadership.Campaign{ID: id},
				func(leadership.Effects, leadership.State) {})
			time.Sleep(10 * time.Second)
			require.Equal(t, leadership.Serving, e.State().Phase)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorContains(t, l.CloseElection(ctx, e), "guarded work had not stopped")
			_, err = l.Open("y", Setup{Elector: *first.Config})
			require.ErrorIs(t, err, ErrCampaigning)
			e.Feed(leadership.Release{ID: id})
			<-over
			l.Settle(e)
		}
		l.view(func(d *Driver) {
			require.Empty(t, d.closed)
			require.Len(t, d.groups, 1)
			require.Len(t, d.ticks, 1)
		})
	})
}

// A process whose death is proven holds no promise any more, so the death of the next process of
// that name counts at once. It does not count if the death of the process before is not proven.
func TestARestartAfterAProvenDeathCastsNoDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := run(t, clock.Process(), "a", "b")
		time.Sleep(time.Second)
		process := func() (p process) {
			l.view(func(d *Driver) { p = d.processes["b"] })
			return p
		}
		peer := netmesh.PeerInfo{Node: "b", Identity: uuid.New()}
		for peer.Boot = 1; peer.Boot < 4; peer.Boot++ {
			l.LinkUp(peer)
			require.Equal(t, peer.Boot, process().boot)
			require.Zero(t, process().since)
			l.Died("b", elector.ProofRefusedAfterEOF)
		}
		l.LinkUp(peer)
		peer.Boot++
		l.LinkUp(peer)
		require.Equal(t, l.Now(), process().since)
	})
}

// Elections that go by turns need the order of magnitude of round trips, when they are stepped:
// small changes are not worth a step.
func TestElectionsLearnOfRoundTripsThatChangeMuch(t *testing.T) {
	l, _ := run(t, clock.System(), "a", "b", "c")
	turns, err := l.Open("turns", Setup{
		Elector: elector.Config{
			Self: "a", Voters: []elector.NodeID{"a", "b", "c"}, Timing: elector.LAN(),
		},
		StopMargin: time.Millisecond,
	})
	require.NoError(t, err)
	const ms = time.Millisecond
	for _, c := range []struct{ now, told time.Duration }{
		{8 * ms, 8 * ms}, {10 * ms, 8 * ms}, {6 * ms, 8 * ms}, {11 * ms, 11 * ms}, {8 * ms, 8 * ms},
	} {
		l.Pinged([]netmesh.LinkStatus{
			{Peer: netmesh.PeerInfo{Node: "b"}, Up: true, RTT: c.now},
			{Peer: netmesh.PeerInfo{Node: "c"}, RTT: time.Microsecond}, // not up
			{Peer: netmesh.PeerInfo{Node: "d"}, Up: true, RTT: time.Microsecond},
		})
		l.view(func(d *Driver) {
			d.Step(turns, elector.Tick{})
			require.Equal(t, c.told, turns.g.machine.RoundTrip(), "after %s", c.now)
			require.Zero(t, d.groups["x"].machine.RoundTrip(), "it needs none")
		})
	}
}

// late is a context that delays its waiter: it calls sleep before each wait.
type late struct {
	context.Context

	sleep func()
}

func (l late) Done() <-chan struct{} {
	l.sleep()
	return l.Context.Done()
}

// Whoever waits for a handover may be late: what counts is how it ended, not who leads
// by then.
func TestAHandoverIsJudgedByHowItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, e := run(t, clock.Process(), "a")
		time.Sleep(10 * time.Second)
		require.True(t, e.Leading())
		again := false
		ctx := late{t.Context(), func() {
			if !e.Leading() {
				time.Sleep(10 * time.Second)
				again = e.Leading()
			}
		}}
		_, leads, err := l.handOver(ctx, e, func(d *Driver) (elector.NodeID, error) {
			d.step(e.g, elector.Resign{})
			return "", nil
		})
		require.NoError(t, err)
		require.Same(t, nothingRare, e.g.rare, "nobody waits any more")
		require.True(t, again, "it leads again")
		require.False(t, leads, "it had resigned")
	})
}

// If the driver has run a function, the caller gets its result even if ctx or the driver has ended.
func TestWhatIsDoneIsToldAndDoneOnce(t *testing.T) {
	for range 20 { // a select chooses at random
		for _, canceled := range []bool{false, true} {
			l := &Loop{
				common: &common{Config: Config{Measure: measure.New()}}, inbox: make(chan event, 1),
				ended: make(chan struct{}),
			}
			inner, cancel := context.WithCancel(t.Context())
			defer cancel()
			ctx := late{inner, func() {
				if len(l.inbox) == 0 {
					return
				}
				(<-l.inbox).do(nil)
				if canceled {
					cancel()
				} else {
					close(l.ended)
				}
			}}
			failed := errors.New("failed")
			require.ErrorIs(t, l.Do(ctx, func(*Driver) error { return failed }), failed)
		}
	}
}

// A function that the driver had not begun when its caller gave up never runs.
func TestWhatItsCallerGaveUpIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := run(t, clock.Process(), "a")
		goOn := make(chan struct{})
		l.later(func(*Driver) { <-goOn })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		done := false
		err := l.Do(ctx, func(*Driver) error { done = true; return nil })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		close(goOn)
		l.view(func(*Driver) {})
		require.False(t, done)
	})
}

// An election is in the list of a driver that hangs only once, however many requests it has.
func TestAStuckDriverHasNoListThatGrows(t *testing.T) {
	l, e := run(t, clock.System(), "a")
	l.view(func(*Driver) {
		for i := range 1000 {
			_, err := e.Change(leadership.Prefer{Priority: i})
			require.NoError(t, err)
		}
		require.Equal(t, 1, len(l.waiting.all))
	})
}

// Callers that wait for the disk get its failure, even if the driver hangs while the persister
// ends.
func TestWhoWaitsForTheDiskGetsItsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, e := run(t, clock.Process(), "a")
		full, fail, goOn := errors.New("disk full"), make(chan struct{}), make(chan struct{})
		l.persister.note(func() error { <-fail; return full })
		got := make(chan error, 2)
		go func() { got <- l.Pause(t.Context(), time.Hour) }()
		l.view(func(d *Driver) { d.ending["y"] = true })
		go func() { _, err := l.Open("y", Setup{Elector: *e.Config}); got <- err }()
		synctest.Wait()
		l.later(func(*Driver) { <-goOn })
		close(fail)
		synctest.Wait()
		close(goOn)
		require.ErrorIs(t, <-got, full)
		require.ErrorIs(t, <-got, full)
	})
}

func TestTheDriverForgetsClosedElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, e := run(t, clock.Process(), "a")
		for range 3 {
			y, err := l.Open("y", Setup{Elector: *e.Config})
			require.NoError(t, err)
			require.NoError(t, l.CloseElection(t.Context(), y))
			synctest.Wait()
			l.view(func(d *Driver) {
				require.Len(t, d.groups, 1)
				require.Empty(t, d.opening)
				require.Empty(t, d.closed)
				require.Empty(t, d.ending)
				require.Len(t, d.ticks, 1)
			})
		}
	})
}

// The driver is visited for a part of the elections at a time, so some may be closed meanwhile.
func TestSnapshotsAreOfWhatIsOpen(t *testing.T) {
	l, first := run(t, clock.System(), "a", "b")
	setup := Setup{
		Elector:    elector.Config{Self: "a", Voters: first.Config.Voters, Timing: elector.Article()},
		StopMargin: 100 * time.Millisecond,
	}
	const count = 2*visit + 7
	for i := 1; i < count; i++ {
		_, err := l.Open(fmt.Sprintf("y%04d", i), setup)
		require.NoError(t, err)
	}
	all := l.Elections(func(string) bool { return true })
	require.Len(t, all, count)
	seen := 0
	for s := range l.Snapshots(all) {
		require.Same(t, all[seen], s.Election)
		if seen++; seen == 1 {
			require.NoError(t, l.CloseElection(t.Context(), all[count-1]))
			_, err := l.Open(all[count-1].Name, setup)
			require.NoError(t, err, "another one of that name")
		}
	}
	require.Equal(t, count-1, seen)
	require.Nil(t, l.Find("z"))
	require.NotSame(t, all[count-1], l.Find(all[count-1].Name))
}

// Ticks of very many elections do not keep the driver from reading beats.
func TestTicksAndEventsGoInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(3 * batch)
		m := startWith(t, memnet.New(), clock.Process(), "a", abc, elector.Article(), elections...)
		m.view(func(d *Driver) {
			for _, g := range d.groups {
				d.ticks.Set(&g.tick, d.Now())
			}
			due := len(d.ticks.Due(d.Now()))
			require.Equal(t, 3*batch+1, due)
			require.False(t, d.tick())
			require.Len(t, d.ticks.Due(d.Now()), due-batch)
		})
		time.Sleep(time.Millisecond)
		m.view(func(d *Driver) { require.Empty(t, d.ticks.Due(d.Now())) })
	})
}

// What a node led last is on disk during a pause, also if very many elections change at a time.
func TestAPauseKeepsWhoLedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(10 * batch)
		all := meet(t, memnet.New(), abc, elections...)
		time.Sleep(40 * time.Second)
		for _, m := range all {
			require.NoError(t, m.Pause(t.Context(), time.Hour))
		}
		moved := 0
		all[0].view(func(d *Driver) {
			for _, name := range sortedKeys(d.groups) {
				if g := d.groups[name]; g.leadTerm != 0 {
					d.step(g, elector.Transfer{To: "b"})
					moved++
				}
			}
		})
		require.Greater(t, moved, batch)
		time.Sleep(20 * time.Second)
		for _, m := range all {
			var led []string
			m.view(func(d *Driver) { led = d.ledLast(nil) })
			require.Equal(t, led, m.Store.Pause().Led, m.id)
			require.True(t, m != all[0] || len(led) == 0, "all have moved")
		}
	})
}
