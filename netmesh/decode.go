package netmesh

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/hashicorp/go-msgpack/v2/codec"
)

// decoder reads the bodies of frames. Not for concurrent use.
type decoder struct {
	codec *codec.Decoder
	item  wireItem
	names interner
}

func newDecoder() *decoder {
	return &decoder{codec: codec.NewDecoderBytes(nil, msgpack)}
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
	// Value after value rather than one long array: no length is believed, and
	// nothing is kept but one item.
	d.codec.ResetBytes(body)
	for d.codec.NumBytesRead() < len(body) {
		d.item.clear()
		if err := d.codec.Decode(&d.item); err != nil {
			return refuse(ReasonGarbage, "message: %v", err)
		}
		if err := d.item.check(); err != nil {
			return refuse(ReasonGarbage, "message: %v", err)
		}
		each(d.item.message(&d.names))
	}
	return nil
}
