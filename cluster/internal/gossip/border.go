package gossip

import (
	"bufio"
	"bytes"
	"compress/lzw"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/memberlist"
)

// A few bytes can cost memberlist much: it allocates 100 MB for a stream that announces a million
// members, unpacks 31 KB to 39 MB, unpacks again what it finds inside, and answers each of 255
// pings in one packet. TestWhatMemberlistLetsThrough shows that. This file refuses such packets and
// streams; it does not check what memberlist itself refuses or survives. The numbers of the
// messages are part of memberlist's protocol, but it does not export them.
const (
	typePing = iota
	typeIndirectPing
	typeAck
	typeSuspect
	typeAlive
	typeDead
	typePushPull
	typeCompound
	typeUser
	typeCompressed
	typeEncrypted
	typeNack
	typeChecksum
	typeError
)

// Bounds of a stream and of a packet. A full table of members takes less: see maxNewcomers.
const (
	maxNodes       = 2048    // members in one exchange of states
	maxStreamBytes = 1 << 20 // bytes read from a stream, and bytes unpacked
	maxPacket      = 1 << 16 // bytes of a packet, unpacked
	maxUnpacking   = 32      // unpacked bytes for each compressed byte
)

// checkPacket returns what memberlist may see of the text of a packet.
func checkPacket(text []byte) ([]byte, error) {
	if len(text) >= 5 && text[0] == typeChecksum {
		if crc32.ChecksumIEEE(text[5:]) != binary.BigEndian.Uint32(text[1:]) {
			return nil, errors.New("packet with a wrong checksum")
		}
		text = text[5:]
	}
	if len(text) > 0 && text[0] == typeCompressed { // by members of version 0.1
		var err error
		if text, err = unpack(bytes.NewReader(text[1:]), maxPacket); err != nil {
			return nil, err
		}
	}
	return text, checkContent(text)
}

// checkContent accepts one message, or a compound packet with at most one question: a member
// sends no more in one packet.
func checkContent(b []byte) error {
	if len(b) < 2 || b[0] != typeCompound {
		return checkMessage(b)
	}
	lengths, parts := b[2:], int(b[1])
	if len(lengths) < 2*parts {
		return errors.New("compound packet is cut off")
	}
	messages, questions := lengths[2*parts:], 0
	for i := range parts {
		n := min(int(lengths[2*i])<<8|int(lengths[2*i+1]), len(messages))
		if err := checkMessage(messages[:n]); err != nil {
			return err
		}
		if kind := messages[0]; kind == typePing || kind == typeIndirectPing {
			questions++
		}
		messages = messages[n:]
	}
	if questions > 1 {
		return fmt.Errorf("compound packet with %d questions: a member asks one at most", questions)
	}
	return nil
}

// checkMessage accepts the messages that members send each other in packets.
func checkMessage(b []byte) error {
	if len(b) == 0 {
		return errors.New("empty message")
	}
	switch b[0] {
	case typePing, typeIndirectPing, typeAck, typeNack, typeSuspect, typeAlive, typeDead:
		return nil
	}
	return fmt.Errorf("message of type %d", b[0])
}

// unpack returns the uncompressed text, if it is no longer than limit.
func unpack(r io.Reader, limit int) ([]byte, error) {
	var c struct {
		Algo uint8
		Buf  []byte
	}
	if err := codec.NewDecoder(r, &codec.MsgpackHandle{}).Decode(&c); err != nil {
		return nil, fmt.Errorf("compressed message: %w", err)
	}
	limit = min(limit, maxUnpacking*len(c.Buf))
	text := func() io.Reader { return lzw.NewReader(bytes.NewReader(c.Buf), lzw.LSB, 8) }
	// Read twice: no memory is allocated before the length is known.
	n, err := io.Copy(io.Discard, io.LimitReader(text(), int64(limit)+1))
	if err == nil && n > int64(limit) {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("compressed message: %w", err)
	}
	unpacked := make([]byte, n)
	_, err = io.ReadFull(text(), unpacked)
	return unpacked, err
}

// pushPull is memberlist's header of an exchange of states.
type pushPull struct {
	Nodes        int
	UserStateLen int
	Join         bool
}

// checkStream returns what memberlist may read of the text of a stream: a ping, an answer, or an
// exchange of states within the bounds.
func checkStream(in *bufio.Reader) (io.Reader, error) {
	kind, err := in.ReadByte()
	if err == nil && kind == typeCompressed { // by a member of version 0.1
		var unpacked []byte
		if unpacked, err = unpack(in, maxStreamBytes); err == nil {
			in = bufio.NewReader(bytes.NewReader(unpacked))
			kind, err = in.ReadByte()
		}
	}
	if err != nil {
		return nil, err
	}
	head := []byte{kind}
	switch kind {
	case typePing, typeAck, typeError:
	case typePushPull:
		var h pushPull
		if err := codec.NewDecoder(in, &codec.MsgpackHandle{}).Decode(&h); err != nil {
			return nil, fmt.Errorf("header of an exchange of states: %w", err)
		}
		if h.Nodes > maxNodes || h.UserStateLen != 0 {
			return nil, fmt.Errorf("exchange of %d members, and %d bytes of others: at most %d and 0 are read",
				h.Nodes, h.UserStateLen, maxNodes)
		}
		head = encode(kind, h) // memberlist must not decode the same bytes to another header
	default:
		return nil, fmt.Errorf("stream of type %d", kind)
	}
	return io.MultiReader(bytes.NewReader(head), in), nil
}

// encode returns a message as memberlist writes it.
func encode(kind byte, body any) []byte {
	text := bytes.NewBuffer([]byte{kind})
	if err := codec.NewEncoder(text, &codec.MsgpackHandle{}).Encode(body); err != nil {
		panic("gossip: a message of plain fields can be encoded: " + err.Error())
	}
	return text.Bytes()
}

// checkVersions reports why a member's versions of memberlist's protocol would make every
// exchange of states fail: memberlist demands that all members of a table have a common one.
func checkVersions(n *memberlist.Node) error {
	const current = memberlist.ProtocolVersion2Compatible
	if n.PMin > current || n.PMax < current || n.PCur != current || n.DMin > 0 || n.DCur > 0 {
		return fmt.Errorf("it speaks versions %d and %d of %d to %d and %d to %d, not %d and 0",
			n.PCur, n.DCur, n.PMin, n.PMax, n.DMin, n.DMax, current)
	}
	return nil
}
