package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
)

// gatedLog is an output of a logger that blocks until it is opened.
type gatedLog struct {
	open chan struct{}
	bytes.Buffer
}

func newGatedLog() *gatedLog { return &gatedLog{open: make(chan struct{})} }

func (g *gatedLog) Write(line []byte) (int, error) {
	<-g.open
	return g.Buffer.Write(line)
}

func (g *gatedLog) logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: g, DisableTime: true})
}

// Loggers that block for ever hold up no election: one leader is elected and stays, while
// links come and go, and a node that crashed finds it again.
func TestALoggerThatBlocksHoldsUpNoHeartbeat(t *testing.T) {
	var logs []*gatedLog
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader := c.leader()
		term := leader.Status().Groups[0].Term
		events := leader.Subscribe(10)
		crashed := c.others(leader)[0]
		for range 3 {
			c.Crash(crashed)
			time.Sleep(election)
			c.Start(crashed)
			time.Sleep(election)
			require.Equal(t, leader.ID(), c.leader().ID())
			require.Equal(t, term, leader.Status().Groups[0].Term)
		}
		events.Close()
		for e := range events.Events() {
			require.Fail(t, "a transition", "%+v", e.Transition)
		}
		for _, l := range logs {
			require.Zero(t, l.Len())
			close(l.open)
		}
		synctest.Wait()
		for _, l := range logs {
			require.Contains(t, l.String(), "node started", "nothing was lost")
		}
	}, clustertest.Configure(func(cfg *cluster.Config) {
		logs = append(logs, newGatedLog())
		cfg.Logger = logs[len(logs)-1].logger()
	}))
}

// Close waits for the logger as long as its ctx says.
func TestCloseSaysThatTheLoggerBlocks(t *testing.T) {
	var log *gatedLog
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		n := c.Node("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := returnsWithin(t, time.Second+2*cluster.Patience, func() error { return n.Close(ctx) })
		require.ErrorContains(t, err, "logger blocks")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		close(log.open)
		synctest.Wait()
		require.Contains(t, log.String(), "reason=STOPPED")
		c.Closed("a")
		c.Start("a")
	}, clustertest.Configure(func(cfg *cluster.Config) {
		if log == nil {
			log = newGatedLog()
			cfg.Logger = log.logger()
		}
	}))
}

// What a logger that goes on gets: what waited, in order, then how much was lost.
func TestLinesBeyondTheRoomAreLostAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newGatedLog()
		lines := cluster.NewLogLines(out.logger().Named("x").With("of", "user"))
		log := lines.Logger().Named("mesh").With("node", "a")
		log.Debug("first")
		synctest.Wait() // it is with the logger
		for i := range cluster.LogRoom + 3 {
			log.Info("line", "number", i)
		}
		require.Equal(t, uint64(3), lines.Lost())
		close(out.open)
		synctest.Wait()
		log.Warn("last")
		require.NoError(t, lines.Close(context.Background()))
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, got, cluster.LogRoom+3)
		require.Equal(t, "[DEBUG] x.mesh: first: of=user node=a", got[0])
		for i := range cluster.LogRoom {
			require.Equal(t, fmt.Sprintf("[INFO]  x.mesh: line: of=user node=a number=%d", i), got[1+i])
		}
		require.Equal(t, []string{
			"[WARN]  x: log lines were lost: the logger was too slow: of=user lines=3",
			"[WARN]  x.mesh: last: of=user node=a",
		}, got[cluster.LogRoom+1:])
	})
}
