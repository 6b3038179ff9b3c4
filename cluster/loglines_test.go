package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
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

// logTo gives each node a gated log at its first start, and no log later.
func logTo(logs map[cluster.NodeID]*gatedLog) clustertest.Option {
	return clustertest.Configure(func(cfg *cluster.Config) {
		if logs[cfg.Node] == nil {
			logs[cfg.Node] = newGatedLog() // in the bubble
			cfg.Logger = logs[cfg.Node].logger()
		}
	})
}

// Loggers that block for ever hold up no election: one leader is elected and stays, while
// links come and go, and a node that crashed finds it again.
func TestALoggerThatBlocksHoldsUpNoHeartbeat(t *testing.T) {
	logs := map[cluster.NodeID]*gatedLog{}
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		events := leader.Subscribe(10)
		crashed := c.others(leader)[0]
		for range 3 {
			c.Restart(crashed)
			time.Sleep(election)
			require.Equal(t, leader.ID(), c.leader().ID())
		}
		requireNone(t, events)
		for _, l := range logs {
			require.Zero(t, l.Len())
			close(l.open)
		}
		synctest.Wait()
		for _, l := range logs {
			require.Contains(t, l.String(), "node started", "nothing was lost")
		}
	}, logTo(logs))
}

// Close waits for the logger as long as its ctx says. It then says nothing of a directory that is
// free, also if the disk hung before.
func TestCloseSaysThatTheLoggerBlocks(t *testing.T) {
	for _, diskHangs := range []bool{false, true} {
		logs := map[cluster.NodeID]*gatedLog{}
		withCluster(t, one, func(t *testing.T, c *testCluster) {
			open := sync.OnceFunc(func() { close(logs["a"].open) })
			defer open()
			n := c.elect()
			if diskHangs {
				goOn := c.hangWrites(n.ID())
				go n.Pause(context.Background(), time.Second)
				synctest.Wait()
				time.AfterFunc(time.Second+cluster.Patience+time.Millisecond, goOn)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := returnsWithin(t, time.Second+2*cluster.Patience, func() error { return n.Close(ctx) })
			require.ErrorContains(t, err, "logger blocks")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotContains(t, err.Error(), "locked")
			open()
			synctest.Wait()
			require.Contains(t, logs["a"].String(), "reason=STOPPED")
			c.Closed("a")
			c.Start("a")
		}, logTo(logs))
	}
}

// A logger that goes on gets the lines that waited, in order, and a report of the lost ones.
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
		log.Warn("after the end")
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, got, cluster.LogRoom+4)
		require.Equal(t, "[DEBUG] x.mesh: first: of=user node=a", got[0])
		require.Equal(t,
			"[WARN]  x: log lines were lost: the logger was too slow: of=user lines=3", got[1])
		for i := range cluster.LogRoom {
			require.Equal(t, fmt.Sprintf("[INFO]  x.mesh: line: of=user node=a number=%d", i), got[2+i])
		}
		require.Equal(t, []string{
			"[WARN]  x.mesh: last: of=user node=a", "[WARN]  x.mesh: after the end: of=user node=a",
		}, got[cluster.LogRoom+2:])
	})
}

// unleveled is a logger that does not say its level: IsInfo and the like are what counts.
type unleveled struct{ hclog.Logger }

func (unleveled) GetLevel() hclog.Level { return hclog.NoLevel }

func TestALoggerWithoutALevelGetsItsLines(t *testing.T) {
	var out bytes.Buffer
	lines := cluster.NewLogLines(unleveled{hclog.New(&hclog.LoggerOptions{Output: &out})})
	lines.Logger().Info("written")
	lines.Logger().Debug("not written")
	require.NoError(t, lines.Close(t.Context()))
	require.Contains(t, out.String(), "[INFO]  written")
	require.NotContains(t, out.String(), "not written")
}

// While the queue is never empty a big loss is reported before the end. Every loss is reported at
// the end.
func TestAllThatWasLostIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newGatedLog()
		lines := cluster.NewLogLines(out.logger())
		log := lines.Logger()
		lose := func(count, tellings int) {
			for range count {
				log.Info("line")
			}
			out.open <- struct{}{} // one line, and what is said after it
			out.open <- struct{}{}
			synctest.Wait()
			require.Equal(t, tellings, strings.Count(out.String(), " lines="))
		}
		lose(cluster.LogRoom+3, 1)
		lose(cluster.LogRoom+3, 2)
		lose(10, 2)
		lost := lines.Lost()
		ended, end := context.WithCancel(t.Context())
		end()
		require.Error(t, lines.Close(ended))
		close(out.open)
		synctest.Wait()
		told := uint64(0)
		for _, line := range strings.Split(out.String(), "\n") {
			if _, n, ok := strings.Cut(line, " lines="); ok {
				n, _, _ = strings.Cut(n, " ")
				more, err := strconv.ParseUint(n, 10, 64)
				require.NoError(t, err)
				told += more
			}
		}
		require.Equal(t, lost, told)
	})
}

// Lines that the logger would not write take no room, whoever causes them.
func TestLinesBelowTheLevelTakeNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newGatedLog()
		info := out.logger()
		info.SetLevel(hclog.Info)
		lines := cluster.NewLogLines(info)
		log := lines.Logger()
		log.Info("first")
		for range 2 * cluster.LogRoom {
			log.Debug("a stranger")
		}
		log.Error("real")
		require.Zero(t, lines.Lost())
		close(out.open)
		require.NoError(t, lines.Close(context.Background()))
		require.Equal(t, "[INFO]  first\n[ERROR] real\n", out.String())
	})
}

// An intercepting logger gets lines of all levels, because its sinks have their own.
func TestLinesForSinksAreKept(t *testing.T) {
	var out bytes.Buffer
	to := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Warn, Output: io.Discard})
	to.RegisterSink(hclog.NewSinkAdapter(&hclog.LoggerOptions{
		Level: hclog.Debug, Output: &out, DisableTime: true,
	}))
	lines := cluster.NewLogLines(to.With("node", "a"))
	lines.Logger().Debug("for the sink")
	require.NoError(t, lines.Close(context.Background()))
	require.Equal(t, "[DEBUG] for the sink: node=a\n", out.String())
}

// A line that waited says how long.
func TestALineThatWaitedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newGatedLog()
		lines := cluster.NewLogLines(out.logger())
		log := lines.Logger()
		log.Info("at once")
		synctest.Wait()
		log.Info("waits", "of", 1)
		time.Sleep(100 * time.Millisecond)
		log.Info("waits less")
		time.Sleep(50 * time.Millisecond)
		close(out.open)
		require.NoError(t, lines.Close(context.Background()))
		require.Equal(t, "[INFO]  at once\n[INFO]  waits: of=1 waited=150ms\n[INFO]  waits less\n",
			out.String())
	})
}
