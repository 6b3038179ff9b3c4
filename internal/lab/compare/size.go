package compare

import (
	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// frameHeader is what the mesh puts before a message: its length and kind. A kind that an algorithm
// has as text is left out of the message (`codec:"-"`).
const frameHeader = 5

// recordFields are the bytes of the fields about a record. The mesh sends them only in an election
// that has one.
const recordFields = 57

// msgpack is as the mesh has it, without the names of fields.
var msgpack = func() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.StructToArray = true
	return h
}()

// sizes adds up the bytes of the messages of a run.
type sizes struct {
	bytes, messages int
	buffer          []byte
}

func (s *sizes) observe(e *sim.Event) {
	if e.Kind != sim.EventSent || e.At < 0 {
		return
	}
	s.buffer = s.buffer[:0]
	if err := codec.NewEncoderBytes(&s.buffer, msgpack).Encode(e.Message); err != nil {
		panic(err) // messages are structs of basic types
	}
	s.bytes += frameHeader + len(s.buffer)
	if m, ok := e.Message.(ours.Message); ok && m.Record.IsZero() {
		s.bytes -= recordFields
	}
	s.messages++
}

// mean is that of one message; 0 if there was none.
func (s *sizes) mean() float64 { return float64(s.bytes) / max(float64(s.messages), 1) }
