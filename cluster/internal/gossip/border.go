package gossip

import (
	"bufio"
	"bytes"
	"compress/lzw"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/memberlist"
)

// What memberlist makes of a few bytes can be large: it sets memory aside for the number
// of members that a stream announces, and unpacks 31 KB to 39 MB. Its numbers for what it
// sends are not exported; they are part of its protocol.
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
	typeLabel = 244
)

// Bounds of a stream, and of a packet. A full table of members takes less: see maxNewcomers.
const (
	maxNodes       = 2048    // members in one exchange of states
	maxStreamBytes = 1 << 20 // of all that is read, also of what is unpacked
	maxPacket      = 1 << 16 // unpacked
	maxUnpacking   = 32      // bytes for each that is compressed
)

// border knows what memberlist would decrypt, and so what it would see.
type border struct {
	label string // of packets and streams
	keys  Keys
}

// checkPacket reports why memberlist must not see a packet. One that is not encrypted can begin
// as one that is, with 0 or 1.
func (b border) checkPacket(packet []byte) error {
	if len(packet) > 1 && packet[0] == typeLabel {
		packet = packet[min(2+int(packet[1]), len(packet)):]
	}
	text, fits := b.unseal(packet, []byte(b.label))
	switch {
	case !fits:
		text = packet
	case packet[0] != sealVersion:
		return errSealVersion
	}
	if len(text) >= 5 && text[0] == typeChecksum {
		text = text[5:]
	}
	if len(text) > 0 && text[0] == typeCompressed { // by members of the version before
		var err error
		if text, err = unpack(bytes.NewReader(text[1:]), maxPacket); err != nil {
			return err
		}
	}
	return checkText(text)
}

// checkText reports why memberlist must not see what is in a packet. A member asks one question
// at most, and compresses the whole: a packet must not make many, nor unpack to others that unpack.
func checkText(b []byte) error {
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

// checkMessage lets pass what members send each other in packets.
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

// unpack returns what is compressed, if it is no longer than limit.
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
	// Read twice: no memory is set aside before the length is known.
	n, err := io.Copy(io.Discard, io.LimitReader(text(), int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("compressed message: %w", err)
	case n > int64(limit):
		return nil, fmt.Errorf("compressed message of more than %d bytes", limit)
	}
	unpacked := make([]byte, n)
	_, err = io.ReadFull(text(), unpacked)
	return unpacked, err
}

// pushPull is the header of an exchange of states, as memberlist has it.
type pushPull struct {
	Nodes        int
	UserStateLen int
	Join         bool
}

// openStream returns what of a stream memberlist may read.
func (b border) openStream(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(io.LimitReader(r, maxStreamBytes))
	label, err := readLabel(in)
	if err != nil {
		return nil, err
	}
	first, err := in.Peek(1)
	if err != nil {
		return nil, err
	}
	var content io.Reader
	if first[0] == typeEncrypted {
		content, err = b.openSealed(in)
	} else {
		content, err = openText(in)
	}
	if err != nil {
		return nil, err
	}
	return io.MultiReader(bytes.NewReader(label), content), nil
}

// readLabel returns the label with which a stream begins, if it does.
func readLabel(in *bufio.Reader) ([]byte, error) {
	first, err := in.Peek(1)
	if err != nil || first[0] != typeLabel {
		return nil, err
	}
	head := make([]byte, 2, 2+255)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	head = head[:2+int(head[1])]
	_, err = io.ReadFull(in, head[2:])
	return head, err
}

// openText returns what memberlist may read of a stream, or of what is encrypted in one: a
// ping, an answer, or an exchange of states within the bounds.
func openText(in *bufio.Reader) (io.Reader, error) {
	kind, err := in.ReadByte()
	if err == nil && kind == typeCompressed { // by a member of the version before
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
		if h.Nodes < 0 || h.Nodes > maxNodes || h.UserStateLen != 0 {
			return nil, fmt.Errorf("exchange of %d members, and %d bytes of others: at most %d and 0 are read",
				h.Nodes, h.UserStateLen, maxNodes)
		}
		// Written anew: memberlist must not read something else from it.
		text := bytes.NewBuffer(head)
		if err := codec.NewEncoder(text, &codec.MsgpackHandle{}).Encode(h); err != nil {
			return nil, fmt.Errorf("header of an exchange of states: %w", err)
		}
		head = text.Bytes()
	default:
		return nil, fmt.Errorf("stream of type %d", kind)
	}
	return io.MultiReader(bytes.NewReader(head), in), nil
}

// checkVersions reports why a member's versions of memberlist's protocol would make every
// exchange of states fail: each member of a table must speak what all speak.
func checkVersions(n *memberlist.Node) error {
	const current = memberlist.ProtocolVersion2Compatible
	if n.PMin > current || n.PMax < current || n.PCur != current || n.DMin > 0 || n.DCur > 0 {
		return fmt.Errorf("it speaks versions %d and %d of %d to %d and %d to %d, not %d and 0",
			n.PCur, n.DCur, n.PMin, n.PMax, n.DMin, n.DMax, current)
	}
	return nil
}
