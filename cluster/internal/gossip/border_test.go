package gossip

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
)

const foreignArrives = "gossip of another cluster arrives here"

// finds collects what a node finds.
type finds struct {
	mu  sync.Mutex
	all []string
}

func (f *finds) option(c *Config) { c.Found = f.note }

func (f *finds) note(kind findings.Kind, peer elector.NodeID, detail string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, fmt.Sprintf("%s %s: %s", kind, peer, detail))
}

// times counts the findings that have all the words.
func (f *finds) times(words ...string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	lacks := func(found string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(found, word) })
	}
	return len(slices.DeleteFunc(slices.Clone(f.all), lacks))
}

// TestForeignClusterIsNamedOnBothSides: the one that dials would otherwise learn
// no more than that nobody answers.
func TestForeignClusterIsNamedOnBothSides(t *testing.T) {
	var here, there finds
	var logHere, logThere lines
	a := start(t, "a", here.option, logHere.option)
	start(t, "s", joining(a.gossipAddr()), there.option, logThere.option, func(c *Config) { c.Cluster = "other" })
	again := func() bool {
		return here.times("wrong-cluster s:", `node "s" at 127.0.0.1:`, `belongs to cluster "other", node "a" to "test"`) > 2 &&
			there.times("wrong-cluster a: "+a.gossipAddr(), `node "a" belongs to cluster "test", not to "other"`) > 2 &&
			logThere.count("does not answer") > 0
	}
	require.Eventually(t, again, patience, 5*time.Millisecond, "for as long as it is so")
	require.Equal(t, 1, logHere.count(foreignArrives))
	require.Equal(t, 1, logThere.count(`belongs to cluster`), "the warning says why")
	require.Equal(t, 1, logHere.count("\n"))
}

// TestNameTwiceIsFoundAgainAndAgain, though the second process is slow to answer.
func TestNameTwiceIsFoundAgainAndAgain(t *testing.T) {
	slow := func(elector.NodeID, string) bool { time.Sleep(70 * time.Millisecond); return false }
	var here finds
	a := start(t, "a", here.option)
	b := start(t, "b", joining(a.gossipAddr()))
	requireTogether(t, a, b)
	double := start(t, "b", joining(a.gossipAddr()), func(c *Config) { c.Blocked = slow })
	require.Eventually(t, func() bool {
		return here.times(`name-twice b: two running processes are called "b"`, b.gossipAddr(), double.gossipAddr()) > 2
	}, patience, 5*time.Millisecond)
}

func TestNothingIsFoundInAHealthyCluster(t *testing.T) {
	var all finds
	a := start(t, "a", all.option)
	b := start(t, "b", joining(a.gossipAddr()), all.option)
	requireTogether(t, a, b)
	require.Never(t, func() bool { return all.times() > 0 }, 5*fast().Rejoin, 10*time.Millisecond)
}

func TestOnlyRefusalsOfTheBorderAreTaken(t *testing.T) {
	by, text, ok := refusedBy(errors.New(`exchange: remote error: node "a\n" belongs to cluster "x", not to "y" and more`))
	require.True(t, ok)
	require.Equal(t, elector.NodeID("a\n"), by)
	require.Equal(t, `node "a\n" belongs to cluster "x", not to "y"`, text)
	for _, other := range []string{"", "EOF", "remote error: checksum", `node "a" belongs to cluster "x", not to "y"`, `remote error: node "a" belongs to cluster x, not to y`} {
		_, _, ok := refusedBy(errors.New(other))
		require.False(t, ok, other)
	}
}

// TestLibraryWarnings: one probe that is late on a busy machine is no firewall.
func TestLibraryWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		cfg := Config{}
		log.option(&cfg)
		library := libraryLogger(cfg.Logger)
		late := func(times int, pause time.Duration) {
			for range times {
				library.Print("[WARN] memberlist: Was able to connect to b over TCP but UDP probes failed, network may be misconfigured")
				time.Sleep(pause)
			}
		}
		late(20, 2*time.Minute)
		require.Zero(t, log.count("over UDP"), "now and then")
		late(4, time.Second)
		require.Zero(t, log.count("over UDP"))
		late(20, time.Second)
		require.Equal(t, 1, log.count("over UDP"))
		for range 3 {
			library.Print(`[ERR] memberlist: discarding packet with unacceptable label "x"`)
		}
		require.Equal(t, 1, log.count(foreignArrives))
	})
}

// TestOddStreamsDoNotPassTheBorder: a stream without a cluster, one that ends
// within its name, and one of many clusters' names.
func TestOddStreamsDoNotPassTheBorder(t *testing.T) {
	var here finds
	var log lines
	a := start(t, "a", here.option, log.option)
	say := func(b ...byte) {
		conn, err := net.Dial("tcp", a.gossipAddr())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		require.NoError(t, sayHello(conn, "x", patience))
		_, err = conn.Write(b)
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		_, err = conn.Read(make([]byte, 1<<10))
		if timeout := net.Error(nil); errors.As(err, &timeout) {
			require.False(t, timeout.Timeout(), "still open")
		}
	}
	say(6, 0)
	require.Equal(t, 1, here.times(`belongs to cluster ""`))
	say(labelMark, 200, 'x')
	require.Equal(t, 1, here.times("wrong-cluster"))
	for i := range maxGone + 5 {
		say(append([]byte{labelMark, 4}, fmt.Sprintf("c%03d", i)...)...)
	}
	require.Equal(t, maxGone, log.count(foreignArrives), "bounded")
}

// A name that a terminal would obey is no member's.
func TestNamesWithControlCharactersAreKeptOut(t *testing.T) {
	a := start(t, "a")
	meta := a.listener.NodeMeta(0)
	require.NoError(t, a.listener.NotifyAlive(&memberlist.Node{Name: "b", Meta: meta}))
	for _, name := range []string{"\x1b[2Jevil", "a b", "", "*"} {
		require.ErrorContains(t, a.listener.NotifyAlive(&memberlist.Node{Name: name, Meta: meta}), "its name is")
	}
}
