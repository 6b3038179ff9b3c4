package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/lsn"
)

// lead returns the leadership of the default election, which every node campaigns for.
func (c *testCluster) lead() *cluster.Leadership {
	c.t.Helper()
	return c.campaign(c.Running()...).next()
}

// within is a context that ends after so long.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// requireRecord waits until every node that runs shows the value.
func (c *testCluster) requireRecord(value string, from lsn.LSN) {
	c.t.Helper()
	c.Await("the value on every node", func() bool {
		for _, n := range c.nodes() {
			r := n.Default().Record()
			if string(r.Value) != value || r.ValueLSN != from {
				return false
			}
		}
		return true
	})
}

func TestALoneVoterKeepsItsRecord(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		l := c.lead()
		none, err := l.Record(within(t, time.Minute))
		require.NoError(t, err)
		require.Equal(t, cluster.Record{}, none)
		require.Nil(t, c.Node("a").Status().Groups[0].Record)
		first, err := l.Publish(t.Context(), []byte("x"))
		require.NoError(t, err)
		r, err := l.Record(within(t, time.Minute))
		require.NoError(t, err)
		identity := c.Node("a").Status().Identity
		voters := []cluster.Voter{{Node: "a", Identity: identity}}
		require.Equal(t,
			cluster.Record{LSN: first, ValueLSN: first, Value: []byte("x"), Voters: voters}, r)

		l.Release()
		next := c.lead()
		_, err = l.Publish(t.Context(), []byte("y"))
		require.ErrorIs(t, err, cluster.ErrNotLeader, "the node leads, but not by this leadership")
		_, err = l.Record(t.Context())
		require.ErrorIs(t, err, cluster.ErrNotLeader)
		next.Release()

		c.Restart("a")
		require.Equal(t, cluster.Record{}, c.Node("a").Default().Record(), "nobody has named one yet")
		r, err = c.lead().Record(t.Context())
		require.NoError(t, err)
		require.Equal(t, "x", string(r.Value))
		require.Equal(t, first, r.ValueLSN)
		require.Equal(t, &cluster.RecordStatus{
			Accepted: r.LSN, Committed: r.LSN, ValueLSN: first, ValueSize: 1, Voters: voters, InSync: true,
		}, c.Node("a").Status().Groups[0].Record)
	})
}

// A value of any size reaches every node, whichever of them publishes it.
func TestAnyNodePublishes(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		l := c.lead()
		for _, size := range []int{0, 1, 16 << 10, 16<<10 + 1, cluster.MaxValue} {
			for _, id := range three {
				value := bytes.Repeat([]byte(id), size)
				at, err := c.Node(id).Default().Publish(within(t, time.Minute), value, cluster.PublishOptions{})
				require.NoError(t, err, "%d bytes by %s", size, id)
				c.requireRecord(string(value), at)
				r, err := l.Record(within(t, time.Minute))
				require.NoError(t, err)
				require.Equal(t, at, r.ValueLSN)
			}
		}
		for _, id := range three {
			_, err := c.Node(id).Default().Publish(t.Context(), make([]byte, cluster.MaxValue+1),
				cluster.PublishOptions{})
			require.ErrorIs(t, err, cluster.ErrTooLarge)
			require.ErrorContains(t, err, "it has 1048577 bytes, the limit is 1048576")
		}
	})
}

// One of many writers that have seen the same value replaces it.
func TestIfMatchLetsOneWriterWin(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		c.elect()
		seen := lsn.LSN{}
		for round := range 5 {
			results := make(chan error, len(three))
			won := make(chan lsn.LSN, len(three))
			for _, id := range three {
				go func() {
					at, err := c.Node(id).Default().Publish(t.Context(), fmt.Appendf(nil, "%d by %s", round, id),
						cluster.PublishOptions{IfMatch: &seen})
					if err == nil {
						won <- at
					}
					results <- err
				}()
			}
			conflicts := 0
			for range three {
				if err := <-results; err != nil {
					require.ErrorIs(t, err, cluster.ErrConflict)
					conflicts++
				}
			}
			require.Equal(t, 2, conflicts)
			seen = <-won
		}
		ahead := lsn.LSN{Term: seen.Term, Counter: seen.Counter + 1}
		_, err := c.Node("a").Default().Publish(t.Context(), nil, cluster.PublishOptions{IfMatch: &ahead})
		require.ErrorIs(t, err, cluster.ErrConflict)
	})
}

// What was published outlives the leader, and a later leadership begins with it.
func TestASuccessorBeginsWithTheRecord(t *testing.T) {
	for name, end := range map[string]func(*testCluster, cluster.NodeID){
		"crash":   func(c *testCluster, id cluster.NodeID) { c.Crash(id) },
		"stop":    func(c *testCluster, id cluster.NodeID) { c.Stop(id) },
		"isolate": func(c *testCluster, id cluster.NodeID) { c.Isolate(id) },
		"pause":   func(c *testCluster, id cluster.NodeID) { c.Pause(id) },
	} {
		t.Run(name, func(t *testing.T) {
			withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
				at, err := l.Publish(t.Context(), []byte("x"))
				require.NoError(t, err)
				end(o.testCluster, l.Node().ID())
				next := o.next()
				require.NotEqual(t, l.Node(), next.Node())
				r, err := next.Record(t.Context())
				require.NoError(t, err)
				require.Equal(t, "x", string(r.Value))
				require.Equal(t, at, r.ValueLSN)
				require.Equal(t, next.Term(), r.LSN.Term)
				// The LSN under which it is known now names the value, too.
				_, err = next.Node().Default().Publish(t.Context(), []byte("y"),
					cluster.PublishOptions{IfMatch: &r.LSN})
				require.NoError(t, err)
				if name == "pause" {
					o.Resume(l.Node().ID())
				}
				o.Heal()
			})
		})
	}
}

// A value that perhaps was written is not written twice. With IfMatch the next leader is asked.
func TestOnlyWhatIsHarmlessIsRepeated(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		first, err := l.Publish(t.Context(), []byte("first"))
		require.NoError(t, err)
		o.requireRecord("first", first)
		asker := o.Node(o.others(l.Node())[0]).Default()
		o.Pause(l.Node().ID()) // it has the calls, and does not answer
		plain, careful := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := asker.Publish(t.Context(), []byte("plain"), cluster.PublishOptions{})
			plain <- err
		}()
		go func() {
			_, err := asker.Publish(t.Context(), []byte("careful"),
				cluster.PublishOptions{IfMatch: &first})
			careful <- err
		}()
		require.ErrorIs(t, <-plain, cluster.ErrUnknown)
		require.NoError(t, <-careful)
		o.Resume(l.Node().ID())
		time.Sleep(election)
		r := asker.Record()
		require.Equal(t, "careful", string(r.Value))
		require.Equal(t, o.leader().Default().Status().Term, r.ValueLSN.Term)
	})
}

// A leader that is cut off cannot commit. Its value is lost for certain as soon as it hears of a
// record that cannot have come from it.
func TestALeaderThatIsCutOffPublishesNothing(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		_, err := l.Publish(t.Context(), []byte("before"))
		require.NoError(t, err)
		old := l.Node()
		o.Isolate(old.ID())
		lost := make(chan error, 1)
		go func() {
			_, err := l.Publish(t.Context(), []byte("lost"))
			lost <- err
		}()
		synctest.Wait()
		_, err = old.Default().Publish(within(t, 100*time.Millisecond), []byte("waits"),
			cluster.PublishOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, cluster.ErrUnknown, "it waited for the one before")

		next := o.next()
		at, err := next.Publish(t.Context(), []byte("after"))
		require.NoError(t, err)
		_, err = l.Publish(t.Context(), []byte("too late"))
		require.ErrorIs(t, err, cluster.ErrNotLeader)
		_, err = l.Record(within(t, time.Minute))
		require.ErrorIs(t, err, cluster.ErrNotLeader)
		_, err = old.Default().Publish(within(t, time.Second), nil, cluster.PublishOptions{})
		require.ErrorContains(t, err, "no leader is known")
		synctest.Wait()
		require.Empty(t, lost)
		o.Heal()
		require.ErrorIs(t, <-lost, cluster.ErrUnknown, "the next value came before the news")
		o.requireRecord("after", at)
	})
}

// A leader that was held up past its lease notices that in the step in which it is to write.
func TestAValueThatWasNotWrittenIsNotAcknowledged(t *testing.T) {
	var victim atomic.Pointer[cluster.NodeID]
	var gates atomic.Int32
	hold := clustertest.Hooks(func(id cluster.NodeID, h *testhook.Hooks) {
		h.Gate = func() { // the second time the driver has the call, and has not stepped
			if who := victim.Load(); who != nil && *who == id && gates.Add(1) == 2 {
				victim.Store(nil)
				time.Sleep(20 * time.Second)
			}
		}
	})
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		publish := func(value string) error {
			_, err := leader.Default().Publish(t.Context(), []byte(value), cluster.PublishOptions{})
			return err
		}
		require.NoError(t, publish("first"))
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		id := leader.ID()
		victim.Store(&id)
		err := publish("second")
		time.Sleep(10 * time.Second)
		value := string(leader.Default().Record().Value)
		require.Equal(t, err == nil, value == "second", "%q, %v", value, err)
	}, hold)
}

func TestAnEmptyValueReplacesTheOneBefore(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		c.elect()
		open := func() *cluster.Election {
			e, err := c.Node("a").Election("g", cluster.ElectionConfig{})
			require.NoError(t, err)
			return e
		}
		e := open()
		for _, value := range []string{"first", "second", ""} {
			_, err := e.Publish(t.Context(), []byte(value), cluster.PublishOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, e.Close(t.Context()))
		e = open()
		time.Sleep(time.Minute)
		require.NotZero(t, e.Record().LSN)
		require.Empty(t, e.Record().Value)
	})
}
