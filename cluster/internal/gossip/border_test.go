package gossip

import (
	"bufio"
	"bytes"
	"compress/lzw"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"
)

// pingMessage is memberlist's own: the answer goes to where it says that it comes from.
type pingMessage struct {
	SeqNo      uint32
	Node       string
	SourceAddr []byte
	SourcePort uint16
	SourceNode string
}

// together makes one packet of messages.
func together(messages ...[]byte) []byte {
	head := []byte{typeCompound, byte(len(messages))}
	for _, m := range messages {
		head = binary.BigEndian.AppendUint16(head, uint16(len(m)))
	}
	return append(head, bytes.Join(messages, nil)...)
}

func repeated(message []byte, times int) []byte {
	all := make([][]byte, times)
	for i := range all {
		all[i] = message
	}
	return together(all...)
}

func compressed(t testing.TB, text []byte) []byte {
	var packed bytes.Buffer
	w := lzw.NewWriter(&packed, lzw.LSB, 8)
	_, err := w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return encode(typeCompressed, struct {
		Algo uint8
		Buf  []byte
	}{0, packed.Bytes()})
}

// pinger counts the answers to pings that name it as their origin.
type pinger struct{ *net.UDPConn }

func newPinger(t *testing.T) pinger {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return pinger{conn}
}

func (p pinger) ping(number uint32) []byte {
	port := uint16(p.LocalAddr().(*net.UDPAddr).Port)
	return encode(typePing, pingMessage{number, "a", []byte{127, 0, 0, 1}, port, "x"})
}

// answersUntil returns the numbers of the pings that were answered, the last one at the end.
func (p pinger) answersUntil(t *testing.T, last byte) (came []byte) {
	for packet := make([]byte, 1<<10); ; {
		require.NoError(t, p.SetReadDeadline(time.Now().Add(patience)))
		n, err := p.Read(packet)
		require.NoError(t, err)
		came = append(came, packet[bytes.Index(packet[:n], []byte("SeqNo"))+len("SeqNo")])
		if came[len(came)-1] == last {
			return came
		}
	}
}

func allocated() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.TotalAlloc
}

// drain reads until the other end closes the connection.
func drain(t *testing.T, conn net.Conn) {
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	_, err := io.ReadAll(conn)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it is still open")
	_ = conn.Close()
}

// TestWhatMemberlistLetsThrough is the reason for border.go: these packets and streams cost
// memberlist alone much, and a node of this package little, whoever opened the stream.
func TestWhatMemberlistLetsThrough(t *testing.T) {
	bomb := compressed(t, make([]byte, 30<<20))
	require.Less(t, len(bomb), 60_000)
	streams := map[string][]byte{
		"members":    encode(typePushPull, pushPull{Nodes: 1 << 20, Join: true}),
		"user state": encode(typePushPull, pushPull{UserStateLen: 20 << 20}),
		"compressed": bomb,
	}
	packets := map[string][]byte{
		"compressed": bomb, "compressed part": together(bomb), "compressed twice": compressed(t, bomb),
	}
	const much = 8 << 20

	victim := newPinger(t)
	cfg := memberlist.DefaultLANConfig()
	cfg.Name, cfg.BindAddr, cfg.BindPort, cfg.LogOutput = "a", "127.0.0.1", 0, io.Discard
	bare, err := memberlist.Create(cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, bare.Shutdown()) }()
	at := bare.LocalNode().Address()
	udp, err := net.Dial("udp", at)
	require.NoError(t, err)
	defer udp.Close()
	for name, text := range streams {
		before := allocated()
		conn, err := net.Dial("tcp", at)
		require.NoError(t, err)
		_, err = conn.Write(text)
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		drain(t, conn)
		require.Greater(t, allocated()-before, uint64(much), name)
	}
	for name, text := range packets {
		before := allocated()
		for _, packet := range [][]byte{text, victim.ping(1)} {
			_, err = udp.Write(packet)
			require.NoError(t, err)
		}
		victim.answersUntil(t, 1)
		require.Greater(t, allocated()-before, uint64(much), name)
	}
	_, err = udp.Write(together(repeated(victim.ping(2), 100), victim.ping(3)))
	require.NoError(t, err)
	require.Len(t, victim.answersUntil(t, 3), 101)

	a := start(t, "a")
	before := allocated()
	for range 3 {
		for _, text := range streams {
			drain(t, openTo(t, a, text))
		}
		for _, text := range packets {
			sendPacket(t, a, text)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	start(t, "b", joining(ln.Addr().String()))
	for range 3 {
		conn, err := ln.Accept()
		require.NoError(t, err)
		_, err = conn.Write(streams["members"])
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}
	start(t, "c", joining(a.gossipAddr()))
	a.requireState(StateAlive, "c")
	require.Less(t, allocated()-before, uint64(much))
}

// TestOnePacketMakesOneAnswer, wherever the answer is to go.
func TestOnePacketMakesOneAnswer(t *testing.T) {
	victim := newPinger(t)
	suspect := encode(typeSuspect, map[string]any{"Incarnation": 1, "Node": "z", "From": "x"})
	a := start(t, "a")
	for _, packet := range [][]byte{
		repeated(victim.ping(1), 255), compressed(t, repeated(victim.ping(2), 255)),
		together(victim.ping(3), suspect), // as memberlist asks whom it suspects
		victim.ping(4),
	} {
		sendPacket(t, a, packet)
	}
	require.Equal(t, []byte{3, 4}, victim.answersUntil(t, 4))
}

// summed returns a packet with its checksum before it.
func summed(packet []byte) []byte {
	head := binary.BigEndian.AppendUint32([]byte{typeChecksum}, crc32.ChecksumIEEE(packet))
	return append(head, packet...)
}

// TestPacketsAreUnpackedOnce: a packet must not unpack to parts that unpack to further parts.
func TestPacketsAreUnpackedOnce(t *testing.T) {
	ack := encode(typeAck, map[string]any{"SeqNo": 1})
	for name, c := range map[string]struct {
		packet []byte
		want   string
	}{
		"parts":              {repeated(ack, 3), ""},
		"compressed":         {compressed(t, ack), ""},
		"compressed parts":   {compressed(t, repeated(ack, 3)), ""},
		"with a checksum":    {summed(compressed(t, ack)), ""},
		"with a wrong one":   {append([]byte{typeChecksum, 0, 0, 0, 0}, ack...), "wrong checksum"},
		"compressed twice":   {compressed(t, compressed(t, ack)), "message of type 9"},
		"parts of parts":     {together(repeated(ack, 3)), "message of type 7"},
		"part compressed":    {together(compressed(t, ack)), "message of type 9"},
		"all over and over":  {repeated(compressed(t, repeated(compressed(t, ack), 99)), 99), "of type 9"},
		"inside, once again": {compressed(t, repeated(compressed(t, ack), 99)), "of type 9"},
		"nothing":            {compressed(t, nil), "empty message"},
		"two questions": {together(encode(typePing, pingMessage{}), ack,
			encode(typeIndirectPing, pingMessage{})), "2 questions: a member asks one at most"},
	} {
		_, err := checkPacket(c.packet)
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.want, name)
		}
	}
}

// TestKeyHolderCrashesNobody: a node with the key gets no more past the border than others.
func TestKeyHolderCrashesNobody(t *testing.T) {
	const otherVersion = 0 // memberlist panics if its padding is wrong
	for _, keys := range []string{"A", "A plain", "plain A", "B A"} {
		t.Run(keys, func(t *testing.T) {
			a, holder := start(t, "a", encrypting(keys)), newEnvelope("test", keysOf("A"))
			for name, text := range map[string][]byte{
				"padding":   bytes.Repeat([]byte{0xff}, 16),
				"empty":     nil,
				"claim":     encode(typePushPull, pushPull{Nodes: 1 << 20, Join: true}),
				"encrypted": holder.wrapMessage(nil),
			} {
				packet, stream := holder.seal(nil, text, holder.label), holder.wrapMessage(text)
				_, err := a.transport.envelope.Load().openPacket(labelled(packet))
				require.Error(t, err, name)
				_, err = a.transport.envelope.Load().openStream(bytes.NewReader(stream))
				require.Error(t, err, name)
				for _, version := range []byte{sealVersion, otherVersion} {
					packet[0], stream[5] = version, version
					sendPacket(t, a, packet)
					drain(t, openTo(t, a, stream))
				}
			}
			start(t, "c", joining(a.gossipAddr()), encrypting(keys))
			a.requireState(StateAlive, "c")
		})
	}
}

// TestWhatMembersEncryptPasses, if the receiver has the key.
func TestWhatMembersEncryptPasses(t *testing.T) {
	ping := []byte{typePing, 0x80}
	exchange := encode(typePushPull, pushPull{Nodes: 1, Join: true})
	for _, keys := range []string{"A", "plain A", "B A", "B", "plain"} {
		e := newEnvelope("test", keysOf(keys))
		for _, key := range keysOf("A B plain") {
			from := newEnvelope("test", Keys{key})
			passes := e.keys.has(key)
			packet, err := from.wrapPacket(ping)
			require.NoError(t, err)
			_, err = newEnvelope("other", e.keys).openPacket(packet)
			require.ErrorContains(t, err, `packet of cluster "test"`)
			text, err := e.openPacket(packet)
			if passes {
				require.Equal(t, ping, text)
			} else if err == nil {
				require.NotEqual(t, ping, text, "what no key opens may pass as plain nonsense")
			}
			stream := from.wrapMessage(exchange)
			in, err := e.openStream(bytes.NewReader(stream))
			require.Equal(t, passes, err == nil, "%s reads %q: %v", keys, key, err)
			if passes {
				text, err = io.ReadAll(in)
				require.NoError(t, err)
				require.Equal(t, exchange, text)
			}
			if from.keys.Sends() && passes {
				_, err = e.openStream(bytes.NewReader(stream[:len(stream)-1]))
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			}
		}
	}
}

// FuzzBorder checks that only messages of members pass the border, within the bounds.
func FuzzBorder(f *testing.F) {
	f.Add(encode(typePushPull, pushPull{Nodes: 3, Join: true}))
	f.Add(encode(typePushPull, pushPull{Nodes: 1 << 20}))
	f.Add(summed([]byte{typeCompound, 2, 0, 1, 0, 1, typePing, typeAlive}))
	f.Add([]byte{typeCompressed, 0x80})
	f.Add([]byte{typeEncrypted, 0, 0, 0, 9})
	f.Fuzz(func(t *testing.T, sent []byte) {
		if text, err := checkPacket(sent); err == nil {
			require.NotEqual(t, byte(typeCompressed), text[0])
		}
		in, err := checkStream(bufio.NewReader(bytes.NewReader(sent)))
		if err != nil {
			return
		}
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		var h pushPull
		if text[0] == typePushPull {
			require.NoError(t, codec.NewDecoderBytes(text[1:], &codec.MsgpackHandle{}).Decode(&h))
		}
		require.LessOrEqual(t, h.Nodes, maxNodes)
		require.Zero(t, h.UserStateLen)
	})
}
