package strangers

import (
	"bytes"
	"compress/lzw"
	bin "encoding/binary"
	"io"
	"net"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/stretchr/testify/require"
)

// Ordinary ones that others are compared with.
const (
	someoneLinks = "mesh/link"
	someonePings = "gossip/ping"
)

// memberlist's types of messages.
const (
	typePing       = 0
	typeAck        = 2
	typePushPull   = 6
	typeCompound   = 7
	typeCompressed = 9
)

// openly is what can be said to a node without TLS.
func openly() []offense {
	frame := func(kind byte, body ...byte) []byte {
		head := bin.BigEndian.AppendUint32(nil, uint32(1+len(body)))
		return append(append(head, kind), body...)
	}
	stream := func(b ...byte) []byte { return append([]byte{0xB6, 1, 'x'}, labelled(b)...) }
	const hello = 1
	ack := append([]byte{typeAck}, make([]byte, 1<<16-1)...)
	middle := compressed(repeated(compressed(ack), 120))
	return []offense{
		{someoneLinks, "", 20, replays(0)},
		{"mesh/evidence", someoneLinks, 20, replays(1)},
		{"mesh/junk", someoneLinks, 20, sends(onMesh, junk()[:2048])},
		{"mesh/deep-hello", someoneLinks, 20,
			sends(onMesh, frame(hello, bytes.Repeat([]byte{0x91}, 2000)...))},
		{"mesh/long-names", someoneLinks, 20, sends(onMesh, frame(hello,
			append([]byte{0x9f, 0xda, 7, 0xc0}, bytes.Repeat([]byte{'x'}, 2000)...)...))},
		{someonePings, "", 200, packets(message(typePing, map[string]any{"SeqNo": 1}))},
		{"gossip/junk", someonePings, 200, packets(junk()[:1400])},
		{"gossip/short", someonePings, 200, packets([]byte{typePing})},
		{"gossip/acks", someonePings, 50,
			packets(repeated(message(typeAck, map[string]any{"SeqNo": 1}), 255))},
		{"gossip/bomb", someonePings, 20, packets(compressed(make([]byte, 1<<20)))},
		{"gossip/nested", someonePings, 6, packets(repeated(middle, 60_000/(2+len(middle))))},
		{"gossip/stream/junk", someoneLinks, 20, sends(onGossip, stream(junk()[:2048]...))},
		{"gossip/stream/claim", someoneLinks, 20, sends(onGossip,
			stream(message(typePushPull, map[string]any{"Nodes": 2000})...))},
		{"gossip/stream/bomb", someoneLinks, 20,
			sends(onGossip, stream(compressed(make([]byte, 1<<20))...))},
	}
}

func onGossip(x *target) string { return x.node.GossipAddr }

// sends opens a connection for a text, and waits for its end.
func sends(addr func(*target) string, text []byte) func(*target) (once, end func()) {
	return func(x *target) (once, end func()) {
		return func() {
			conn := x.dial("tcp", addr(x))
			_, _ = conn.Write(text)
			_ = conn.(metered).Conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}, func() {}
	}
}

// replays sends what a member sent on its first connection, the link, or its second one.
func replays(connection int) func(*target) (once, end func()) {
	return func(x *target) (once, end func()) {
		if x.heard.recorded == nil {
			x.heard.listenIn(x.t, x.node)
		}
		return sends(onMesh, x.heard.recorded[connection])(x)
	}
}

// packets sends one to gossip, and waits until a ping behind it is answered.
func packets(packet []byte) func(*target) (once, end func()) {
	return func(x *target) (once, end func()) {
		conn := x.dial("udp", x.node.GossipAddr)
		answer, ping := make([]byte, 1<<10), labelled(message(typePing, map[string]any{"SeqNo": 7}))
		return func() {
			_, _ = conn.Write(labelled(packet))
			for clear(answer); !bytes.Contains(answer, []byte("SeqNo\x07")); {
				clear(answer)
				_, err := conn.Write(ping)
				require.NoError(x.t, err)
				_, err = conn.Read(answer)
				require.NoError(x.t, err)
			}
		}, func() { _ = conn.Close() }
	}
}

func labelled(text []byte) []byte { return (&attack{}).sealed(text) }

// message is one of memberlist.
func message(kind byte, body any) []byte {
	var text []byte
	if err := codec.NewEncoderBytes(&text, &codec.MsgpackHandle{}).Encode(body); err != nil {
		panic(err)
	}
	return append([]byte{kind}, text...)
}

func repeated(message []byte, times int) []byte {
	head := []byte{typeCompound, byte(times)}
	for range times {
		head = bin.BigEndian.AppendUint16(head, uint16(len(message)))
	}
	return append(head, bytes.Repeat(message, times)...)
}

func compressed(text []byte) []byte {
	var packed bytes.Buffer
	w := lzw.NewWriter(&packed, lzw.LSB, 8)
	_, _ = w.Write(text)
	_ = w.Close()
	return message(typeCompressed, map[string]any{"Algo": 0, "Buf": packed.Bytes()})
}
