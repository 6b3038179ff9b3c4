package gossip

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-msgpack/v2/codec"
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

// invent tells p of a member that does not exist.
func invent(t *testing.T, p *peer, node string) {
	t.Helper()
	meta, err := encodeMeta(wireMeta{Meta: Meta{MeshAddr: "127.0.0.1:9"}})
	require.NoError(t, err)
	var body []byte
	require.NoError(t, codec.NewEncoderBytes(&body, metaHandle()).Encode(aliveMessage{
		Incarnation: 1, Node: node, Addr: []byte{127, 0, 0, 1}, Port: 9, Meta: meta,
		Vsn: []uint8{1, 5, 5, 0, 0, 0},
	}))
	const labelled, alive = 244, 4
	conn, err := net.Dial("udp", p.gossipAddr())
	require.NoError(t, err)
	defer conn.Close()
	packet := append([]byte{labelled, byte(len("test"))}, "test"...)
	_, err = conn.Write(append(append(packet, alive), body...))
	require.NoError(t, err)
}

func TestInventedMembersAreBoundedAndKeepNoVoterOut(t *testing.T) {
	slow := func(c *Config) {
		c.Timing.Probe, c.Timing.Sync = time.Hour, 100*time.Millisecond
		c.Voters = []elector.NodeID{"a", "b"}
	}
	a := start(t, "a", slow)
	for i := range 2 * maxOthers {
		invent(t, a, fmt.Sprint("invented", i))
		time.Sleep(time.Millisecond) // UDP drops what comes too fast
	}
	require.Eventually(t, func() bool { return len(a.view()) >= maxOthers }, patience,
		10*time.Millisecond)
	invent(t, a, "one more")
	start(t, "b", slow, joining(a.gossipAddr()))
	a.requireState(StateAlive, "b")
	require.Len(t, a.view(), maxOthers+1)
}

// Strangers that are refused under ever new names do not fill the log.
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

// A name that a terminal would obey is no member's.
func TestNamesWithControlCharactersAreKeptOut(t *testing.T) {
	a := start(t, "a")
	meta := a.members.NodeMeta(0)
	require.NoError(t, a.members.NotifyAlive(&memberlist.Node{Name: "b", Meta: meta}))
	for _, name := range []string{"\x1b[2Jevil", "a b", "", "*"} {
		err := a.members.NotifyAlive(&memberlist.Node{Name: name, Meta: meta})
		require.ErrorContains(t, err, "its name is")
	}
}

// For each stream that announces many members memberlist sets 112 MB aside.
func TestFewStreamsAreReadAtATime(t *testing.T) {
	cfg := valid().withDefaults()
	tr, err := newTransport(&cfg, netip.MustParseAddrPort("127.0.0.1:0"),
		newMembers(&cfg, cfg.Logger), cfg.Logger)
	require.NoError(t, err)
	defer func() { require.NoError(t, tr.Shutdown()) }()
	for range 3 * maxExchanges {
		conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", tr.GetAutoBindPort()))
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		_, err = conn.Write([]byte{helloMagic, 1, 'x'})
		require.NoError(t, err)
	}
	var handed []net.Conn
	for range maxExchanges {
		handed = append(handed, <-tr.StreamCh())
	}
	select {
	case <-tr.StreamCh():
		require.Fail(t, "one more is handed on")
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, handed[0].Close())
	_ = handed[0].Close() // makes room once only
	select {
	case <-tr.StreamCh():
	case <-time.After(patience):
		require.Fail(t, "no other has the place that is free")
	}
	require.Len(t, tr.exchanges, maxExchanges)
}
