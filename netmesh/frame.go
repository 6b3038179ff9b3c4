package netmesh

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/bmqelect/bmqelect/elector"
)

// frameKind tells frames apart.
type frameKind uint8

// The frames. A frame is its length (4 bytes, big endian, of all that follows),
// its kind (1 byte) and its body (msgpack).
const (
	frameHello   frameKind = iota + 1 // dialer: who I am, whom I want
	frameWelcome                      // acceptor: who I am; the version is agreed
	frameJoin                         // dialer: the link is up on my side
	frameRefuse                       // either: the handshake failed, and why
	framePing                         // body: number
	framePong                         // body: the number of the ping, and when it was
	frameGoodbye                      // either: I live and close this link, and why
	frameBatch                        // messages, one after the other
	frameFacts                        // what the sender tells of itself
	frameRecords                      // messages that tell of records, one after the other
	frameNote                         // a Note
	frameChanges                      // changes of what is followed, one after the other
	frameBeat                         // a beat
	frameAck                          // the answer to a beat
	frameEnd
)

const (
	frameHeader = 5       // length and kind
	maxHello    = 2 << 10 // bytes of a frame before the link is up
	readAhead   = 16 << 10
)

var msgpack = func() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{}
	h.WriteExt = true      // byte strings are marked as such
	h.StructToArray = true // without field names
	return h
}()

// encoder builds frames in buffers of its own. What it returns is valid until
// its next call. Not for concurrent use.
type encoder struct {
	codec  *codec.Encoder
	body   []byte
	frame  []byte
	item   wireItem
	with   recordItem
	change wireChange
}

func newEncoder() *encoder {
	e := &encoder{}
	e.codec = codec.NewEncoderBytes(&e.body, msgpack)
	return e
}

// begin starts a new body.
func (e *encoder) begin() {
	e.body = e.body[:0]
	e.codec.ResetBytes(&e.body)
}

// finish returns the frame with the body since begin.
func (e *encoder) finish(kind frameKind) []byte {
	e.frame = binary.BigEndian.AppendUint32(e.frame[:0], uint32(1+len(e.body)))
	e.frame = append(e.frame, byte(kind))
	e.frame = append(e.frame, e.body...)
	return e.frame
}

// encode returns a frame with one value, a pointer to a struct of this package.
func (e *encoder) encode(kind frameKind, value any) ([]byte, error) {
	e.begin()
	if err := e.codec.Encode(value); err != nil {
		return nil, fmt.Errorf("encode frame %d: %w", kind, err)
	}
	return e.finish(kind), nil
}

// batch encodes as many of the messages as fit a frame of at most limit bytes and travel in the
// same kind of frame, at least one, and returns their number and the frame.
func (e *encoder) batch(items []queued, limit int) (n int, frame []byte, err error) {
	e.begin()
	kind, most := frameBatch, maxItem
	if len(items) > 0 && items[0].frame() == frameRecords {
		kind, most = frameRecords, maxRecordItem
	}
	for n < len(items) && len(e.body)+most < limit && items[n].frame() == kind {
		var item any = &e.item
		if kind == frameRecords {
			item = &e.with
			e.with.set(items[n].group, &items[n].msg)
		} else {
			e.item.set(items[n].group, &items[n].msg)
		}
		if err := e.codec.Encode(item); err != nil {
			return 0, nil, err
		}
		n++
	}
	return n, e.finish(kind), nil
}

// decoder reads the bodies of frames. Not for concurrent use.
type decoder struct {
	codec  *codec.Decoder
	item   wireItem
	with   recordItem
	change wireChange
	names  interner
}

func newDecoder() *decoder {
	return &decoder{codec: codec.NewDecoderBytes(nil, msgpack), names: interner{most: maxInterned}}
}

// one decodes a body that is a single value.
func (d *decoder) one(body []byte, into any) error {
	d.codec.ResetBytes(body)
	if err := d.codec.Decode(into); err != nil {
		return refuse(ReasonGarbage, "frame body: %v", err)
	}
	return nil
}

// batch hands every message of the body to each, in order, until one is
// malformed. Messages before it were handed over.
func (d *decoder) batch(body []byte, each func(group string, m elector.Message)) error {
	// The body is one value after another, not one long array: no announced length is trusted,
	// and only one item is kept.
	d.codec.ResetBytes(body)
	for d.codec.NumBytesRead() < len(body) {
		d.item.clear()
		err := d.codec.Decode(&d.item)
		if err == nil {
			err = d.item.check()
		}
		if err != nil {
			return refuse(ReasonGarbage, "message: %v", err)
		}
		each(d.item.message(&d.names))
	}
	return nil
}

// records is batch for the messages that tell of records.
func (d *decoder) records(body []byte, each func(group string, m elector.Message)) error {
	d.codec.ResetBytes(body)
	for d.codec.NumBytesRead() < len(body) {
		d.with.clear()
		err := d.codec.Decode(&d.with)
		if err != nil {
			return refuse(ReasonGarbage, "message: %v", err)
		}
		group, m, err := d.with.message(&d.names)
		if err != nil {
			return refuse(ReasonGarbage, "message: %v", err)
		}
		each(group, m)
	}
	return nil
}

// frameReader reads frames into a buffer of its own, which grows up to the
// largest frame seen. Not for concurrent use.
type frameReader struct {
	r   *bufio.Reader
	max int // bytes of a frame without its length
	buf []byte

	header [4]byte // a field, because a local variable would escape to the heap
}

func newFrameReader(r io.Reader, limit int) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, readAhead), max: limit}
}

// next returns the next frame; its body is valid until the call after. The
// error is a *refusal if the peer broke the rules, io.EOF if the stream ended
// between two frames, io.ErrUnexpectedEOF if within one.
func (f *frameReader) next() (frameKind, []byte, error) {
	n, err := io.ReadFull(f.r, f.header[:])
	if err != nil {
		return 0, nil, fmt.Errorf("read frame, %d bytes of its length: %w", n, err)
	}
	size := binary.BigEndian.Uint32(f.header[:])
	// Checked before anything is allocated: the length is only a claim.
	if uint64(size) > uint64(f.max) {
		return 0, nil, refuse(ReasonOversized,
			"frame of %d bytes announced, at most %d allowed", size, f.max)
	}
	if size == 0 {
		return 0, nil, refuse(ReasonGarbage, "empty frame")
	}
	if cap(f.buf) < int(size) {
		f.buf = make([]byte, size)
	}
	body := f.buf[:size]
	if n, err := io.ReadFull(f.r, body); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, fmt.Errorf("read frame, %d of %d bytes: %w", n, size, err)
	}
	kind := frameKind(body[0])
	if kind == 0 || kind >= frameEnd {
		return 0, nil, refuse(ReasonGarbage, "frame kind %d", kind)
	}
	return kind, body[1:], nil
}
