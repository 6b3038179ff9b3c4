package gossip

import (
	"bytes"
	"compress/lzw"
	"encoding/binary"
	"net"
	"testing"
	"time"

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
	return encoded(t, typeCompressed, struct {
		Algo uint8
		Buf  []byte
	}{0, packed.Bytes()})
}

// TestOnePacketMakesOneAnswer, wherever the answer is to go.
func TestOnePacketMakesOneAnswer(t *testing.T) {
	victim, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer victim.Close()
	port := uint16(victim.LocalAddr().(*net.UDPAddr).Port)
	ping := func(number uint32) []byte {
		return encoded(t, typePing, pingMessage{number, "a", []byte{127, 0, 0, 1}, port, "x"})
	}
	suspect := encoded(t, typeSuspect, map[string]any{"Incarnation": 1, "Node": "z", "From": "x"})
	a := start(t, "a")
	sendPacket(t, a, repeated(ping(1), 255))
	sendPacket(t, a, compressed(t, repeated(ping(2), 255)))
	sendPacket(t, a, together(ping(3), suspect)) // as memberlist asks whom it suspects
	sendPacket(t, a, ping(4))
	var came []byte
	for packet := make([]byte, 1<<10); ; {
		require.NoError(t, victim.SetReadDeadline(time.Now().Add(patience)))
		n, err := victim.Read(packet)
		require.NoError(t, err)
		at := bytes.Index(packet[:n], []byte("SeqNo")) + len("SeqNo")
		came = append(came, packet[at])
		if packet[at] == 4 {
			break
		}
	}
	require.Equal(t, []byte{3, 4}, came)
}

// TestPacketsAreUnpackedOnce: what is in them is not unpacked again, each part to many that are.
func TestPacketsAreUnpackedOnce(t *testing.T) {
	ack := encoded(t, typeAck, map[string]any{"SeqNo": 1})
	var b border
	for name, c := range map[string]struct {
		packet []byte
		want   string
	}{
		"parts":              {repeated(ack, 3), ""},
		"compressed":         {compressed(t, ack), ""},
		"compressed parts":   {compressed(t, repeated(ack, 3)), ""},
		"with a checksum":    {append([]byte{typeChecksum, 0, 0, 0, 0}, compressed(t, ack)...), ""},
		"compressed twice":   {compressed(t, compressed(t, ack)), "message of type 9"},
		"parts of parts":     {together(repeated(ack, 3)), "message of type 7"},
		"part compressed":    {together(compressed(t, ack)), "message of type 9"},
		"all over and over":  {repeated(compressed(t, repeated(compressed(t, ack), 99)), 99), "of type 9"},
		"inside, once again": {compressed(t, repeated(compressed(t, ack), 99)), "of type 9"},
		"nothing":            {compressed(t, nil), "empty message"},
		"two questions": {together(encoded(t, typePing, pingMessage{}), ack,
			encoded(t, typeIndirectPing, pingMessage{})), "2 questions: a member asks one at most"},
	} {
		err := b.checkPacket(c.packet)
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.want, name)
		}
	}
}

// BenchmarkBorder tells what it takes to look at a packet, of a member and of strangers.
func BenchmarkBorder(b *testing.B) {
	alive := encoded(b, typeAlive, aliveMessage{Node: "b", Addr: []byte{127, 0, 0, 1}, Vsn: right})
	inner := compressed(b, append([]byte{typeAck}, make([]byte, maxPacket-1)...))
	middle := compressed(b, repeated(inner, (maxPacket-512)/(2+len(inner))))
	for name, packet := range map[string][]byte{
		"member":     together(encoded(b, typePing, pingMessage{SeqNo: 1}), alive, alive),
		"bomb":       compressed(b, make([]byte, 1<<20)),
		"nested":     repeated(middle, 60_000/(2+len(middle))),
		"compressed": compressed(b, repeated(alive, 255)),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(packet)))
			for b.Loop() {
				_ = border{}.checkPacket(packet)
			}
		})
	}
}
