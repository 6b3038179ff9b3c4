package gossip

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// knife cuts one node off from some others.
type knife struct{ cut atomic.Pointer[string] }

func (k *knife) separate(nodes string) { k.cut.Store(&nodes) }
func (k *knife) option(c *Config)      { c.Blocked = k.blocked }
func (k *knife) blocked(peer elector.NodeID) bool {
	nodes := k.cut.Load()
	return nodes != nil && strings.Contains(*nodes, string(peer))
}

func TestBlockedSplitsAndHeals(t *testing.T) {
	var k knife
	a := start(t, "a", deathSoon)
	b := start(t, "b", joining(a.gossipAddr()), deathSoon)
	c := start(t, "c", joining(a.gossipAddr()), k.option, deathSoon)
	requireTogether(t, a, b, c)

	k.separate("a b")
	a.update(Meta{Version: "2"})
	news := func(p *peer) bool { return p.hears("a", "2") }
	require.Eventually(t, func() bool { return news(b) }, patience, 5*time.Millisecond)
	for _, node := range []elector.NodeID{"a", "b"} {
		c.requireState(StateDead, node)
	}
	a.requireState(StateDead, "c")
	b.requireState(StateDead, "c")
	requireTogether(t, a, b)
	require.False(t, news(c), "news must not come through a cut")

	k.separate("")
	requireTogether(t, a, b, c)
}

func TestBlockedHoldsAgainstTheOtherSidesAttempts(t *testing.T) {
	for _, keys := range []string{"plain", "A"} {
		t.Run(keys, func(t *testing.T) {
			var k knife
			c := start(t, "c", k.option, encrypting(keys))
			a := start(t, "a", joining(c.gossipAddr()), encrypting(keys))
			b := start(t, "b", joining(c.gossipAddr(), a.gossipAddr()), encrypting(keys))
			requireTogether(t, a, b, c)
			k.separate("a b")
			for _, p := range []*peer{a, b} {
				_, err := p.list.Join([]string{c.gossipAddr()})
				require.Error(t, err)
			}
			k.separate("")
			requireTogether(t, a, b, c)
		})
	}
}

func TestGarbageAndSilentStreamsDisturbNothing(t *testing.T) {
	a := start(t, "a")
	for i := range 4 * maxStreams {
		conn, err := net.Dial("tcp", a.gossipAddr())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		if i%2 == 0 {
			_, _ = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		}
	}
	udp, err := net.Dial("udp", a.gossipAddr())
	require.NoError(t, err)
	defer func() { _ = udp.Close() }()
	for _, junk := range []string{"x", "\xf4\x04testgarbage", strings.Repeat("\xff", 1000)} {
		_, err := udp.Write([]byte(junk))
		require.NoError(t, err)
	}
	b := start(t, "b", joining(a.gossipAddr()))
	requireTogether(t, a, b)
}

// lines collects a node's log.
type lines struct{ testkit.Buffer }

func (l *lines) option(c *Config) { l.at(hclog.Info, c) }
func (l *lines) debug(c *Config)  { l.at(hclog.Debug, c) }
func (l *lines) at(level hclog.Level, c *Config) {
	c.Logger = hclog.New(&hclog.LoggerOptions{Level: level, Output: l})
}

func TestJoinFailureIsSaidOnceAndSoIsRecovery(t *testing.T) {
	t.Parallel()
	var log lines
	later := freeAddr(t)
	a := start(t, "a", joining(later), log.option)
	require.Eventually(t, func() bool { return log.Count("does not answer") == 1 }, patience,
		5*time.Millisecond)
	require.Never(t, func() bool { return log.Count("\n") > 1 }, 10*fast().Rejoin, 10*time.Millisecond)
	b := start(t, "b", bound(later))
	requireTogether(t, a, b)
	require.Eventually(t, func() bool { return log.Count("answers again") == 1 }, patience,
		5*time.Millisecond)
}

func TestHealthyClusterIsSilentAtInfo(t *testing.T) {
	var log lines
	a := start(t, "a", log.option)
	own := []string{a.gossipAddr()}
	b := start(t, "b", joining(own...), log.option)
	c := start(t, "c", joining(own...), log.option)
	requireTogether(t, a, b, c)
	require.Never(t, func() bool { return log.Count("\n") > 0 }, 5*fast().Rejoin, 10*time.Millisecond)
}

func TestOwnAddressAmongJoinIsSkipped(t *testing.T) {
	var log lines
	port := freePort(t)
	own := net.JoinHostPort("127.0.0.2", port)
	others := net.JoinHostPort("127.0.0.1", port)
	a := start(t, "a", bound("0.0.0.0:"+port), joining(own, others), log.debug,
		func(c *Config) { c.Advertise = own })
	b := start(t, "b", joining(own))
	requireTogether(t, a, b)
	time.Sleep(5 * fast().Rejoin)
	require.Zero(t, log.Count("Initiating push/pull sync with:  127."),
		"the node must not talk to itself")
}

// To a node, an address of another cluster looks like one where nobody answers.
func TestForeignClusterIsToldAsAJoinAddressThatFails(t *testing.T) {
	var here, there lines
	a := start(t, "a", here.option)
	start(t, "s", joining(a.gossipAddr()), there.option, func(c *Config) { c.Cluster = "other" })
	told := func() bool { return there.Count("or belongs to another cluster") > 0 }
	require.Eventually(t, told, patience, 5*time.Millisecond)
	require.Equal(t, 1, there.Count(a.gossipAddr()+" cluster=other"))
	require.Zero(t, here.Count("\n"))
}

// A firewall that drops UDP lets streams pass, so members look alive.
func TestWithoutPacketsOfMembersANodeWarnsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		cfg := valid()
		cfg.Timing = Timing{}
		log.option(&cfg)
		cfg = cfg.withDefaults()
		packets := uint64(0)
		j := &joiner{g: &Gossip{cfg: cfg, log: cfg.Logger, arrived: func() uint64 { return packets }}}
		rounds := func(n int, company bool, each uint64) {
			for range n {
				packets += each
				j.listen(company)
				time.Sleep(cfg.Timing.Rejoin)
			}
		}
		rounds(20, false, 0)
		rounds(20, true, 1)
		rounds(2, true, 0)
		rounds(20, true, 1)
		require.Zero(t, log.Count("\n"))
		rounds(20, true, 0)
		require.Equal(t, 1, log.Count("a firewall drops UDP"))
	})
}
