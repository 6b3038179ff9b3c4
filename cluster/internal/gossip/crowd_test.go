package gossip

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// aliveMessage is memberlist's own, as anybody who reaches the port can send it.
type aliveMessage struct {
	Incarnation uint32
	Node        string
	Addr        []byte
	Port        uint16
	Meta        []byte
	Vsn         []uint8
}

// right are the versions that members speak.
var right = []uint8{1, 5, 2, 0, 0, 0}

// invent tells p of a member that does not exist.
func invent(t *testing.T, p *peer, node string, versions []uint8) {
	t.Helper()
	meta, err := encodeMeta(wireMeta{Meta: Meta{MeshAddr: "127.0.0.1:9"}})
	require.NoError(t, err)
	sendPacket(t, p, encode(typeAlive, aliveMessage{
		Incarnation: 1, Node: node, Addr: []byte{127, 0, 0, 1}, Port: 9, Meta: meta, Vsn: versions,
	}))
}

// labelled is a message of the tests' cluster.
func labelled(message []byte) []byte {
	return append([]byte("\xf4\x04test"), message...)
}

// sendPacket sends a message to p by UDP.
func sendPacket(t *testing.T, p *peer, message []byte) {
	t.Helper()
	conn, err := net.Dial("udp", p.gossipAddr())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write(labelled(message))
	require.NoError(t, err)
}

// openTo opens a stream to p, says hello, and sends a message.
func openTo(t *testing.T, p *peer, message []byte) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.gossipAddr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write(append([]byte{helloMagic, 1, 'x'}, labelled(message)...))
	require.NoError(t, err)
	return conn
}

func TestInventedMembersAreBoundedAndKeepNoVoterOut(t *testing.T) {
	slow := func(c *Config) {
		c.Timing.Probe, c.Timing.Sync = time.Hour, 100*time.Millisecond
		c.Voter = isOneOf("a", "b")
	}
	a := start(t, "a", slow)
	for i := range 2 * maxOthers {
		invent(t, a, fmt.Sprint("invented", i), right)
		time.Sleep(time.Millisecond) // UDP drops what comes too fast
	}
	require.Eventually(t, func() bool { return len(a.view()) >= maxOthers }, patience,
		10*time.Millisecond)
	invent(t, a, "onemore", right)
	start(t, "b", slow, joining(a.gossipAddr()))
	a.requireState(StateAlive, "b")
	require.Len(t, a.view(), maxOthers+1)
}

// A stranger who is refused under many names does not fill the log.
func TestRefusalsAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ms := newMembers(&Config{}, hclog.New(&hclog.LoggerOptions{Output: &log}))
		refuse := func(name string) { require.Error(t, ms.NotifyAlive(&memberlist.Node{Name: name})) }
		for i := range 100_000 {
			refuse(fmt.Sprint("stranger", i))
		}
		require.Equal(t, 1, strings.Count(log.String(), "\n"))
		time.Sleep(time.Minute)
		refuse("old")
		refuse("old")
		require.Equal(t, 1, strings.Count(log.String(), "peer=old"))
	})
}

// Names with control sequences for terminals are refused.
func TestNamesWithControlCharactersAreKeptOut(t *testing.T) {
	a := start(t, "a")
	meta := a.members.NodeMeta(0)
	require.NoError(t, a.members.NotifyAlive(&memberlist.Node{Name: "b", Meta: meta, PMin: 1, PMax: 5,
		PCur: 2}))
	for _, name := range []string{"\x1b[2Jevil", "a b", "", "*"} {
		err := a.members.NotifyAlive(&memberlist.Node{Name: name, Meta: meta})
		require.ErrorContains(t, err, "its name is")
	}
}

// Members that appear and die do not fill memberlist's table, which keeps the dead for a while.
func TestNamesThatComeAndDieAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(&Config{Voter: isOneOf("v")}, hclog.NewNullLogger())
		begin, last := time.Now(), time.Time{}
		admitted := 0
		for i := range 10_000 {
			n := elector.NodeID(fmt.Sprint("n", i))
			if ms.hasRoom(n) {
				admitted, last = admitted+1, time.Now()
				ms.put(Member{Node: n, State: StateAlive})
				ms.put(Member{Node: n, State: StateDead})
			}
			time.Sleep(newcomersEvery / 10_000)
		}
		require.Equal(t, maxNewcomers, admitted)
		require.Less(t, last.Sub(begin), newcomersEvery/2)
		require.True(t, ms.hasRoom("v"))
		require.True(t, ms.hasRoom("n255"), "who is back is no newcomer")
		require.False(t, ms.hasRoom("new"))
		time.Sleep(time.Second)
		require.True(t, ms.hasRoom("new"))
	})
}

// Members of version 0.1 compress what they send.
func TestMembersThatCompressAreRead(t *testing.T) {
	a := start(t, "a")
	b := start(t, "b", joining(a.gossipAddr()), func(c *Config) { c.compress = true })
	start(t, "c", joining(b.gossipAddr()))
	a.requireState(StateAlive, "b")
	a.requireState(StateAlive, "c")
	b.requireState(StateAlive, "a")
}

// Streams on which an exchange begins and then stalls keep no member out.
func TestSilentStreamsKeepNobodyOut(t *testing.T) {
	a := start(t, "a", func(c *Config) { c.streamTimeout = time.Hour })
	for range 3 * maxStreams {
		openTo(t, a, encode(typePushPull, pushPull{Nodes: 1}))
	}
	start(t, "b", joining(a.gossipAddr()))
	a.requireState(StateAlive, "b")
}

// A member with versions that no other has would make every exchange of states fail.
func TestImpossibleVersionsKeepNobodyOut(t *testing.T) {
	a := start(t, "a")
	for i, versions := range [][]uint8{
		{5, 5, 5, 9, 9, 9}, {1, 5, 5, 0, 0, 0}, {3, 5, 5, 0, 0, 0}, {1, 1, 1, 0, 0, 0},
		{1, 5, 2, 1, 1, 1}, {1, 5, 2, 0, 0, 3},
	} {
		invent(t, a, fmt.Sprint("poison", i), versions)
	}
	invent(t, a, "harmless", right)
	a.requireState(StateAlive, "harmless")
	start(t, "b", joining(a.gossipAddr()))
	a.requireState(StateAlive, "b")
	require.Len(t, a.view(), 2)
}
