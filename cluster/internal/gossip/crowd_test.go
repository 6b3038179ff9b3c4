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
	meta, err := encodeMeta(Meta{MeshAddr: "127.0.0.1:9"}.wire(false))
	require.NoError(t, err)
	var body []byte
	require.NoError(t, codec.NewEncoderBytes(&body, metaHandle()).Encode(aliveMessage{
		Incarnation: 1, Node: node, Addr: []byte{127, 0, 0, 1}, Port: 9, Meta: meta, Vsn: []uint8{1, 5, 5, 0, 0, 0},
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
	require.Eventually(t, func() bool { return len(a.Members()) >= maxOthers }, patience, 10*time.Millisecond)
	invent(t, a, "one more")
	start(t, "b", slow, joining(a.gossipAddr()))
	a.requireEvent(Joined, "b")
	require.Len(t, a.Members(), maxOthers+1)
}

// Strangers that are refused under ever new names fill neither the log nor the memory,
// and silence nobody who is refused after them.
func TestRefusalsOfManyNamesAreBoundedAndSilenceNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := &listener{
			refused: map[string]string{}, table: newTable(),
			log: hclog.New(&hclog.LoggerOptions{Output: &log}),
		}
		refuse := func(name string) { require.Error(t, l.NotifyAlive(&memberlist.Node{Name: name})) }
		for i := range 100_000 {
			refuse(fmt.Sprint("stranger", i))
		}
		require.LessOrEqual(t, len(l.refused), 2*maxGone)
		require.LessOrEqual(t, strings.Count(log.String(), "\n"), 2*maxGone)
		time.Sleep(time.Minute)
		refuse("old")
		refuse("old")
		require.Equal(t, 1, strings.Count(log.String(), "peer=old"))
	})
}
